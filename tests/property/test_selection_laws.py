"""Laws of selections, over random expressions against plain Python sets."""

from __future__ import annotations

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from profwin.errors import SettingError
from profwin.selection import every, steps

UNIVERSE = range(60)
number = st.integers(0, 59)
bounds = st.tuples(number, number).map(sorted)

# Each leaf is a selection together with the plain set that it must be equal to within UNIVERSE.
leaves = st.one_of(
    number.map(lambda n: (steps(n), {n})),
    bounds.map(lambda b: (steps(f"{b[0]}-{b[1]}"), set(range(b[0], b[1] + 1)))),
    number.map(lambda n: (steps(f"{n}-"), set(range(n, 60)))),
    st.tuples(st.integers(1, 12), number).map(lambda a: (every(*a), set(range(a[1], 60, a[0])))),
    st.lists(number).map(lambda numbers: (steps(numbers), set(numbers))),
    st.tuples(bounds, st.integers(1, 9)).map(lambda a: (steps(range(*a[0], a[1])), set(range(*a[0], a[1])))),
    st.tuples(number, st.integers(1, 9)).map(lambda a: (steps(f"{a[0]}-1000000/{a[1]}"), set(range(a[0], 60, a[1])))),
)


def grow(inner):
    """Combine smaller pairs by the operators."""
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: (p[0][0] | p[1][0], p[0][1] | p[1][1])),
        st.tuples(inner, inner).map(lambda p: (p[0][0] & p[1][0], p[0][1] & p[1][1])),
        inner.map(lambda p: (~p[0], set(UNIVERSE) - p[1])),
    )


pairs = st.recursive(leaves, grow, max_leaves=8)
selections = pairs.map(lambda pair: pair[0])


@given(pairs)
def test_membership_is_that_of_sets(pair):
    """Any expression holds what the same expression of Python sets holds."""
    selection, expected = pair
    assert {step for step in UNIVERSE if step in selection} == expected


@given(selections)
def test_text_reads_back_as_an_equal_value(selection):
    """Text, pickle and ``repr``'s argument give back an equal value with an equal hash."""
    again = steps(selection.text())
    assert again == selection
    assert hash(again) == hash(selection)
    assert str(again) == str(selection)
    assert pickle.loads(pickle.dumps(selection)) == selection
    assert eval(repr(selection), {"steps": steps}) == selection


@given(selections, selections, selections)
def test_operators_obey_their_laws(a, b, c):
    """Order, grouping and repetition do not matter to ``|`` and ``&``; ``~`` undoes itself."""
    assert a | b == b | a
    assert a & b == b & a
    assert a | (b | c) == (a | b) | c
    assert a & (b & c) == (a & b) & c
    assert a | a == a
    assert a & a == a
    assert ~~a == a


@given(pairs)
def test_last_is_exact_where_it_is_told(pair):
    """If `last` is told, it is selected and nothing above it is."""
    selection, _expected = pair
    last = selection.last
    if last is not None:
        assert last in selection
        assert not any(step in selection for step in range(last + 1, last + 300))


@settings(max_examples=300)
@given(st.text("0123456789-,&!()/:every alnoĳ\n", max_size=25))
def test_any_text_is_read_or_refused(text):
    """Arbitrary text gives a selection whose text is stable, or a SettingError; nothing else."""
    try:
        selection = steps(text)
    except SettingError:
        return
    assert steps(str(selection)) == selection

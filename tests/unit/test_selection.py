"""Selections: what text and code mean, what is refused, and that they are values."""

from __future__ import annotations

import copy
import itertools
import logging
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from profwin.errors import SettingError
from profwin.selection import every, names, parse_names, parse_ranks, parse_steps, ranks, steps


def even(step):
    """Select even steps."""
    return step % 2 == 0


def members(selection, below=45):
    """List what is selected."""
    return [step for step in range(below) if step in selection]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", [2]),
        (" 2 , 4-6 ", [2, 4, 5, 6]),
        ("42-", [42, 43, 44]),
        ("10-30/10", [10, 20, 30]),
        ("15-/20", [15, 35]),
        ("every:20", [0, 20, 40]),
        ("40-,!3-", [0, 1, 2, 40, 41, 42, 43, 44]),
        ("every:10 & !20-30", [0, 10, 40]),
        ("!(3-,every:2)", [1]),
        ("!!5", [5]),
        ("1,2&3", [1]),
        ("(1,2)&(2,3)", [2]),
        ("none", []),
        ("all&3-4", [3, 4]),
    ],
)
def test_text_selects_what_the_grammar_says(text, expected):
    """Each form of the grammar selects exactly the numbers that it stands for."""
    assert members(steps(text)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((2, 4), [2, 4]),
        (([2, 4],), [2, 4]),
        ((range(2, 5),), [2, 3, 4]),
        ((range(8, 2, -3),), [5, 8]),
        ((range(5, 2),), []),
        ((np.array([2, 4]),), [2, 4]),
        ((np.int64(7),), [7]),
        (((n for n in (3, 1)),), [1, 3]),
        (({6},), [6]),
        (("2", 5, [7], lambda step: step == 9), [2, 5, 7, 9]),
        ((), []),
    ],
)
def test_code_selects_what_it_is_given(value, expected):
    """Numbers, ranges, iterables, callables and text can be given, alone or together."""
    assert members(steps(*value)) == expected


def test_operators_combine_selections():
    """``|``, ``&`` and ``~`` are union, intersection and complement."""
    assert members(steps(2, 4) | every(20)) == [0, 2, 4, 20, 40]
    assert members(every(10) & steps("5-25")) == [10, 20]
    assert members(~steps("1-")) == [0]
    assert members(~every(2), 6) == [1, 3, 5]
    assert members(every(20, start=5)) == [5, 25]
    with pytest.raises(TypeError, match="unsupported operand"):
        steps(2) | 3


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("2,,4", "an item is empty"),
        ("", "an item is empty"),
        ("2&", "an item is empty"),
        ("()", "an item is empty"),
        ("4-2", "runs backwards"),
        ("every:0", "interval of 0"),
        ("every:", "is no number"),
        ("every:-1", "is no number"),
        ("-3", "negative"),
        ("2 3", "is no number"),
        ("2\n3", "out of place"),
        ("(2", r"'\)' is missing"),
        ("2)", "out of place"),
        ("5!3", "out of place"),
        ("5/2", "needs a range"),
        ("2-4-6", "is no number"),
        ("1_000", "is no number"),
        ("\u0663", "is no number"),
        ("9" * 5000, "is no number"),
        ("9223372036854775808", "beyond"),
        ("(" * 5000, "nested"),
        ("!" * 5000 + "1", "nested"),
        (-1, "below 0"),
        (True, "no integer"),
        (2.0, "no integer"),
        (None, "no integer"),
        ([2, "4"], "no integer"),
        ([2, -4], "below 0"),
        (range(-2, 4), "below 0"),
        (itertools.count(), "more than"),
    ],
)
def test_malformed_values_are_refused(value, problem):
    """A malformed value raises at once, naming the setting, the value, what is allowed, and the problem."""
    with pytest.raises(SettingError, match=problem) as caught:
        steps(value)
    assert isinstance(caught.value, ValueError)
    assert caught.value.value is value
    assert caught.value.setting == "steps"
    assert "every:100" in caught.value.allowed


@pytest.mark.parametrize("arguments", [(0,), (-1,), (5, -1), (2.5,), (True,), ("x",)])
def test_every_refuses_what_is_out_of_range(arguments):
    """`every` refuses intervals below 1, starts below 0 and what is no integer."""
    with pytest.raises(SettingError, match="every"):
        every(*arguments)


def test_ranges_cost_nothing():
    """A range of a million million steps is stored, asked, combined and written like a small one."""
    huge = steps(range(1, 10**15)) | steps("2000000000000000-/7", range(0, 10**14, 3))
    assert str(huge) == "0-99999999999999/3,1-999999999999999,2000000000000000-/7"
    assert 10**14 in huge
    assert (huge & ~steps("5-")).last == 4
    assert sys.getsizeof(pickle.dumps(huge)) < 1000


def test_equal_selections_are_equal_values():
    """Order, repetition, and the way of writing do not matter, to ``==`` and to ``hash``."""
    pairs = [
        (steps("2,4-6"), steps(6, [5, 4], range(2, 3))),
        (every(100), steps("every:100")),
        (steps("0-"), steps("all")),
        (~steps("0-3"), steps("4-")),
        (steps("every:2&!4"), ~steps(4) & every(2)),
        (steps(range(2, 11, 4)), steps(2, 6, 10)),
        (steps(even), steps(even)),
        (steps(even) | steps(2), steps(2, even)),
        (every(3) & every(3), every(3)),
    ]
    for left, right in pairs:
        assert left == right
        assert hash(left) == hash(right)
    assert steps(2) != steps(3)
    assert steps(2) != "2"
    assert steps(even) != steps(bool)


def test_selections_cannot_be_changed():
    """Setting an attribute raises and names the way out."""
    with pytest.raises(AttributeError, match="build another"):
        steps(2)._parts = ()


@pytest.mark.parametrize(
    "selection", [steps("2,4-6,every:100"), every(2) & ~steps("4-9"), steps(even), names("a*,!ab")]
)
def test_selections_pickle_and_copy(selection):
    """A selection comes back equal from pickle and from a deep copy."""
    assert pickle.loads(pickle.dumps(selection)) == selection
    assert copy.deepcopy(selection) == selection


@pytest.mark.parametrize(
    ("selection", "last"),
    [
        (steps("2,9,4-6"), 9),
        (steps("10-100000/7"), 99999 - (99999 - 10) % 7),
        (every(5), None),
        (steps("7-"), None),
        (steps(), None),
        (steps("0-99&every:40"), 80),
        (steps("5&6"), None),
        (every(2) & every(3), None),
        (steps(even), None),
        (steps(even) & steps("0-9"), None),
        (~every(2), None),
        (~steps("5-"), 4),
        (steps("2-9") | every(4), None),
        (steps("2-9,(every:3&1-20)"), 18),
    ],
)
def test_last_is_the_largest_selected_step(selection, last):
    """`last` is the largest member, or None where there is none or it cannot be told."""
    assert selection.last == last


def test_only_an_empty_selection_is_false():
    """A selection is false if nothing is in it."""
    assert not steps("none")
    assert not steps([])
    assert steps(0)
    assert steps(even)


def test_a_callable_cannot_become_text():
    """`text` refuses a callable anywhere inside, while ``str`` and ``repr`` still describe it."""
    for selection in (steps(even), ~steps(even), every(2) & steps(even), steps(2, even)):
        with pytest.raises(ValueError, match="cannot travel"):
            selection.text()
        assert "even" in str(selection)
        assert "even" in repr(selection)


def test_a_failing_callable_selects_nothing_and_is_reported_once(caplog):
    """A callable that raises counts as not selected, also under ``~``, with one warning."""

    def broken(step):
        raise ZeroDivisionError

    selection = steps(broken, 4)
    with caplog.at_level(logging.WARNING, "profwin"):
        assert members(selection) == [4]
        assert members(~selection) == []
        assert members(~selection & every(2)) == []
    assert [record.name for record in caplog.records] == ["profwin"]
    assert "broken" in caplog.text


def test_a_callable_may_answer_anything_that_has_a_truth(caplog):
    """The answer's truth counts; one without a truth counts as a failure."""
    assert 3 in steps(lambda step: "yes")
    assert 3 in steps(lambda step: np.bool_(True))
    with caplog.at_level(logging.WARNING, "profwin"):
        assert 3 not in steps(lambda step: np.array([1, 2]))


def test_what_is_no_integer_is_in_no_selection():
    """Asking for something else than an integer answers no and never raises."""
    for other in ("2", 2.0, None, [2], -1, np.array([2, 3])):
        assert other not in steps("all")
    assert np.int32(2) in steps(2)


def test_settings_may_be_off_or_everything():
    """None and blank text turn steps off, and select every rank and every name."""
    for blank in (None, "", "  "):
        assert parse_steps(blank) is None
        assert 7 in parse_ranks(blank)
        assert "actor" in parse_names(blank)
    assert parse_steps(steps(2)) == steps(2)
    assert parse_steps(2) == steps(2)
    assert parse_ranks("0,4-7") == ranks("0,4-7")
    assert parse_names(["a", "b*"]) == names("b*,a") == parse_names(names("a", "b*"))
    with pytest.raises(SettingError, match="PROFWIN_RANKS"):
        parse_ranks("x", "PROFWIN_RANKS")


def test_importing_selections_is_light():
    """The module imports none of the slow ones, since the first stage of every process waits for it."""
    heavy = [
        "asyncio",
        "dataclasses",
        "enum",
        "fnmatch",
        "inspect",
        "logging",
        "msgspec",
        "pathlib",
        "re",
        "typing",
    ]
    code = f"import sys, profwin.selection; print([m for m in {heavy} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # -S: without site, whose .pth files import what they like
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")

"""Laws of the holder's record and of the mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profwin.registry.holder import (
    MARK_LIMIT,
    NOT_HELD,
    NOT_HELD_OFFSET,
    RECORD_SIZE,
    Holder,
    Mark,
    decode,
    decode_mark,
    encode,
    encode_mark,
    own_record,
    printable,
)
from profwin.registry.process import ProcessIdentity

words = st.text(st.characters(codec="utf-8"), max_size=12)
numbers = st.integers(0, 2**62)
steps = st.none() | st.integers(-(10**17), 10**17)
holders = st.builds(
    Holder,
    pid=st.integers(1, 2**22),
    start=numbers,
    boot=words,
    namespace=numbers,
    uid=st.integers(0, 2**32 - 1),
    run=words,
    kind=st.sampled_from(["rollout", "training"]),
    name=words,
    step=steps,
    held=st.booleans(),
    lease=st.just("") | st.text("0123456789abcdef", min_size=16, max_size=16),
)
processes = st.builds(ProcessIdentity, pid=st.integers(1, 2**22), start=numbers, boot=words, namespace=numbers)
marks = st.builds(Mark, processes=st.lists(processes, max_size=20), run=words, name=words, step=steps)


@given(holders)
def test_record_comes_back(holder):
    """A decoded record is the one that was encoded, whatever is in it, and has the one size."""
    data = encode(holder)
    assert len(data) == RECORD_SIZE
    assert decode(data) == holder


@given(holders)
def test_one_write_marks_a_record_as_released(holder):
    """The release's write changes whether it is held, and nothing else."""
    data = bytearray(encode(holder))
    data[NOT_HELD_OFFSET : NOT_HELD_OFFSET + len(NOT_HELD)] = NOT_HELD
    released = decode(bytes(data))
    assert released is not None
    assert not released.held
    assert encode(released) == data


@given(st.text(max_size=600), st.text(max_size=600), steps)
def test_long_names_are_cut_at_their_end(run, name, step):
    """A run or name of any length fits, as a beginning of itself."""
    holder = decode(own_record(run, "rollout", name, step))
    assert holder is not None
    clean = [text.encode("utf-8", "replace").decode() for text in (run, name)]
    assert clean[0].startswith(holder.run)
    assert clean[1].startswith(holder.name)
    assert len(holder.name) >= min(len(name), 10)
    assert holder.step == step


@given(st.binary(max_size=2 * RECORD_SIZE))
def test_foreign_bytes_never_raise(data):
    """Any bytes decode to nothing, or to a mark of unknown processes."""
    assert decode(data) is None
    assert decode_mark(data) == (Mark([]) if data.strip(b" \n\0") else None)


@given(holders, st.data())
def test_changed_records_are_refused(holder, data):
    """A record of which any byte was changed is refused, unless it says the same."""
    changed = bytearray(encode(holder))
    place = data.draw(st.integers(0, RECORD_SIZE - 1))
    changed[place] = data.draw(st.integers(0, 255))
    assert decode(bytes(changed)) in (None, holder)


@given(holders, holders, st.integers(0, RECORD_SIZE))
def test_torn_records_are_refused(old, new, place):
    """What is half of one record and half of another is refused, unless it is one of the two."""
    torn = decode(encode(new)[:place] + encode(old)[place:])
    assert torn is None or {**_fields(torn), "held": 0} in [{**_fields(whole), "held": 0} for whole in (old, new)]


def _fields(holder):
    return {field: getattr(holder, field) for field in Holder.__struct_fields__}


@given(marks, st.binary(max_size=40))
def test_mark_comes_back(mark, rest):
    """A decoded mark is the one that was encoded, also where an older, longer one left its end behind."""
    assert decode_mark(encode_mark(mark) + rest) == mark


@given(marks, st.integers(1, 60))
def test_cut_marks_are_marks_of_unknown_processes(mark, size):
    """A mark that a death cut short still keeps the device away."""
    data = encode_mark(mark)
    cut = decode_mark(data[: min(size, len(data) - 1)])
    assert cut == Mark([])
    assert not cut.dead()


@given(st.text())
def test_printable_text_is_printable(text):
    """Escaped text has nothing that a terminal obeys, and printable text is left alone."""
    assert printable(text).isprintable()
    assert not text.isprintable() or printable(text) == text


def test_mark_has_a_limit():
    """A mark of more processes than can be read back is refused."""
    with pytest.raises(ValueError, match="too large"):
        encode_mark(Mark([ProcessIdentity(1, 1, "b" * 36, 1)] * MARK_LIMIT))

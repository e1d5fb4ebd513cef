"""Streaming a JSON trace: every complete event, whatever the layout, the pieces and the damage."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profwin.evidence.formats import splitting, stream
from profwin.evidence.formats.damage import Damage
from profwin.evidence.formats.event import nanoseconds
from profwin.evidence.formats.stream import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SMALL = mock.patch.object(splitting, "BATCH", 1000)
HEAD = '{"schemaVersion": 1, "traceEvents": ['
GOOD = '{"ph": "X", "cat": "cpu_op", "name": "good", "pid": 1, "ts": 1, "dur": 2}'
OTHER = GOOD.replace('"pid": 1', '"pid": 2')


def _read(content: bytes | str, size: int = 1 << 16) -> tuple[list[str], Trace, dict[str, str]]:
    """Return the names of the events, the trace, and the places of its findings by code."""
    data = content.encode() if isinstance(content, str) else content
    damage = Damage("a")
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    trace = Trace(pieces, damage)
    names = [event.name for batch in trace.batches() for event in batch]
    return names, trace, {finding.code.name: finding.place for finding in damage.findings()}


TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["},{", '"', "\\", "]}", "[{", '"}, {"ph":', "é\\u00e9", "]"]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
EVENTS = st.lists(
    st.fixed_dictionaries({"name": TEXTS, "ph": st.just("X")}, optional={"args": st.dictionaries(TEXTS, VALUES)}),
    max_size=12,
)
LAYOUTS = st.sampled_from(
    [("", "", ""), ("\n  ", "\n  ", "\n"), (" ", "", " "), ("\r\n", "\r\n\t", ""), ("", " \n", "")]
)


def _layout(events: list[dict[str, Any]], layout: tuple[str, str, str], ascii_only: bool) -> list[str]:
    """Return the texts of events, each with what the layout puts around it."""
    before, between, after = layout
    encoded = [json.dumps(event, ensure_ascii=ascii_only) for event in events]
    return [(before if not number else "," + between) + text + after for number, text in enumerate(encoded)]


@settings(max_examples=300, deadline=None)
@given(EVENTS, LAYOUTS, st.booleans(), st.integers(1, 200), st.integers(1, 400), st.booleans(), st.data())
def test_every_complete_event_before_a_cut_is_kept(
    events: list[dict[str, Any]], layout: tuple[str, str, str], ascii_only: bool, piece: int, batch: int,
    top_level: bool, data: st.DataObject,
) -> None:  # fmt: skip
    """However a trace is laid out, cut into pieces and truncated, exactly the events that are whole come out."""
    head = b"[" if top_level else HEAD.encode()
    tail = b" ]" if top_level else b'], "deviceProperties": [{"id": 0}, {"id": 1}], "traceName": "},{\\"ph\\""}'
    texts = [text.encode("utf-8", "surrogatepass") for text in _layout(events, layout, ascii_only)]
    whole = head + b"".join(texts) + tail
    cut = data.draw(st.integers(len(head), len(whole)))
    position, expected = len(head), 0
    for text in texts:
        position += len(text)
        expected += position - (len(text) - len(text.rstrip())) <= cut
    with mock.patch.object(splitting, "BATCH", batch):
        names, trace, findings = _read(whole[:cut], piece)
    assert names == [event["name"] for event in events[:expected]]
    if cut == len(whole):
        assert findings == {}
        assert top_level or trace.metadata["deviceProperties"] == [{"id": 0}, {"id": 1}]
    else:
        assert findings == {"truncated": f"byte {cut}"}


@pytest.mark.parametrize(
    ("bad", "code", "at"),
    [
        (GOOD.replace("good", "a\x01b"), "control-character", "\x01"),
        (GOOD.replace("good", "C:\\q"), "invalid-escape", "q"),
        (GOOD.replace("good", "\\ud800"), "invalid-escape", "\\ud800"),
        (GOOD.replace("2}", "NaN}"), "not-a-number", "NaN"),
        (GOOD.replace("2}", "-Infinity}"), "not-a-number", "-Inf"),
        (GOOD.replace("2}", "01}"), "not-a-number", "01"),
        (GOOD.replace("good", 'a "quoted" b'), "malformed", "quoted"),
        (GOOD.replace(', "ts"', ' "ts"'), "malformed", '"ts"'),
        ("17", "malformed", "17"),
        (GOOD.replace("2}", "2, " + '"args": {"x": ' + "[" * 5000 + "]" * 5000 + "}}"), "nested-too-deep", "{"),
    ],
)
def test_damage_costs_one_event_and_is_placed(bad: str, code: str, at: str) -> None:
    """Each kind of damage has its code and its byte, the events around it are kept, and the tail is read."""
    text = f'{HEAD}{GOOD}, {bad}, {GOOD}, {GOOD}], "traceName": "a"}}'
    names, trace, findings = _read(text)
    assert names == ["good"] * 3
    assert set(findings) == {code}
    assert trace.metadata["traceName"] == "a"
    start = text.index(bad)
    place = int(findings[code].removeprefix("byte "))
    expected = start + bad.index(at)
    assert expected <= place <= expected + len(at)
    assert _read(text.replace(bad, GOOD))[2] == {}


def test_damage_in_the_last_event_is_no_truncation() -> None:
    """Behind a broken last event the end of the events is found again."""
    for tail in ('], "traceName": "a"}', "]}", "]"):
        text = ("[" if tail == "]" else HEAD) + GOOD + ',{"ph": "X", "name": "a"b"}' + tail
        names, _, findings = _read(text, 7)
        assert names == ["good"]
        assert set(findings) == {"malformed"}


def test_bytes_that_are_no_utf8_are_told_wherever_they_are() -> None:
    """In a field that is not looked at the event is kept; in its name it is not."""
    field = f"{HEAD}{GOOD}]}}".encode().replace(b'"pid"', b'"o\xff"')
    names, _, findings = _read(field)
    assert names == ["good"]
    assert findings == {"not-utf8": f"byte {field.index(0xFF)}"}
    names, _, findings = _read(f"{HEAD}{GOOD}, {GOOD}]}}".encode().replace(b"good", b"g\xff", 1))
    assert names == ["good"]
    assert set(findings) == {"not-utf8"}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"{HEAD}{GOOD},]}}", {"malformed"}),
        (f"{HEAD}{GOOD} {GOOD}]}}", {"malformed"}),
        (f"{HEAD},{GOOD}]}}", {"malformed"}),
        (f"{HEAD}{GOOD}]}} oops", {"trailing-garbage"}),
        (f"{HEAD}{GOOD}]}}{HEAD}{GOOD}]}}", {"interleaved"}),
        (f"{HEAD}{GOOD}, {GOOD[:30]}{HEAD}{GOOD}, {GOOD}]}}", {"malformed", "interleaved"}),
        (f"{HEAD}{GOOD}, {GOOD[:30]}0, {OTHER}, {OTHER}, {GOOD}]}}", {"malformed", "interleaved"}),
        (f"{HEAD}{GOOD}, {GOOD[:30]}0, {OTHER}, {OTHER}]}}", {"malformed", "interleaved"}),
        (f"{HEAD}{GOOD}, {GOOD[:30]}0, {GOOD}, {GOOD}]}}", {"malformed"}),
        (f"{HEAD}{GOOD}]", {"truncated"}),
        (f"{HEAD}{GOOD}]}}\n \n", set()),
        ("\ufeff" + f"{HEAD}{GOOD}]}}", set()),
        ("", {"empty-file"}),
        ("  \n", {"empty-file"}),
        ("nothing", {"malformed"}),
        ('{"a" 1}', {"malformed"}),
        ('{"a": "\x01", "traceEvents": []}', {"control-character"}),
        ('{"a": ' + "[" * 5000, {"nested-too-deep"}),
        ('{"traceEvents": []}', set()),
        ('{"traceEvents": [{"ph": "X", "name": 3, "args": [1]}]}', {"odd-event"}),
        ('{"traceEvents": [{"ph": "X", "args": {"device": [], "correlation": {}, "name": {}, "labels": 1e3}}]}', set()),
    ],
)
def test_what_is_around_events(text: str, codes: set[str]) -> None:
    """Commas, ends, and second writers have their codes, and near twins have none."""
    assert set(_read(text)[2]) == codes
    assert set(_read(text, 5)[2]) == codes


def test_large_values_are_passed_over() -> None:
    """An event or a value beside the events that is larger than the limit costs itself alone."""
    text = '{"big": "%s", "traceEvents": [%s, {"ph": "X", "name": "%s"}, %s], "traceName": "a"}'
    with mock.patch.object(splitting, "LARGEST", 5000), mock.patch.object(stream, "LARGEST", 5000), SMALL:
        names, trace, findings = _read(text % ("a" * 9000, GOOD, '\\"},{' * 3000, GOOD), 1000)
    assert names == ["good", "good"]
    assert set(findings) == {"too-large"}
    assert trace.metadata == {"traceName": "a"}


def test_endless_damage_is_given_up() -> None:
    """After very many breaks reading ends, and says so."""
    with mock.patch.object(splitting, "MOST", 100):
        findings = _read(HEAD + '},{"ph":' * 1000)[2]
    assert set(findings) == {"malformed", "not-judged"}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (b"4458676522690.655", 4458676522690655), (b"1712195495519689.0", 1712195495519689000), (b"7", 7000),
        (b"-0.5", -500), (b"1.7e3", 1700000), (b"1712195495406752.797", 1712195495406752797), (b"1E-3", 1),
        (b"2.9999", 2999), (b'"1736408883688177.930"', 1736408883688177930), (b"0e999999999", 0), (b"1e-99999", 0),
    ],
)  # fmt: skip
def test_times_are_exact(number: bytes, expected: int) -> None:
    """Microseconds in text become whole nanoseconds without a float in between."""
    assert nanoseconds(number) == expected


@pytest.mark.parametrize("number", [b"9" * 30, b"1e99", b"1e999999999", b"1" * 5000])
def test_a_number_may_be_no_time(number: bytes) -> None:
    """What would be later than any clock shows is refused at once."""
    with pytest.raises(OverflowError):
        nanoseconds(number)
    for wrong in (b"", b"null", b'"x"', b"1.x", b"[]"):
        with pytest.raises(ValueError, match="no number"):
            nanoseconds(wrong)

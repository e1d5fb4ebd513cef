"""Files that are told by their content, named for what they are, and not read."""

from __future__ import annotations

import os
import re
from codecs import getincrementaldecoder
from dataclasses import dataclass

from profwin.evidence import codes_others as codes
from profwin.evidence.finding import Finding
from profwin.evidence.formats.database import MAGIC
from profwin.evidence.model import Clock, Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.finding import Code
    from profwin.evidence.model import Slice

__all__ = ["HEAD", "TRACE_NAME", "Kind", "by_name", "identify", "leftover", "named", "read", "recognise", "slices"]

HEAD = 1 << 16
"""Bytes of a file, inflated, that its kind is told by."""
TRACE_NAME = re.compile(
    r"\.(json\.gz|trace\.json|sqlite|sqlite3|nsys-rep|qdrep|qdstrm|pftrace(\.gz)?|perfetto-trace|xplane\.pb|jsonl)$"
)
"""Names that say that a trace was meant."""
_LEFTOVER = re.compile(r"(\.tmp|\.tmp\.(json|gz))$")
_ROCPROF = re.compile(
    rb'"rocprofiler-sdk-tool"|"traceEvents"\s*:\s*\[\s*\{\s*\}|"name"\s*:\s*"\d+ (CPU HIP API|CopyOps)"'
)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")


@dataclass(frozen=True)
class Kind:
    """A kind of file that is not read.

    Attributes:
        name: stable, as in ``Recording.format``.
        label: for people.
        code: of the finding; None where there is nothing to say.
    """

    name: str
    label: str
    code: Code | None = None


NSYS_REPORT = Kind("nsys-report", "report of nsys", codes.NSYS_REPORT)
NSYS_STREAM = Kind("nsys-stream", "unfinished stream of nsys", codes.NSYS_UNFINISHED)
LEFTOVER = Kind("leftover", "leftover temporary file", codes.LEFTOVER)
PERFETTO = Kind("perfetto", "Perfetto trace", codes.PERFETTO)
ROCPROF = Kind("rocprof", "output of rocprof", codes.ROCPROF)
XPLANE = Kind("xplane", "XPlane file", codes.XPLANE)
XTRACE = Kind("xtrace", ".xtrace file", codes.XTRACE)
SNAPSHOT = Kind("memory-snapshot", "memory snapshot of torch", codes.SNAPSHOT)
PICKLE = Kind("pickle", "pickle or archive of torch.save", codes.PICKLE)
DATABASE = Kind("other-database", "sqlite database", codes.OTHER_DATABASE)
ASCEND_DATABASE = Kind("ascend-database", "database of CANN", codes.ASCEND_DATABASE)
JSON = Kind("json", "other JSON")
TEXT = Kind("text", "text")
UNKNOWN = Kind("unknown", "file of no known kind")

_BY_NAME = {
    ".nsys-rep": NSYS_REPORT, ".qdrep": NSYS_REPORT, ".qdstrm": NSYS_STREAM, ".xtrace": XTRACE,
}  # fmt: skip


def leftover(path: str) -> bool:
    """Say whether a name is that of a file that its writer would have renamed when it was complete."""
    return bool(_LEFTOVER.search(os.path.basename(path)))


def identify(head: bytes) -> Kind | None:
    """Tell a kind that its first bytes (inflated) give away; None for any other.

    Files of nsys have no published signature and are told `by_name`.
    """
    if head.startswith(MAGIC):
        if b"rocpd_" in head:
            return ROCPROF
        return ASCEND_DATABASE if b"RANK_DEVICE_MAP" in head or b"STRING_IDS" in head else DATABASE
    if _PICKLE.match(head):
        return SNAPSHOT if b"segments" in head or b"device_traces" in head else PICKLE
    if head.startswith(b"PK\x03\x04"):
        return PICKLE if b"data.pkl" in head[:4096] else UNKNOWN
    if head[:1] == b"\x0a":
        return _protobuf(head)
    return ROCPROF if head.lstrip()[:1] in (b"{", b"[") and _ROCPROF.search(head) else None


def by_name(path: str, head: bytes) -> Kind:
    """Tell what is left by its name, and else whether it is text."""
    kind = _BY_NAME.get(os.path.splitext(path)[1].lower())
    if kind:
        return kind
    if b"\0" in head:
        return UNKNOWN
    try:
        # The end of a full head may cut a character.
        text = getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
    except UnicodeDecodeError:
        return UNKNOWN
    if TRACE_NAME.search(os.path.basename(path)):
        return JSON if text.lstrip()[:1] in ("{", "[") else UNKNOWN
    return JSON if text.lstrip()[:1] in ("{", "[") and path.lower().endswith(".json") else TEXT


def named(kind: Kind, path: str) -> list[Finding]:
    """Return the finding about a file of a kind, where there is something to say."""
    if kind.code is not None:
        return [Finding(kind.code, kind.label, path)]
    if kind is UNKNOWN and TRACE_NAME.search(os.path.basename(path)):
        return [Finding(codes.UNKNOWN, kind.label, path)]
    return []


def recognise(path: str, head: bytes) -> bool:  # noqa: ARG001  # as all formats
    """Say whether the content is of one of these kinds."""
    return identify(head) is not None


def read(root: str, path: str) -> Recording:
    """Return what can be said of a file without reading it: its kind, and the finding."""
    from profwin.evidence.formats.text import head

    whole = os.path.join(root, path)
    first = head(whole, HEAD)
    kind = LEFTOVER if leftover(path) else identify(first) or by_name(path, first)
    return Recording(kind.name, path, Clock("unknown"), findings=named(kind, path))


def slices(root: str, path: str) -> Iterator[Slice]:  # noqa: ARG001  # as all formats
    """Yield nothing."""
    yield from ()


def _protobuf(head: bytes) -> Kind | None:
    """Tell the two traces apart that begin with a message in field 1: a packet of Perfetto, or a plane of XLA."""
    length, at = _varint(head, 1)
    if length <= 0:
        return None
    plane = at
    if head[plane : plane + 1] == b"\x08":  # a plane may begin with its number
        _, plane = _varint(head, plane + 1)
    if head[plane : plane + 1] == b"\x12":
        size, start = _varint(head, plane + 1)
        name = head[start : start + size]
        if 0 < size < 200 and (name.startswith((b"/host:", b"/device:")) or name == b"Task Environment"):
            return XPLANE
    packets, at = 0, 0
    while at < len(head) and head[at : at + 1] == b"\x0a":
        length, start = _varint(head, at + 1)
        if length < 0:
            break
        tag, _ = _varint(head, start)
        # Fields of a packet have numbers below 1000, and types 0, 1, 2 and 5.
        if length and (not 8 <= tag < 8000 or tag & 7 not in (0, 1, 2, 5)):
            return None
        packets, at = packets + 1, start + length
    whole = at == len(head)
    return PERFETTO if packets > 1 or (packets and (whole or at > len(head))) else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and what follows it; -1 where there is none."""
    value = 0
    for index, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    return -1, at

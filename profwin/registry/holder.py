"""Who holds a device: process identities, the holder's record, and the mark left for an engine.

A record is for showing and for deciding whether to wait. Whether a device is held is the kernel's lock alone,
so a record that is stale, torn, foreign or forged never gives or takes a device.
"""

from __future__ import annotations

import functools
import os
import zlib

import msgspec

from profwin.registry.process import ProcessIdentity, gone, identity

__all__ = [
    "MARK_LIMIT",
    "NOT_HELD",
    "NOT_HELD_OFFSET",
    "RECORD_SIZE",
    "Holder",
    "Mark",
    "ProcessIdentity",
    "decode",
    "decode_mark",
    "encode",
    "encode_mark",
    "gone",
    "identity",
    "leased_record",
    "own_record",
    "printable",
    "shortened",
]

VERSION = 1
RECORD_SIZE = 512
"""Bytes of the record area at the start of a lock file."""
NOT_HELD, NOT_HELD_OFFSET = b"false", 8
"""This one write turns any record into one of a device that is not held."""
MARK_LIMIT = 1 << 16
"""Most bytes that a mark may have: about 800 processes."""

_HELD = b'{"held":true ,'
_FREE = b'{"held":false,'
_TAIL_SIZE = RECORD_SIZE - 60  # what follows the step, and is the same for all steps
_NO_STEP, _MOST_STEPS = b"                null", 10**18
_TEXT_SIZE = 96  # most bytes of a run or a name, as JSON
_PLAIN = b" \n\0"


class Holder(msgspec.Struct, frozen=True):
    """What a process wrote about itself after it won a device.

    Attributes:
        pid, start, boot, namespace: see :class:`ProcessIdentity`.
        uid: effective user id.
        run: id of the run.
        kind: ``"rollout"`` or ``"training"``.
        name: of the window or stage.
        step: the step, or None where there is none.
        held: False once the holder began to release.
        lease: random id by which the holder can be asked to release; empty where it cannot be asked. See
            :mod:`profwin.registry.request`.
    """

    pid: int
    start: int
    boot: str
    namespace: int
    uid: int
    run: str
    kind: str
    name: str
    step: int | None
    held: bool = True
    lease: str = ""

    @property
    def identity(self) -> ProcessIdentity:
        """The process that wrote the record."""
        return ProcessIdentity(self.pid, self.start, self.boot, self.namespace)

    def describe(self) -> str:
        """Name the holder in words; safe to print, whoever wrote the record."""
        what = "rollout window" if self.kind == "rollout" else "training stage"
        step = "" if self.step is None else f" of step {self.step}"
        return f"{what} {self.name!r}{step}, pid {self.pid}, uid {self.uid}, run {printable(self.run)}"


class Mark(msgspec.Struct, frozen=True):
    """Says that other processes may be recording on a device, whoever holds its lock.

    Attributes:
        processes: the engine's processes. Empty means that nobody knows them: such a mark can only be
            confirmed.
        run, name, step: of the window that started them.
    """

    processes: list[ProcessIdentity]
    run: str = ""
    name: str = ""
    step: int | None = None

    def dead(self) -> bool:
        """Say whether every process of the mark is proven gone; an empty mark never is."""
        return bool(self.processes) and all(map(gone, self.processes))

    def describe(self) -> str:
        """Name the engine in words; safe to print."""
        step = "" if self.step is None else f" of step {self.step}"
        pids = ", ".join(str(process.pid) for process in self.processes[:8]) or "unknown"
        more = ", ..." if len(self.processes) > 8 else ""
        who = f"engine of window {self.name!r}{step}, pids {pids}{more}, run {printable(self.run)}"
        return f"{who}: its stop is not confirmed"


class _Record(Holder, frozen=True):
    """A holder as it is read: version and checksum tell whether it is ours and whole."""

    profwin: int = 0
    check: int = -1


class _Mark(Mark, frozen=True):
    profwin: int = 0


_RECORD = msgspec.json.Decoder(_Record)
_MARK = msgspec.json.Decoder(_Mark)


def printable(text: str) -> str:
    """Escape everything in ``text`` that could move a cursor or hide text on a terminal."""
    return text if text.isprintable() else repr(text)[1:-1]


def _text(value: str) -> bytes:
    """Encode as a JSON string of at most ``_TEXT_SIZE`` bytes, cut at its end if need be."""
    value = value[:_TEXT_SIZE].encode("utf-8", "replace").decode("utf-8")
    while len(encoded := msgspec.json.encode(value)) > _TEXT_SIZE:
        value = value[: len(value) * 3 // 4]
    return encoded


def shortened(value: str) -> str:
    """Give what a record keeps of a run or a name: a beginning of it that has room there."""
    return msgspec.json.decode(_text(value), type=str)


def _constant(process: ProcessIdentity, uid: int, run: str, kind: str, name: str, lease: str = "") -> tuple[bytes, int]:
    body = b',"profwin":%d,"pid":%d,"start":%d,"boot":%b,"namespace":%d,"uid":%d,"run":%b,"kind":%b,"name":%b%b}' % (
        VERSION,
        process.pid,
        process.start,
        _text(process.boot),
        process.namespace,
        uid,
        _text(run),
        _text(kind),
        _text(name),
        b',"lease":%b' % _text(lease) if lease else b"",
    )
    body = body.ljust(_TAIL_SIZE - 1) + b"\n"
    return body, zlib.crc32(body)


def _finish(head: bytes, constant: tuple[bytes, int], step: int | None) -> bytes:
    tail, checksum = constant
    # A step too long for its place is left out rather than written over what follows.
    text = _NO_STEP if step is None or not -_MOST_STEPS < step < _MOST_STEPS else b"%20d" % step
    return b'%b"check":%10d,"step":%b%b' % (head, zlib.crc32(text, checksum), text, tail)


def encode(holder: Holder) -> bytes:
    """Encode a record of exactly ``RECORD_SIZE`` bytes; a run or name that is too long is cut at its end."""
    constant = _constant(holder.identity, holder.uid, holder.run, holder.kind, holder.name, holder.lease)
    return _finish(_HELD if holder.held else _FREE, constant, holder.step)


@functools.lru_cache(maxsize=512)
def _own_constant(run: str, kind: str, name: str) -> tuple[bytes, int]:
    return _constant(identity(), os.geteuid(), run, kind, name)


@functools.lru_cache(maxsize=64)
def own_record(run: str, kind: str, name: str, step: int | None) -> bytes:
    """Encode the record of this process, fast: a stage that runs for each mini-batch takes the same one many times."""
    return _finish(_HELD, _own_constant(run, kind, name), step)


def leased_record(run: str, kind: str, name: str, step: int | None, lease: str) -> bytes:
    """Encode the record of this process that says by which lease it can be asked to release."""
    return _finish(_HELD, _constant(identity(), os.geteuid(), run, kind, name, lease), step)


os.register_at_fork(after_in_child=_own_constant.cache_clear)
os.register_at_fork(after_in_child=own_record.cache_clear)


def decode(data: bytes) -> Holder | None:
    """Decode a lock file's record; None where it is foreign, torn or of an unknown version. Never raises."""
    if len(data) < RECORD_SIZE or data[:14] not in {_HELD, _FREE}:
        return None
    start = RECORD_SIZE - _TAIL_SIZE
    try:
        record = _RECORD.decode(data[:RECORD_SIZE])
    except (ValueError, msgspec.MsgspecError):
        return None
    if record.check != zlib.crc32(data[start - 20 : start], zlib.crc32(data[start:RECORD_SIZE])):
        return None
    if record.profwin != VERSION or record.pid <= 0 or record.kind not in {"rollout", "training"}:
        return None
    return Holder(*(getattr(record, field) for field in Holder.__struct_fields__))


def encode_mark(mark: Mark) -> bytes:
    """Encode a mark.

    Raises:
        ValueError: it names more processes than fit into ``MARK_LIMIT`` bytes.
    """
    body = msgspec.json.encode(
        {
            "profwin": VERSION,
            "processes": mark.processes,
            "run": mark.run[:_TEXT_SIZE],
            "name": mark.name[:_TEXT_SIZE],
            "step": mark.step,
        }
    )
    data = b"%08x %08x\n%b" % (len(body), zlib.crc32(body), body)
    if len(data) > MARK_LIMIT:
        raise ValueError(f"a mark of {len(mark.processes)} processes is too large: give fewer process ids")
    return data


def decode_mark(data: bytes) -> Mark | None:
    """Decode a mark; None where there is none. Never raises.

    What is there but cannot be read counts as the mark of unknown processes, which is never dead: it may come
    from a later version, or from a write that a death cut short.
    """
    if not data.strip(_PLAIN):
        return None
    try:
        size, checksum = int(data[:8], 16), int(data[9:17], 16)
        body = data[18 : 18 + size]
        mark = _MARK.decode(body) if size == len(body) and checksum == zlib.crc32(body) else None
    except (ValueError, msgspec.MsgspecError):
        mark = None
    if mark is None or mark.profwin != VERSION:
        return Mark([])
    return Mark(mark.processes, mark.run, mark.name, mark.step)

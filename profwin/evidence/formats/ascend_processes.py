"""Processes of an `*_ascend_pt` folder's timeline: groups of rows, which belong to the host or to an NPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from profwin.evidence.formats.damage import Damage
from profwin.evidence.formats.event import DECODER
from profwin.evidence.formats.nesting import Nesting
from profwin.evidence.formats.text import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.event import Event

__all__ = ["HARDWARE", "MOST", "Process", "Processes"]

HARDWARE = ("Ascend Hardware", "HCCL", "Communication")
MOST = 10_000
_NPU = re.compile(r"^NPU(?: (\d{1,6}))?$")
_NAMING = re.compile(rb'"process_(?:name|labels)"')
_REACH = 1 << 11
"""Bytes before and after such a word within which its event is looked for; real ones have about 100."""
_BRACES = 3
_TRIES = 1 << 17


@dataclass
class Process:
    """A row group of the timeline: its name and label, as far as they were met."""

    name: str = ""
    label: str = ""

    @property
    def hardware(self) -> bool:
        """Whether its rows are the device's own."""
        return self.name in HARDWARE

    @property
    def device(self) -> str:
        """The NPU's number as text; empty where the label does not say."""
        found = _NPU.match(self.label)
        return found[1] or "" if found else ""

    @property
    def title(self) -> str:
        """Its name, and of which NPU it is."""
        return f"{self.name} {self.label}" if self.label.startswith("NPU") else self.name


class Processes(dict[bytes, Process]):
    """The processes of one timeline, by their identifier as it is written."""

    def describe(self, event: Event) -> None:
        """Take what an event of phase ``M`` says."""
        if event.args is None:
            return
        pid = bytes(event.pid)
        if pid not in self and len(self) >= MOST:
            return
        if event.name == "process_name" and isinstance(event.args.name, str):
            self.setdefault(pid, Process()).name = event.args.name[:100]
        elif event.name == "process_labels" and isinstance(event.args.labels, str):
            self.setdefault(pid, Process()).label = event.args.labels[:100]

    @classmethod
    def search(cls, path: str) -> Processes:
        """Find the names of a timeline without decoding the rest: they may stand after the events that need them."""
        found, rest, done, tries = cls(), b"", 0, 0
        pieces = Text(path, Damage("")).pieces()
        ended = False
        while not ended and tries < _TRIES:
            piece = next(pieces, b"")
            ended = not piece
            data = rest + piece
            # A word near the end waits for the next round, since the rest of its event may come there.
            limit = len(data) if ended else max(done, len(data) - _REACH)
            for word in _NAMING.finditer(data, done):
                at = word.start()
                if at >= limit:
                    break
                tries += 1
                before = min(at, _REACH)
                found._read(data[at - before : at + _REACH], before)
            rest = data[max(0, limit - _REACH) :]
            done = limit - max(0, limit - _REACH)
        return found

    def _read(self, data: bytes, at: int) -> None:
        """Take the event around a word; the brace before it may be that of its arguments."""
        start = at
        for _ in range(_BRACES):
            start = data.rfind(b"{", 0, start)
            if start < 0:
                return
            end = Nesting().advance(data, start)
            if end <= at:
                continue
            try:
                (event,) = DECODER.decode(b"[" + data[start:end] + b"]")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if event.ph == "M":
                self.describe(event)
                return

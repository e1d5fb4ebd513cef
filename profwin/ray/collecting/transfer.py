"""The transfer: pieces of files, a few of them on their way at any time, in the order in which they are written."""

from __future__ import annotations

import errno
import re
from collections import deque
from dataclasses import dataclass

from profwin.ray.collecting.giver import LostError
from profwin.ray.collecting.landing import Landing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from profwin.ray.collecting.destination import Destination
    from profwin.ray.collecting.giver import Entry, Giver
    from profwin.ray.collecting.wants import Wanted

__all__ = ["Transfer"]

PIECE = 4 << 20
AHEAD = 4
"""Pieces that are asked for before one is taken: with `PIECE` what both sides hold in memory."""
_STOP = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(eq=False)
class _Current:
    """A file on its way."""

    wanted: Wanted
    giver: Giver
    entry: Entry
    landing: Landing
    failed: bool = False


class Transfer:
    """Fetch files.

    Args:
        destination: where to.
        progress: is told after each piece.

    Attributes:
        files, already: how many were fetched, and how many were there.
        bytes, kept: that were read, and that were there of files that are whole or were begun.
        problems: paths with what is wrong.
        renamed: paths of files that have another name, with that name.
    """

    def __init__(self, destination: Destination, progress: Callable[[], None]) -> None:
        self._destination, self._progress = destination, progress
        self.files = self.already = self.bytes = self.kept = 0
        self.problems: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        self._open: set[_Current] = set()

    def fetch(self, wanted: Iterable[Wanted]) -> None:
        """Fetch all that can be had; a node that is lost in between is asked no more.

        Raises:
            OSError: there is no room.
        """
        waiting = list(wanted)
        for turn in range(max((each.turn for each in waiting), default=-1) + 1):
            mine = [each for each in waiting if each.turn == turn]
            while left := {each: chosen for each in mine if not each.done and (chosen := each.giver()) is not None}:
                self._round(left)
                for each, (giver, _entry) in left.items():
                    if not each.done and not giver.lost:
                        self._fail(each, OSError("it was not read to its end"))
        for each in waiting:
            path = "/".join(each.parts)
            if not each.done:
                self.problems.setdefault(path, f"not fetched: {each.givers[0][0].lost}")

    def _round(self, wanted: Iterable[Wanted]) -> None:
        on_way: deque[tuple[_Current, int, Any]] = deque()
        pieces = self._pieces(wanted)
        try:
            while True:
                while len(on_way) < AHEAD and (piece := next(pieces, None)) is not None:
                    current, offset, length = piece
                    entry = current.entry
                    asked = current.giver.ask("read", entry.folder, entry.path, entry.key, offset, length)
                    on_way.append((current, length, asked))
                if not on_way:
                    break
                current, length, asked = on_way.popleft()
                if not current.failed:
                    self._take(current, length, asked)
        finally:
            for current in self._open:
                current.landing.close()
            self._open.clear()

    def _pieces(self, wanted: Iterable[Wanted]) -> Iterator[tuple[_Current, int, int]]:
        for each in wanted:
            current = self._begin(each)
            if current is None:
                continue
            for offset in range(current.landing.offset, current.entry.size, PIECE):
                if current.failed or current.giver.lost:
                    break
                yield current, offset, min(PIECE, current.entry.size - offset)

    def _begin(self, wanted: Wanted) -> _Current | None:
        """Find out what of a file is there already; None if nothing is to be read of it."""
        chosen = wanted.giver()
        if chosen is None:
            return None
        giver, entry = chosen
        try:
            landing = Landing(
                self._destination, wanted.parts, entry.size, entry.mtime, _tag(giver), rival=wanted.rival
            )  # fmt: skip
        except OSError as error:
            self._fail(wanted, error)
            return None
        current = _Current(wanted, giver, entry, landing)
        self._open.add(current)
        try:
            landing.prepare(lambda descriptor, length: giver.agreed(entry, descriptor, length))
            if landing.whole:
                wanted.done = True
                self.already, self.kept = self.already + 1, self.kept + entry.size
                self._name(current)
            else:
                self.kept += 0 if wanted.begun else landing.offset
                wanted.begun = True
                if landing.offset < entry.size:
                    return current
                self._finish(current)
        except LostError:
            pass  # another node may have it
        except OSError as error:
            self._fail(wanted, error)
        self._close(current)
        self._progress()
        return None

    def _take(self, current: _Current, length: int, asked: Any) -> None:
        landing = current.landing
        try:
            data, why = current.giver.piece(current.giver.take(asked), current.entry, length)
            if data is None:
                raise OSError(why)  # noqa: TRY301  # handled like any other trouble with one file
            landing.write(data)
            self.bytes += length
            if landing.offset == current.entry.size:
                self._finish(current)
                self._close(current)
        except LostError:
            self._close(current)
        except OSError as error:
            self._close(current)
            self._fail(current.wanted, error)
        self._progress()

    def _finish(self, current: _Current) -> None:
        current.landing.finish()
        current.wanted.done = True
        self.files += 1
        self._name(current)

    def _name(self, current: _Current) -> None:
        path, landing = "/".join(current.wanted.parts), current.landing
        if landing.name != current.wanted.parts[-1]:
            self.renamed[f"{path} of {current.giver.label}"] = landing.name

    def _close(self, current: _Current) -> None:
        current.failed = not current.wanted.done
        current.landing.close()
        self._open.discard(current)

    def _fail(self, wanted: Wanted, error: OSError) -> None:
        """Say that a file cannot be had, or stop where no file can."""
        if error.errno in _STOP:
            raise error
        wanted.done = True
        self.problems["/".join(wanted.parts)] = error.strerror or str(error)


def _tag(giver: Giver) -> str:
    """Return what a node's files are told by where their names are taken."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", giver.host)[:60] or "node"

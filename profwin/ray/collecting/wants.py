"""What is wanted: each file once, however many nodes have it, and each of several different ones of one name."""

from __future__ import annotations

from dataclasses import dataclass

from profwin.ray.collecting.giver import SEGMENT, LostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from profwin.ray.collecting.giver import Entry, Giver

__all__ = ["Wanted", "wants"]


@dataclass(eq=False)
class Wanted:
    """A file to collect.

    Attributes:
        parts: of its path in the folder that is collected into.
        givers: who has it, each with what it has: the first that still answers is asked.
        turn: 0, or more for one whose name others have, too: it comes after them.
        rival: whether it is one of several different files of that path.
        begun: whether something of it was asked for.
        done: whether nothing more is to be tried.
    """

    parts: tuple[str, ...]
    givers: list[tuple[Giver, Entry]]
    turn: int = 0
    rival: bool = False
    begun: bool = False
    done: bool = False

    def giver(self) -> tuple[Giver, Entry] | None:
        """Return whom to ask; None if nobody is left."""
        return next(((giver, entry) for giver, entry in self.givers if not giver.lost), None)

    @property
    def size(self) -> int:
        """In bytes."""
        return self.givers[0][1].size


def wants(listed: Mapping[Giver, Sequence[tuple[tuple[str, ...], Entry]]]) -> list[Wanted]:
    """Return what there is to collect, in the order of the paths.

    Nodes that share a file system list the same files. Two entries of one path are one file if the inode, the size and
    the time of the last change are the same, since nothing is read then; else if one begins with all of the other, as a
    journal that has grown between two listings.

    Args:
        listed: for each node the paths below the destination, and the entries.
    """
    paths: dict[tuple[str, ...], list[tuple[Giver, Entry]]] = {}
    for giver, entries in listed.items():
        for parts, entry in entries:
            paths.setdefault(parts, []).append((giver, entry))
    found: list[Wanted] = []
    for parts in sorted(paths):
        # The longest first, of which others are beginnings; of equally long ones the newest.
        there = sorted(paths[parts], key=lambda pair: (-pair[1].size, -pair[1].mtime, pair[0].label))
        groups: list[Wanted] = []
        for giver, entry in there:
            group = next((group for group in groups if _same(group.givers[0], (giver, entry))), None)
            if group is None:
                groups.append(Wanted(parts, [(giver, entry)]))
            elif entry.size == group.size:
                group.givers.append((giver, entry))
        groups.sort(key=lambda group: -group.givers[0][1].mtime)
        for turn, group in enumerate(groups):
            group.turn, group.rival = turn, len(groups) > 1
        found += groups
    return found


def _same(longer: tuple[Giver, Entry], shorter: tuple[Giver, Entry]) -> bool:
    """Say whether two entries of one path are one file, or one the beginning of the other."""
    (giver, entry), (other, candidate) = longer, shorter
    if (entry.key[1], entry.size, entry.mtime) == (candidate.key[1], candidate.size, candidate.mtime):
        return True
    if giver.boot and giver.boot == other.boot and entry.key == candidate.key:
        return True
    try:
        for offset in range(0, candidate.size, SEGMENT):
            length = min(SEGMENT, candidate.size - offset)
            ours = giver.digest(entry, offset, length)
            if not ours or ours != other.digest(candidate, offset, length):
                return False
    except LostError:
        return False
    return True

"""The result of collecting: what is there now, and what is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Collected"]


@dataclass
class Collected:
    """What :func:`profwin.ray.collect` has done.

    Attributes:
        directory: that was collected into.
        runs: that are in it now, each in a folder of its name.
        files, bytes: that were fetched.
        already: files that were there.
        kept: bytes that were there, of those and of files that had been begun.
        nodes: bytes that each node gave.
        missing: what is not there, by node or file, with the reason.
        renamed: files whose names were taken by different ones, with the names that they have.
        notes: what may be of interest besides.
        seconds: that it took.
    """

    directory: str
    runs: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    already: int = 0
    kept: int = 0
    nodes: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return bool(self.runs) and not self.missing

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"whole": self.whole, **asdict(self)}

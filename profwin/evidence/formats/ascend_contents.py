"""What the results of an `*_ascend_pt` folder hold, whichever export they are."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.busy import Busy

__all__ = ["Contents"]


@dataclass
class Contents:
    """What was read.

    Attributes:
        busy: by number of the NPU, as text; empty where there is none.
        steps: device tasks of each profiler step, in order; empty where that cannot be told.
        extent: first and last moment of device work.
        communicated: whether there is communication.
        host: identity of the host, and its name.
        session: start and end by the results' account, ns since 1970.
        bad: rows without usable times.
    """

    busy: dict[str, Busy] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    extent: tuple[int, int] | None = None
    communicated: bool = False
    host: tuple[str, str] = ("", "")
    session: tuple[int, int] | None = None
    bad: int = 0

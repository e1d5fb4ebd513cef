"""The examination: every probe once, none of which can end it, and what follows for what was asked for."""

from __future__ import annotations

from functools import partial

import msgspec

from profwin.doctor.backends import backends
from profwin.doctor.devices import devices
from profwin.doctor.engines import engines
from profwin.doctor.line import NO, UNKNOWN, Line
from profwin.doctor.locks import FOLDER, locks
from profwin.doctor.others import kernel, others, variables_of_others
from profwin.doctor.servers import server
from profwin.doctor.variables import asked_backends, variables
from profwin.doctor.versions import clocks, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from profwin.doctor.host import Host

    Probe = Callable[[Host], Iterable[Line]]

__all__ = ["PROBES", "Examination", "examine"]

PROBES: tuple[tuple[str, tuple[Probe, ...]], ...] = (
    ("versions", (versions, clocks)),
    ("variables", (variables, variables_of_others)),
    ("backends", (backends,)),
    ("engines", (engines,)),
    ("devices", (devices,)),
    ("locks", (locks,)),
    ("others", (others, kernel)),
)
"""The sections, in their order, with what looks at them."""
_DEFAULT = ("record",)


class Examination(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        sections: lines by the name of their section; each server has a section of its own, ``server URL``.
        asked: the backends that were asked for.
        problems: in words, what keeps them, or a server that was asked about, from recording.
    """

    sections: dict[str, list[Line]]
    asked: tuple[str, ...]
    problems: list[str]


def examine(host: Host, asked: Sequence[str] = (), urls: Iterable[str] = ()) -> Examination:
    """Look at everything.

    Args:
        host: the machine.
        asked: names of backends; none: those of ``PROFWIN_BACKEND``, else the default.
        urls: of servers to look at.

    Never raises but for Ctrl-C: what a probe raises is a line of its section.
    """
    asked = tuple(asked) or asked_backends(host.environment) or _DEFAULT
    sections = {name: list(_lines(host, name, probes)) for name, probes in PROBES}
    for url in urls:
        shown = url.rpartition("@")[2]  # what stands before it may be a password
        sections[f"server {shown}"] = list(_lines(host, "server", (partial(server, url=url),)))
    return Examination(sections, asked, list(_problems(sections, asked)))


def _lines(host: Host, name: str, probes: Iterable[Probe]) -> Iterator[Line]:
    for probe in probes:
        try:
            yield from probe(host)
        except Exception as error:  # noqa: BLE001  # a probe that fails is an answer, and the rest goes on
            yield Line(name, UNKNOWN, f"looking at it failed: {type(error).__name__}: {error}")


def _problems(sections: dict[str, list[Line]], asked: Iterable[str]) -> Iterator[str]:
    known = {line.name: line for line in sections["backends"]}
    exclusive = False
    for name in asked:
        line = known.get(name)
        if line is None:
            yield f"backend {name!r}: there is none of this name"
        elif line.state in (NO, UNKNOWN):
            yield f"backend {name!r}: {line.detail}"
        exclusive = exclusive or (line is not None and bool(line.data.get("exclusive")))
    # What PROFWIN_* variables say wrongly is refused by `configure`.
    yield from (line.detail for name in ("variables", "devices") for line in sections[name] if line.state == NO)
    for line in sections["locks"]:
        if line.name == FOLDER and line.state == NO and exclusive:
            yield f"{line.name}: {line.detail}"
    for section, lines in sections.items():
        if section.startswith("server "):
            yield from (f"{section}: {line.detail}" for line in lines if line.state == NO)

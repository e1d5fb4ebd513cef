"""The variables that set profwin up: whether they are understood, and those that look like one and are none."""

from __future__ import annotations

from profwin.doctor.line import NO, NOTE, OK, WARNING, Line
from profwin.errors import SettingError
from profwin.registry.host import VARIABLE as PRETENCE
from profwin.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from profwin.doctor.host import Host

__all__ = ["OF_CHILDREN", "asked_backends", "variables"]

OF_CHILDREN = (
    "PROFWIN_ATTEMPT",
    "PROFWIN_LAUNCH",
    "PROFWIN_PARENT",
    "PROFWIN_PATCH_CHILDREN",
    "PROFWIN_PATCH_COMMAND",
    "PROFWIN_PATCH_MAIN",
    "PROFWIN_PATCH_MODULES",
    "PROFWIN_PATCH_PLAN",
    "PROFWIN_RUN_DIRECTORY",
)
"""Variables that profwin gives to the processes that it starts, besides settings."""
_PREFIX = "PROFWIN_"
_HIDDEN = ("PROFWIN_FINISH_COMMAND", "PROFWIN_PATCH_COMMAND")  # a command may hold a password
_LONGEST = 60


def variables(host: Host) -> Iterator[Line]:
    """Look at every variable whose name begins with ``PROFWIN_``."""
    given = {name: value for name, value in sorted(host.environment.items()) if name.startswith(_PREFIX)}
    settings = [f"{_PREFIX}{name.upper()}" for name in Settings.__annotations__]
    for name, value in given.items():
        if name in settings:
            yield _setting(name, value)
        elif name in OF_CHILDREN:
            yield Line(name, NOTE, f"{_shown(name, value)}; profwin gives it to the processes that it starts")
        elif name == PRETENCE:
            yield Line(
                name,
                WARNING,
                f"{_shown(name, value)}: no device is guarded against processes of the same host that lack it",
                "unset it; it is for demonstrations and tests",
            )
        else:
            yield _unknown(name, [*settings, *OF_CHILDREN, PRETENCE])
    if not given:
        yield Line("PROFWIN_*", NOTE, "none is set")
        return
    problem = _refused(given)
    # What a single variable is refused for has been said above.
    if problem is not None and not problem.startswith(tuple(given)):
        yield Line("PROFWIN_*", NO, f"together they are refused: {problem}")


def asked_backends(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the backends that ``PROFWIN_BACKEND`` asks for; empty where it is not set or makes no sense."""
    value = environment.get("PROFWIN_BACKEND", "")
    return tuple(name for part in value.split(",") if (name := part.strip()))


def _setting(name: str, value: str) -> Line:
    if not value:
        return Line(name, NOTE, "empty: it counts as not set")
    problem = _refused({name: value})
    if problem is not None and problem.startswith(name):
        return Line(name, NO, problem)
    return Line(name, OK, _shown(name, value))


def _refused(environment: Mapping[str, str]) -> str | None:
    try:
        Settings({}, environment)
    except SettingError as error:
        return str(error)
    return None


def _unknown(name: str, known: list[str]) -> Line:
    from difflib import get_close_matches

    nearest = get_close_matches(name, known, 1)
    remedy = f"did you mean {nearest[0]}?" if nearest else "unset it, or see the page on settings for what there is"
    return Line(name, WARNING, "there is no such variable, so it changes nothing", remedy)


def _shown(name: str, value: str) -> str:
    if name in _HIDDEN:
        return "set; not shown"
    return repr(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")

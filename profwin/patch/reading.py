"""Reading: plans from the files that hold them, by the name of a shipped one or by path.

A path of a plan is ``parameter.part.part``: the first is a parameter of the target (``self``, any argument, with its
default where it is not passed) or, in events after a call, ``return``; then attributes, or keys and indices of what is
a mapping or a sequence. Nothing is called and nothing is evaluated.
"""

from __future__ import annotations

import os
import stat
import sys

from profwin.errors import PlanError
from profwin.patch.nearest import nearest
from profwin.patch.parsing import check_together, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from profwin.patch.plan import Plan

    Names: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
    Source: TypeAlias = tuple[str, str]

__all__ = ["find", "plans_of", "read_plan", "read_text", "shipped", "sources"]

_FOLDER = os.path.join(os.path.dirname(__file__), "plans")
_LONGEST = 256_000


def shipped() -> tuple[str, ...]:
    """Return the names of the plans that profwin ships."""
    return tuple(sorted(name.removesuffix(".toml") for name in os.listdir(_FOLDER) if name.endswith(".toml")))


def find(names: Names) -> tuple[Plan, ...]:
    """Return the plans of these names.

    Args:
        names: of shipped plans, or paths of TOML files; several in a sequence or, in a text, separated by commas.

    Raises:
        PlanError: one is not there or is no plan, or two have a role for the same target.
    """
    return plans_of(sources(names))


def sources(names: Names) -> tuple[Source, ...]:
    """Return, for each name or path, what errors call it and its text.

    Raises:
        PlanError: there is no such plan or file, or it cannot be read.
    """
    given = [names] if isinstance(names, str | os.PathLike) else list(names)
    each = [name for item in given for name in _split(item)]
    if not each:
        raise PlanError("plan", "", names, "names no plan", _remedy(""))
    return tuple(_source(name) for name in each)


def plans_of(read: Iterable[Source]) -> tuple[Plan, ...]:
    """Return the plans that `sources` read.

    Raises:
        PlanError: one is no plan, or two have a role for the same target.
    """
    plans = tuple(read_text(text, source) for source, text in read)
    check_together(plans)
    return plans


def read_plan(name: str | os.PathLike[str]) -> Plan:
    """Return the plan that is shipped under a name, else the one in the TOML file at a path.

    Raises:
        PlanError: there is no such plan or file, or it is no plan.
    """
    return plans_of((_source(name),))[0]


def read_text(text: str, source: str = "plan") -> Plan:
    """Return the plan that a TOML text is.

    Args:
        text: the TOML document.
        source: what errors call it until its name is known.

    Raises:
        PlanError: it is no TOML or no plan.
    """
    loads = _loader(source)
    try:
        document = loads(text)
    except (ValueError, RecursionError) as error:  # tomllib lets the errors of int() pass, which are no TOMLDecodeError
        raise PlanError(source, "", "the file", f"is not TOML: {error}", "correct it there") from None
    return parse(document, source)


def _loader(source: str) -> Callable[[str], object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            needed = "is not installed, which Python 3.10 needs to read plans"
            raise PlanError(source, "", "tomli", needed, "install profwin[patch]") from None
    return tomllib.loads


def _split(item: str | os.PathLike[str]) -> list[str | os.PathLike[str]]:
    if not isinstance(item, str) or os.path.exists(item):
        return [item]
    return [part.strip() for part in item.split(",") if part.strip()]


def _remedy(name: str) -> str:
    return f"name a TOML file or a shipped plan: {nearest(name, shipped())}"


def _source(name: str | os.PathLike[str]) -> Source:
    path = os.fspath(name)
    if isinstance(name, str) and name in shipped():
        return name, _text(os.path.join(_FOLDER, f"{name}.toml"), name)
    if os.sep not in path and not path.endswith(".toml") and not os.path.exists(path):
        raise PlanError("plan", "", path, "is neither a shipped plan nor a file", _remedy(path))
    return path, _text(path, path)


def _text(path: str, source: str) -> str:
    try:
        # A FIFO or a device would be waited for: only its type is looked at first.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise PlanError(source, "", path, "is no file", "name a TOML file")
        with open(path, "rb") as file:
            content = file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, PlanError):
            raise
        remedy = _remedy(source) if isinstance(error, FileNotFoundError) else "name a file that can be read"
        problem = getattr(error, "strerror", None) or str(error)
        raise PlanError(source, "", path, f"cannot be read ({problem})", remedy) from None
    if len(content) > _LONGEST:
        raise PlanError(source, "", path, f"has more than {_LONGEST} bytes", "name a plan")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(source, "", path, f"is not UTF-8: {error.reason}", "save it as UTF-8") from None

"""Versions: is what is installed what a plan is for."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.patch.plan import Package, Plan

__all__ = ["Mismatch", "installed", "mismatches", "outside"]


@dataclass(frozen=True)
class Mismatch:
    """A package that is not known to be within a plan's bounds.

    Attributes:
        package: of the plan.
        text: a sentence that says so.
        other: the installed version, where it is known to be another one.
    """

    package: Package
    text: str
    other: str | None = None


def installed(name: str) -> str | None:
    """Return the version of an installed package; None where it is not installed or does not say."""
    from importlib import metadata

    try:
        found: object = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
    return found if isinstance(found, str) else None  # a damaged installation has none


def outside(plan: Plan) -> tuple[str, ...]:
    """Return a sentence for each package of a plan that is not known to be within the plan's bounds."""
    return tuple(each.text for each in mismatches(plan))


def mismatches(plan: Plan) -> tuple[Mismatch, ...]:
    """Return each package of a plan that is not known to be within the plan's bounds.

    Pre-releases are compared like others, in the order of PEP 440. Call it where the targets are: another
    environment has other versions.
    """
    return tuple(found for package in plan.packages if (found := _outside(plan.name, package)))


def _outside(plan: str, package: Package) -> Mismatch | None:
    wanted = f"plan {plan!r} is for {package.name} {package.versions}".rstrip()
    found = installed(package.name)
    if found is None:
        return Mismatch(package, f"{wanted}, which is not installed here")
    if not package.versions:
        return None
    try:
        from packaging.specifiers import SpecifierSet
        from packaging.version import InvalidVersion, Version
    except ImportError:
        return Mismatch(package, f"{wanted}; {found} could not be compared with that: install profwin[patch]")
    try:
        if SpecifierSet(package.versions).contains(Version(found), prereleases=True):
            return None
    except InvalidVersion:
        return Mismatch(package, f"{wanted}; {found!a} is no version that can be compared")
    return Mismatch(package, f"{wanted}; {found} is installed: targets may be missing or behave differently", found)

"""Versions: is what is installed what a plan is for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.patch.plan import Package, Plan

__all__ = ["installed", "outside"]


def installed(name: str) -> str | None:
    """Return the version of an installed package; None where it is not installed or does not say."""
    from importlib import metadata

    try:
        found: object = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
    return found if isinstance(found, str) else None  # a damaged installation has none


def outside(plan: Plan) -> tuple[str, ...]:
    """Return a sentence for each package of a plan that is not known to be within the plan's bounds.

    Pre-releases are compared like others, in the order of PEP 440. Call it where the targets are: another
    environment has other versions.
    """
    return tuple(sentence for package in plan.packages if (sentence := _outside(plan.name, package)))


def _outside(plan: str, package: Package) -> str | None:
    wanted = f"plan {plan!r} is for {package.name} {package.versions}".rstrip()
    found = installed(package.name)
    if found is None:
        return f"{wanted}, which is not installed here"
    if not package.versions:
        return None
    try:
        from packaging.specifiers import SpecifierSet
        from packaging.version import InvalidVersion, Version
    except ImportError:
        return f"{wanted}; {found} could not be compared with that: install profwin[patch]"
    try:
        if SpecifierSet(package.versions).contains(Version(found), prereleases=True):
            return None
    except InvalidVersion:
        return f"{wanted}; {found!a} is no version that can be compared"
    return f"{wanted}; {found} is installed: targets may be missing or behave differently"

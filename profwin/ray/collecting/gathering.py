"""The gathering: asks every node what it has, and has all that fetched into one folder."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress

from profwin.errors import SettingError
from profwin.ray.collecting.destination import Destination
from profwin.ray.collecting.giver import LostError
from profwin.ray.collecting.manifest import OWN, renew
from profwin.ray.collecting.names import checked
from profwin.ray.collecting.result import Collected
from profwin.ray.collecting.transfer import Transfer
from profwin.ray.collecting.wants import wants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from profwin.ray.collecting.giver import Entry, Giver

    Progress = Callable[[int, int, int, int], object]

__all__ = ["gather"]

REPORTS = "nsight"


def gather(
    directory: str,
    givers: Sequence[Giver],
    *,
    source: str | None,
    default: str,
    run: str | None,
    every: bool,
    reports: Mapping[Giver, str],
    progress: Progress | None,
) -> Collected:
    """Collect from nodes that can be asked.

    Args:
        directory: to collect into.
        givers: of the living nodes.
        source: the output directory; see :meth:`profwin.ray.collecting.source.Source.describe`.
        default: that of a node that has none of its own.
        run: the run's name; None: the one that was written to last.
        every: all runs instead.
        reports: for each node the folder of nsys reports that are to be collected, too.
        progress: is called with files and bytes that are done, and with those that there are.

    Raises:
        SettingError: the folder is a source itself, or another process collects into it.
        OSError: the folder cannot be written to, or there is no room.
    """
    begun = time.monotonic()
    result = Collected(os.path.abspath(directory))
    for giver, answer in [(giver, giver.ask("describe", source, default)) for giver in givers]:
        with suppress(LostError):
            giver.described(giver.take(answer, begun + giver.seconds))
    result.runs = _chosen(result, givers, run, every)
    with Destination(result.directory) as destination:
        listed: dict[Giver, list[tuple[tuple[str, ...], Entry]]] = {giver: [] for giver in givers}
        for name in result.runs:
            places = {giver: os.path.join(giver.root, name) for giver in givers}
            _list(result, destination, (name,), places, listed)
        if result.runs and reports:
            _list(result, destination, (result.runs[-1], REPORTS), reports, listed)
        wanted = wants({giver: entries for giver, entries in listed.items() if not giver.lost})
        total = len(wanted), sum(each.size for each in wanted)

        def tell() -> None:
            if progress is not None:
                progress(transfer.files + transfer.already, transfer.bytes + transfer.kept, *total)

        transfer = Transfer(destination, tell)
        transfer.fetch(wanted)
        for name in result.runs:
            try:
                renew(destination, name)
            except OSError as error:
                result.missing[f"{name}/manifest.json"] = error.strerror or str(error)
    result.files, result.bytes = transfer.files, transfer.bytes
    result.already, result.kept = transfer.already, transfer.kept
    result.renamed = transfer.renamed
    result.missing |= transfer.problems
    result.missing |= {f"node {giver.label}": giver.lost for giver in givers if giver.lost}
    result.nodes = {giver.label: giver.bytes for giver in givers}
    result.seconds = time.monotonic() - begun
    return result


def _chosen(result: Collected, givers: Sequence[Giver], run: str | None, every: bool) -> list[str]:
    """Return the runs to collect, the one that was written to last at the end; say why there are none."""
    newest: dict[str, int] = {}
    for giver in givers:
        for name, when in giver.runs.items():
            newest[name] = max(when, newest.get(name, 0))
    there = sorted(newest, key=lambda name: newest[name])
    roots = ", ".join(sorted({giver.root for giver in givers if giver.root})) or "no node that answers"
    if run is not None:
        if run in newest:
            return [run]
        result.missing[f"run {run}"] = f"not in {roots}; there: {', '.join(there[-10:]) or 'none'}"
        return []
    if not there:
        result.missing["runs"] = f"none in {roots}"
    return there if every else there[-1:]


def _list(
    result: Collected,
    destination: Destination,
    parts: tuple[str, ...],
    places: Mapping[Giver, str],
    listed: dict[Giver, list[tuple[tuple[str, ...], Entry]]],
) -> None:
    """Have nodes list a folder each, for a folder below the destination."""
    with ExitStack() as stack:
        marker = stack.enter_context(destination.marked(parts))
        asked = {giver: giver.ask("begin", place, marker) for giver, place in places.items() if not giver.lost}
        for giver, reference in asked.items():
            try:
                if giver.take(reference) is True:
                    raise SettingError(
                        "directory", result.directory, f"another folder: node {giver.label} writes the run there"
                    )
                entries, left = giver.listing(places[giver])
            except LostError:
                continue
            result.missing |= {f"{path} of {giver.label}": why for path, why in left.items()}
            for entry in entries:
                inside = (OWN,) if entry.parts == ("manifest.json",) and len(parts) == 1 else entry.parts
                path = "/".join((*parts, *inside))
                try:
                    listed[giver].append((checked(path), entry))
                except ValueError as error:
                    result.missing[f"{path} of {giver.label}"] = str(error)

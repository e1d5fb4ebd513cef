"""The check: everything below a directory is read and judged, journals first and traces second."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field

from profwin.errors import SettingError
from profwin.evidence import codes_check as codes
from profwin.evidence.expectation import Expectation, expect
from profwin.evidence.expectation import options as asked_for
from profwin.evidence.finding import Finding
from profwin.evidence.mixture import mixed_traces
from profwin.evidence.presence import presence
from profwin.evidence.reading import FORMATS, read_directory
from profwin.evidence.remotes import remotes
from profwin.evidence.result import Result, in_order, summarise
from profwin.evidence.roster import roster
from profwin.evidence.run import Run, load
from profwin.evidence.runs import find_runs, prefix_of
from profwin.evidence.unmixed import unmixed
from profwin.evidence.wholeness import check_traces, unnamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.model import Recording
    from profwin.evidence.reading import Content
    from profwin.evidence.workers import Progress

__all__ = ["Options", "check", "make_options"]


@dataclass(frozen=True)
class Options:
    """What is asked for.

    Attributes:
        expectation: steps, stages, ranks and roles; where it says nothing, a run's own settings count.
        format: of which there must be recordings; None for any.
        group_timeout: of the process group, in seconds, where a journal does not say it.
        workers: how many processes read; None for as many as are worth it, 0 for this one alone.
    """

    expectation: Expectation = field(default_factory=Expectation)
    format: str | None = None
    group_timeout: float | None = None
    workers: int | None = None


def make_options(
    *,
    steps: str | None = None,
    stages: str | None = None,
    ranks: str | None = None,
    roles: str | None = None,
    format: str | None = None,  # noqa: A002  # it is what the option is called
    group_timeout: str | None = None,
) -> Options:
    """Return options from text, as the command line has them.

    Raises:
        SettingError: one is malformed.
    """
    if format is not None and format not in FORMATS:
        raise SettingError("--format", format, f"one of {', '.join(FORMATS)}")
    return Options(asked_for(steps, stages, ranks, roles), format, _seconds(group_timeout))


def _seconds(text: str | None) -> float | None:
    try:
        seconds = None if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if seconds is not None and not 0 < seconds < math.inf:
        raise SettingError("--group-timeout", text, "a number of seconds above 0")
    return seconds


def check(
    directory: str | os.PathLike[str], options: Options | None = None, progress: Progress | None = None
) -> Result:
    """Check everything below a directory. Nothing in it is changed, and nothing in it is trusted.

    Args:
        directory: of a run, of several, or of any profiler's output.
        options: what is asked for.
        progress: called with how many recordings are read and how many there are.

    Raises:
        OSError: the directory itself cannot be read.
    """
    began = time.monotonic()
    options = options or Options()
    root = os.fspath(directory)
    content = read_directory(root, options.workers, progress or _silent)
    runs = [_load(root, place) for place in find_runs(root)]
    by_path = {recording.path: recording for recording in content.recordings}
    rest = unnamed(runs, content.recordings)
    findings = [*content.findings, *_whole(content, runs, options)]
    for run in runs:
        findings += _guarded(run.path("."), _of_run(run, by_path, content.unread, options))
    findings += _guarded("", roster(_outside(runs, rest), options.expectation))
    findings += _guarded("", mixed_traces(rest))
    return Result(
        directory=root,
        findings=in_order(findings),
        recordings=content.recordings,
        runs=runs,
        rows=summarise(runs, rest),
        seconds=time.monotonic() - began,
    )


def _guarded(file: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Pass findings on; what breaks off their search is one itself, and the others are kept."""
    try:
        yield from findings
    except Exception as error:  # noqa: BLE001  # whatever the journals have brought about: no input ends a check
        yield _broken_off(file, error)


def _broken_off(file: str, error: Exception) -> Finding:
    return Finding(codes.CHECK_FAILED, f"{type(error).__name__}: {error}"[:500], file)


def _silent(done: int, total: int) -> None:
    """Say nothing."""


def _load(root: str, path: str) -> Run:
    """Load a run; one that breaks this off is empty, but for the finding that says so."""
    prefix = prefix_of(root, path)
    try:
        return load(path, prefix=prefix)
    except Exception as error:  # noqa: BLE001  # as in `_guarded`
        run = Run(path, prefix)
        run.findings.append(_broken_off(run.path("."), error))
        return run


def _outside(runs: list[Run], recordings: list[Recording]) -> list[Recording]:
    """Return the recordings that lie in no run's directory: what a run's own presence is, its journals say."""
    prefixes = tuple(run.path("") for run in runs)
    return [recording for recording in recordings if not recording.path.startswith(prefixes)]


def _whole(content: Content, runs: list[Run], options: Options) -> Iterator[Finding]:
    """Say what concerns the directory as a whole."""
    if not runs and not content.recordings:
        found = f"; {len(content.journals)} journals lie here: check the folder above" if content.journals else ""
        yield Finding(codes.NOTHING_FOUND, f"no recording and no run{found}")
    elif options.format and not any(each.format == options.format for each in content.recordings):
        formats = ", ".join(sorted({each.format for each in content.recordings})) or "journals alone"
        yield Finding(codes.FORMAT_MISSING, f"none of {options.format}; there are {formats}")


def _of_run(run: Run, recordings: dict[str, Recording], unread: set[str], options: Options) -> Iterator[Finding]:
    """Judge one run: its journals, then the traces that they name."""
    expectation = expect(run, options.expectation)
    yield from run.findings
    yield from presence(run, expectation)
    yield from unmixed(run, timeout=options.group_timeout)
    yield from remotes(run)
    yield from check_traces(run, recordings, unread)

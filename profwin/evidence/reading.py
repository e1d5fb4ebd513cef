"""Reading: everything below a directory, told apart by `profwin.evidence.walk`, each read by its format."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module

from profwin.evidence import codes_check, codes_others
from profwin.evidence.finding import Finding
from profwin.evidence.walk import walk
from profwin.evidence.workers import Failure, Job, read_all, usual_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.model import Recording
    from profwin.evidence.walk import Found
    from profwin.evidence.workers import Progress

__all__ = ["FORMATS", "Content", "read_directory", "read_one"]

FORMATS = ("kineto", "ascend", "nsys")
"""Formats that are read, and not only named; each is a module of `profwin.evidence.formats`."""

_COMPRESSED = 12
"""How many times a compressed file is larger than it looks, as a rule."""
_LARGEST_PARTS = 200


@dataclass
class Content:
    """What lies below a directory.

    Attributes:
        recordings: profiler output that was read, by path.
        journals: paths of journals, in a run's directory or not.
        unread: paths of recordings that could not be read.
        findings: about recordings, and about what is not read.
    """

    recordings: list[Recording] = field(default_factory=list)
    journals: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)


def read_one(root: str, path: str, kind: str) -> Recording | Finding:
    """Read one recording; whoever cannot open it says so in a finding."""
    try:
        recording: Recording = import_module(f"profwin.evidence.formats.{kind}").read(root, path)
    except OSError as error:
        return Finding(codes_others.UNREADABLE, error.strerror or type(error).__name__, path)
    return recording


def read_directory(root: str, workers: int | None, progress: Progress) -> Content:
    """Read everything below a directory.

    Args:
        root: the directory.
        workers: how many processes read; None for as many as are worth it, 0 for this one alone.
        progress: called with how many recordings are read and how many there are.

    Raises:
        OSError: the directory itself cannot be read.
    """
    content = Content()
    wanted: list[Found] = []
    for found in _entries(root, content):
        content.findings += found.findings
        if found.format is not None:
            wanted.append(found)
        elif found.kind == "journal":
            content.journals.append(found.path)
    jobs = [Job((root, found.path, found.kind), _size(os.path.join(root, found.path))) for found in wanted]
    number = usual_number(jobs) if workers is None else workers
    for index, answer in read_all("profwin.evidence.reading:read_one", jobs, number, progress):
        if isinstance(answer, Failure):
            code = codes_check.READER_KILLED if answer.killed else codes_check.READER_FAILED
            problem: Finding | None = Finding(code, answer.reason, wanted[index].path)
        else:
            problem = answer if isinstance(answer, Finding) else None
        if problem is None:
            content.recordings.append(answer)
            content.findings += answer.findings
        else:
            content.findings.append(problem)
            content.unread.add(problem.file)
    content.recordings.sort(key=lambda recording: recording.path)
    return content


def _entries(root: str, content: Content) -> Iterator[Found]:
    """Pass on what is below a directory; a walk that breaks off is a finding, and what it found before counts."""
    try:
        yield from walk(root)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a file has brought about: no input ends a check
        content.findings.append(Finding(codes_check.CHECK_FAILED, f"{type(error).__name__}: {error}"[:500]))


def _size(path: str) -> int:
    """Return about how many bytes there are to read."""
    try:
        if not os.path.isdir(path):
            return os.stat(path).st_size * (_COMPRESSED if path.endswith(".gz") else 1)
        total = 0
        with os.scandir(path) as entries:
            for _, entry in zip(range(_LARGEST_PARTS), entries, strict=False):
                deeper = entry.is_dir(follow_symlinks=False) and entry.name.startswith("ASCEND")
                total += _size(entry.path) if deeper else entry.stat(follow_symlinks=False).st_size
        return total
    except OSError:
        return 0

"""The tree of files that is checked: every entry is told by its content; none blocks, loops or is trusted."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from itertools import islice

from profwin.evidence import codes_files, codes_others
from profwin.evidence.finding import Finding
from profwin.evidence.formats import ascend, kineto, nsys, others, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.finding import Code
    from profwin.evidence.model import Format, Recording

__all__ = ["Found", "open_recordings", "walk"]

DEPTH = 64
"""Folders below the root that are looked into."""
ENTRIES = 100_000
"""Entries of one folder that are looked at; their names are in memory at one time."""
FILES = 2_000_000
"""Entries of the tree that are looked at."""

_JOURNAL = re.compile(rb'\s*\{\s*"kind"\s*:\s*"process"')
_MANIFEST = re.compile(r"manifest(~.+)?\.json")
"""Other names than ``manifest.json`` are those of manifests that were collected."""
_MSPROF = re.compile(r"^PROF_\d+_\d+_[0-9a-zA-Z]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Found:
    """One entry of the tree.

    Attributes:
        path: relative to the root, as the file system has it: bytes that are no UTF-8 are surrogates.
        kind: ``"kineto"``, ``"ascend"``, ``"nsys"``, ``"journal"``, ``"manifest"``, a kind of `others`, ``"empty"``,
            or ``"problem"`` for what could not be looked at.
        format: what reads it; None where nothing does.
        findings: what is to be said of it without reading it.
    """

    path: str
    kind: str
    format: Format | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def reason(self) -> str:
        """Why it is not read; empty where it is."""
        return "" if self.format else "; ".join(finding.code.meaning for finding in self.findings) or self.kind


def walk(root: str) -> Iterator[Found]:
    """Yield what lies below a folder, sorted by name, inner folders where their names stand.

    An `*_ascend_pt` folder is one entry. Links to files outside are read, those to what lies inside are passed over,
    since that is met anyway, and those to folders outside are named. Raises OSError where the root itself cannot be
    read.
    """
    inside = os.path.realpath(root)
    with os.scandir(inside):
        pass
    left = FILES
    waiting = [("", 0)]  # folders with their depth; other entries with -1
    while waiting:
        path, depth = waiting.pop()
        if depth < 0:
            yield from _entry(root, path, inside)
            continue
        yield from _about_folder(path)
        whole = os.path.join(root, path)
        closed = _closed(whole, path, depth)
        if closed:
            yield closed
            continue
        listed = _listed(whole, path)
        if isinstance(listed, Found):
            yield listed
            continue
        allowed = min(ENTRIES, left)
        if len(listed) > allowed:
            yield _problem(path, codes_others.TOO_MANY, f"{len(listed)} or more entries here; {allowed} are looked at")
        # The last is taken first.
        chosen = sorted(listed[:allowed], key=lambda pair: os.fsencode(pair[0]), reverse=True)
        left -= len(chosen)
        waiting += [(os.path.join(path, name), depth + 1 if folder else -1) for name, folder in chosen]


def open_recordings(root: str) -> Iterator[Recording]:
    """Yield all recordings of a tree, read; what cannot be opened any more is a recording with a finding."""
    from profwin.evidence.model import Clock, Recording

    for found in walk(root):
        if found.format is None:
            if found.findings:
                yield Recording(found.kind, found.path, Clock("unknown"), findings=list(found.findings))
            continue
        try:
            recording = found.format.read(root, found.path)
        except OSError as error:
            recording = Recording(found.kind, found.path, Clock("unknown"))
            recording.findings.append(Finding(codes_others.UNREADABLE, str(error.strerror), found.path))
        recording.findings[:0] = found.findings
        yield recording


def _closed(whole: str, path: str, depth: int) -> Found | None:
    """Return what a folder is that is not looked into entry by entry."""
    if depth >= DEPTH:
        return _problem(path, codes_others.TOO_DEEP, f"{depth} folders below the root")
    if ascend.recognise(whole):
        return Found(path or ".", "ascend", ascend)
    if _MSPROF.match(os.path.basename(path)) and os.path.isdir(os.path.join(whole, "host")):
        return _problem(path, codes_others.MSPROF, "a folder of CANN", "msprof")
    return None


def _listed(whole: str, path: str) -> list[tuple[str, bool]] | Found:
    """Return names and whether each is a folder, one more than are looked at; a finding where it cannot be read."""
    try:
        with os.scandir(whole) as entries:
            return [(entry.name, _is_folder(entry)) for entry in islice(entries, ENTRIES + 1)]
    except OSError as error:
        return _problem(path, codes_others.UNREADABLE, str(error.strerror))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _about_folder(path: str) -> Iterator[Found]:
    name = os.path.basename(path)
    if others.TRACE_NAME.search(name) or name.endswith(".json"):
        yield _problem(path, codes_others.FOLDER_LIKE_FILE, "a folder")
    if _CONTROL.search(name):
        yield _problem(path, codes_others.ODD_NAME, "a folder")


def _entry(root: str, path: str, inside: str) -> Iterator[Found]:
    """Yield what a file, a link or something else is."""
    whole = os.path.join(root, path)
    if _CONTROL.search(os.path.basename(path)):
        yield _problem(path, codes_others.ODD_NAME, "a file")
    try:
        if stat.S_ISLNK(os.lstat(whole).st_mode):
            target = os.path.realpath(whole)
            if target == inside or target.startswith(inside.rstrip(os.sep) + os.sep):
                if not os.path.exists(whole):
                    yield _problem(path, codes_others.LINK, "it leads to nothing")
                return
        status = os.stat(whole)
    except OSError as error:
        code = codes_others.LINK if os.path.islink(whole) else codes_others.UNREADABLE
        yield _problem(path, code, str(error.strerror))
        return
    if stat.S_ISDIR(status.st_mode):
        yield _problem(path, codes_others.LINK, "it leads to a folder outside")
    elif not stat.S_ISREG(status.st_mode):
        yield _problem(path, codes_others.SPECIAL_FILE, _special(status.st_mode))
    else:
        yield _file(whole, path, status.st_size)


def _file(whole: str, path: str, size: int) -> Found:
    name = os.path.basename(path)
    if others.leftover(name):
        return Found(path, others.LEFTOVER.name, None, tuple(others.named(others.LEFTOVER, path)))
    if not size:
        meant = others.TRACE_NAME.search(name) or name.endswith(".json")
        return Found(path, "empty", None, (Finding(codes_files.EMPTY_FILE, "0 bytes", path),) if meant else ())
    try:
        head = text.head(whole, others.HEAD)
        if _JOURNAL.match(head):
            return Found(path, "journal")
        if _MANIFEST.fullmatch(name) and b'"attempts"' in head and b'"processes"' in head:
            return Found(path, "manifest")
        if nsys.recognise(whole, head):
            return Found(path, "nsys", nsys)
        kind = others.identify(head)
        if kind is None and kineto.recognise(whole, head):
            return Found(path, "kineto", kineto)
    except OSError as error:
        return _problem(path, codes_others.UNREADABLE, str(error.strerror))
    kind = kind or others.by_name(path, head)
    return Found(path, kind.name, None, tuple(others.named(kind, path)))


def _problem(path: str, code: Code, detail: str, kind: str = "problem") -> Found:
    return Found(path, kind, None, (Finding(code, detail, path or "."),))


def _special(mode: int) -> str:
    for test, label in ((stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a character device")):
        if test(mode):
            return label
    return "a block device"

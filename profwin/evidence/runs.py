"""Runs: where they lie below a directory."""

from __future__ import annotations

import os

from profwin.evidence.file import open_regular

__all__ = ["find_runs", "is_run", "prefix_of"]

DEEPEST = 8
MOST_DIRECTORIES = 200_000


def is_run(directory: str) -> bool:
    """Say whether a directory is a run's: it has journals, or a manifest of profwin."""
    try:
        with os.scandir(os.path.join(directory, "journal")) as entries:
            if any(entry.name.endswith(".jsonl") for entry in entries):
                return True
    except OSError:
        pass
    try:
        with open_regular(os.path.join(directory, "manifest.json")) as file:
            head = file.read(4096)
    except OSError:
        return False
    return b'"run"' in head and b'"attempts"' in head


def prefix_of(directory: str, path: str) -> str:
    """Return where a run's directory lies below another one; empty where it is that one."""
    relative = os.path.relpath(path, directory)
    return "" if relative == os.curdir else relative


def find_runs(directory: str) -> list[str]:
    """Return the directories of runs at or below a directory, sorted. Follows no links, and goes no deeper than 8."""
    found, waiting, seen = [], [(os.fspath(directory), 0)], 0
    while waiting and seen < MOST_DIRECTORIES:
        path, depth = waiting.pop()
        seen += 1
        if is_run(path):
            found.append(path)
            continue
        if depth == DEEPEST:
            continue
        try:
            with os.scandir(path) as entries:
                below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        waiting += [(each, depth + 1) for each in below]
    return sorted(found)

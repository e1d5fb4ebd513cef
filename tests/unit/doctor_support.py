"""A host of a test's own, for the probes of ``profwin doctor``."""

from __future__ import annotations

from profwin.doctor import Host


def make_host(root, environment=None, files=None, programs=None):
    """Return a host with these files and running programs, and nothing else.

    Args:
        root: an empty directory.
        environment: its variables.
        files: contents by path.
        programs: names by process number.
    """
    shown = {f"/proc/{pid}/comm": f"{name}\n" for pid, name in (programs or {}).items()}
    for path, text in {**(files or {}), **shown}.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Host(str(root), environment or {})


def by_name(lines):
    """Return lines by their names; none may be there twice."""
    lines = list(lines)
    found = {line.name: line for line in lines}
    assert len(found) == len(lines)
    return found


def states(lines):
    """Return the states of lines by their names."""
    return {name: line.state for name, line in by_name(lines).items()}

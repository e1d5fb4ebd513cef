"""Sources that are asked without Ray, and runs for them to give."""

from __future__ import annotations

import os
from typing import Any

from profwin.ray.collecting.gathering import gather
from profwin.ray.collecting.giver import Giver
from profwin.ray.collecting.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from profwin.ray.collecting.result import Collected


class Near(Giver):
    """A giver whose source is in this process.

    Args:
        root: the output directory there.
        host: its name; its boot, too.
        source: what answers.

    Attributes:
        read: the paths and offsets that were read.
        asked: the names of all questions.
        dies: after how many reads it no longer answers.
    """

    def __init__(self, root: Path, host: str, source: Any = None) -> None:
        super().__init__(f"node-{host}", source or Source(), 5.0)
        self._given, self._name = str(root), host
        self.read: list[tuple[str, int]] = []
        self.asked: list[str] = []
        self.dies: int | None = None

    def ask(self, method, *arguments):
        """Remember the question."""
        self.asked.append(method)
        return method, arguments

    def wait(self, reference, seconds):
        """Answer it now."""
        method, arguments = reference
        if method == "describe":
            return {**self._handle.describe(self._given, ""), "host": self._name, "boot": self._name}
        if method == "read":
            if self.dies is not None and len(self.read) >= self.dies:
                raise TimeoutError
            self.read.append((arguments[1], arguments[3]))
        return getattr(self._handle, method)(*arguments)


def collected(directory: Path, *givers: Giver, **options: Any) -> Collected:
    """Collect from sources."""
    chosen = {"source": None, "default": "", "run": None, "every": False, "reports": {}, "progress": None, **options}
    return gather(str(directory), givers, **chosen)


def write(root: Path, run: str = "run", **files: bytes | str) -> Path:
    """Write files of a run; ``__`` in a name is a slash, ``_DOT_`` a dot."""
    for name, data in files.items():
        path = root / run / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return root / run


def landed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files of sources by the names that they get: a manifest is gathered anew, and theirs kept beside it."""
    return {name.replace("run/manifest.json", "run/manifest~own.json"): data for name, data in files.items()}


def tree(directory: Path) -> dict[str, bytes]:
    """Return everything below a directory: files with what is in them, links with where they lead."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(directory))] = os.fsencode(os.readlink(path))
        elif path.is_file():
            found[str(path.relative_to(directory))] = path.read_bytes()
    return found

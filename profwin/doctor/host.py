"""The machine as the probes see it: files, variables and processes, which a test can replace."""

from __future__ import annotations

import glob
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Host"]

_MOST = 1 << 20


class Host:
    """One machine, from inside one process.

    Args:
        root: stands before every path.
        environment: variables; None for this process's.
        say: told, in words, what is looked at.
    """

    def __init__(
        self,
        root: str = "",
        environment: Mapping[str, str] | None = None,
        say: Callable[[str], object] = str,
    ) -> None:
        self.root, self.say = root, say
        self.environment = os.environ if environment is None else environment

    def text(self, path: str) -> str | None:
        """Read the beginning of a file; None where it is missing or may not be read."""
        try:
            with open(self.root + path, encoding="utf-8", errors="replace") as file:
                return file.read(_MOST)
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Say whether there is a file or directory."""
        return os.path.exists(self.root + path)

    def paths(self, pattern: str) -> list[str]:
        """List what matches a pattern, sorted."""
        return sorted(path.removeprefix(self.root) for path in glob.glob(self.root + pattern))

    def programs(self) -> dict[int, str]:
        """Return the name of the program of each process that can be seen, as the kernel keeps it: 15 characters."""
        found = {}
        for path in self.paths("/proc/[0-9]*/comm"):
            name = (self.text(path) or "").strip()
            if name:
                found[int(path.split("/")[2])] = name
        return found

    def running(self, *names: str) -> dict[int, str]:
        """Return the processes of some programs, by number.

        Args:
            names: of programs; longer ones count by what the kernel keeps.
        """
        wanted = {name[:15] for name in names}
        return {pid: name for pid, name in self.programs().items() if name in wanted}

"""Starts TensorBoard on a directory and prints what its profiler plugin serves to the browser, as JSON.

    python read_tensorboard.py DIRECTORY RUNS

RUNS is how many directories with traces there are: the plugin loads one after the other in the background.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

PATIENCE = 60.0


class Server:
    """TensorBoard in a process of its own, on a free port of this machine alone."""

    def __init__(self, directory: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", directory, "--host", "127.0.0.1", "--port", "0",
             "--load_fast", "false"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._address = ""

    def __enter__(self) -> Server:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(r"^TensorBoard \S+ at (\S+)", line):
                self._address = found[1].rstrip("/")
                return self
        raise RuntimeError("TensorBoard did not start")

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)

    def ask(self, page: str, **query: str) -> Any:
        """Return one of the plugin's JSON answers, retried until the plugin has it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(f"{self._address}/data/plugin/pytorch_profiler/{page}?{urlencode(query)}") as answer:
                    return json.load(answer)
            except URLError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def runs(self, count: int) -> list[str]:
        """Return the runs it found, once there are so many and all are loaded, or it has no patience left."""
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.ask("runs")
            if (len(answer["runs"]) >= count and not answer["loading"]) or time.monotonic() > deadline:
                return list(answer["runs"])
            time.sleep(0.2)


def main() -> None:
    """Print the versions, and of each run the workers, their views and their operators."""
    found: dict[str, Any] = {}
    with Server(sys.argv[1]) as server:
        for run in server.runs(int(sys.argv[2])):
            workers = found[run] = {}
            for worker in server.ask("workers", run=run, view="Operator"):
                (span,) = server.ask("spans", run=run, worker=worker)
                table = server.ask("operation/table", run=run, worker=worker, span=span, group_by="Operation")
                workers[worker] = {
                    "views": server.ask("views", run=run),
                    "operators": [row["name"] for row in table["data"]],
                }
    versions = {name: version(name) for name in ("tensorboard", "torch-tb-profiler")}
    print(json.dumps({"versions": versions, "runs": found}))


if __name__ == "__main__":
    main()

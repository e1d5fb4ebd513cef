"""HTTP servers that confirm a start and a stop, after a while or at once, and leave a small trace at each stop."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT, environment

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Servers"]

_TRACE = gzip.compress(b'{"schemaVersion": 1, "traceEvents": []}')


class Servers:
    """Servers in one process of their own, on ports of 127.0.0.1.

    Args:
        directory: where they leave their traces.
        count: how many.
        delay: seconds that a start and a stop take.
    """

    def __init__(self, directory: str, count: int, delay: float) -> None:
        command = [sys.executable, "-m", "benchmarks.engine_server", directory, str(count), str(delay)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment(), text=True
        )
        assert self._process.stdout is not None
        ports = self._process.stdout.readline().split()
        if not ports:
            raise RuntimeError(f"the servers ended with {self._process.wait()}")
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]

    def __enter__(self) -> Servers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


class _Handler(BaseHTTPRequestHandler):
    directory, delay = "", 0.0
    prefixes: dict[int, str]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Confirm."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        port = self.connection.getsockname()[1]
        time.sleep(self.delay)
        if self.path == "/start_profile":
            self.prefixes[port] = json.loads(body)["profile_prefix"]
        else:
            name = f"{self.prefixes[port]}_rank0.{time.time_ns()}.pt.trace.json.gz"
            with open(os.path.join(self.directory, name), "wb") as file:
                file.write(_TRACE)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main() -> None:
    """Serve until standard input ends."""
    _Handler.directory, count, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    _Handler.delay, _Handler.prefixes = delay, {}
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Handler) for _ in range(count)]
    for server in servers:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*(server.server_port for server in servers), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

"""A server with vLLM's or SGLang's routes and answers, as read in their source, that can be told to misbehave.

A process of its own, ``python engine_stand_in.py KIND DIRECTORY [OPTION=VALUE ...]``; it says its port. Its worker is a
child, which records and writes small Kineto traces. ``POST /faults`` takes JSON that says what goes wrong from then on:

- ``start_delay``, ``stop_delay``: seconds that pass before an answer; the stop itself takes place at its end.
- ``start_hold``, ``stop_hold``: it is not answered while this is set.
- ``start``, ``stop``: what comes instead of an answer, see `Fault`; ``times``: how often.
- ``silent``: the next windows are confirmed and leave no file. ``truncated``: they leave half a file.
- ``late_file``: seconds by which the file is completed after the answer.

``GET /state`` says what it was told and whether its worker records.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_CONFLICT = "A profiling session is already active. Call /stop_profile before starting another session."
_WORKER = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


class Stand:
    """What the server knows: its session, its worker, its faults, and all that it was told."""

    def __init__(self, kind: str, directory: str, options: dict[str, str]) -> None:
        self.kind, self.directory, self.options = kind, directory, options
        self.faults: dict[str, Any] = {}
        self.told: list[Any] = []
        self.session: dict[str, Any] | None = None
        self.armed: dict[str, Any] | None = None
        self.recording: dict[str, Any] | None = None
        self.began = 0
        self.mutex = threading.RLock()
        self.ordered = threading.Lock()  # as the lock that vLLM's front end holds through a start or a stop
        self.worker = subprocess.Popen([sys.executable, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def begin(self, request: dict[str, Any]) -> None:
        """Let the worker record."""
        self.recording, self.began = request, time.time_ns()

    def end(self) -> None:
        """Let the worker stop, and write its traces."""
        request, self.recording = self.recording, None
        if request is None or self.faults.get("silent"):
            return
        for rank in range(int(self.options.get("workers", "1"))):
            self.write(request, rank)

    def write(self, request: dict[str, Any], rank: int) -> None:
        """Write the trace of one worker."""
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": os.getpid(), "tid": 1, "ts": 1.0, "dur": 2.0}
        trace = {"schemaVersion": 1, "baseTimeNanoseconds": self.began, "traceEvents": [event]}
        data = gzip.compress(json.dumps(trace).encode())
        prefix = request.get("profile_prefix")
        if self.kind == "vllm":
            name = f"{prefix}_" if prefix else ""
            workers = f"dp0_pp0_tp{rank}_dcp0_ep0_rank{rank}" if "workers" in self.options else f"rank{rank}"
            path = os.path.join(self.directory, f"{name}{workers}.{time.time_ns()}.pt.trace.json.gz")
            with open(os.path.join(self.directory, f"{name}{workers}.profiler_out.txt"), "w") as file:
                file.write("a table\n")
        else:
            folder = request.get("output_dir") or self.directory
            name = f"{prefix}-" if prefix else ""
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, f"{name}{request.get('profile_id') or time.time()}-TP-{rank}.trace.json.gz")
        half, late = len(data) // 2, self.faults.get("late_file", 0)
        file = open(path, "wb", buffering=0)  # noqa: SIM115  # it may be written to the end later
        file.write(data[:half] if late or self.faults.get("truncated") else data)
        if late:
            threading.Timer(late, lambda: (file.write(data[half:]), file.close())).start()
        else:
            file.close()

    def generate(self, steps: int = 1) -> None:
        """Do forward steps, which begin what was armed and end what has had its steps."""
        for _ in range(steps):
            with self.mutex:
                if self.armed is not None and self.recording is None:
                    self.begin(self.armed)
                    self.armed = None
                elif self.recording is not None and self.recording.get("left") is not None:
                    self.recording["left"] -= 1
                    if self.recording["left"] <= 0:
                        self.end()

    def start(self, request: dict[str, Any]) -> tuple[int, str | dict[str, Any]]:
        """Answer a start."""
        return self._start_vllm(request) if self.kind == "vllm" else self._start_sglang(request)

    def stop(self) -> tuple[int, str | dict[str, Any]]:
        """Answer a stop."""
        if self.kind == "vllm":
            self.end()
            self.session = self.armed = None
            return 200, ""
        if self.recording is None:
            return 500, "Internal Server Error"  # "Profiling is not in progress. Call /start_profile first."
        self.end()
        self.armed = None
        return 200, "Stop profiling. This will take some time.\n"

    def _start_vllm(self, request: dict[str, Any]) -> tuple[int, str | dict[str, Any]]:
        if self.options.get("profiler") == "none":
            return 404, {"error": {"message": "Not Found", "type": "Not Found", "param": None, "code": 404}}
        if self.session is not None:
            return 409, {"error": {"message": _CONFLICT, "type": "Conflict", "param": None, "code": 409}}
        prefix = request.get("profile_prefix")
        bad = prefix is not None and not (isinstance(prefix, str) and _PREFIX.match(prefix))
        for name in ("delay_iterations", "max_iterations"):
            bad = bad or (request.get(name) is not None and (type(request[name]) is not int or request[name] < 0))
        if bad:
            return 400, {"error": {"message": "profile_prefix must be ...", "type": "BadRequestError", "code": 400}}
        self.session = request
        request = {**request, "left": request.get("max_iterations") or None}
        if request.get("delay_iterations"):
            self.armed = request
        else:
            self.begin(request)
        return 200, ""

    def _start_sglang(self, request: dict[str, Any]) -> tuple[int, str | dict[str, Any]]:
        request = {**request, "left": request.get("num_steps")}
        if request.get("start_step") or request.get("profile_by_stage"):
            if self.recording is not None:
                return 500, "Internal Server Error"  # "Profiling is already in progress. Call /stop_profile first."
            self.armed = request
        else:
            # The second session takes over what is open, under the name of the first.
            self.begin(self.recording or request)
        return 200, "Start profiling.\n"


class Handler(BaseHTTPRequestHandler):
    """The routes."""

    protocol_version = "HTTP/1.1"
    stand: Stand

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Say what it was told."""
        stand = self.stand
        state = {"told": stand.told, "recording": stand.recording is not None, "worker": stand.worker.pid}
        self.answer(200, {**state, "armed": stand.armed is not None})

    def do_POST(self) -> None:
        """Do what a route is for, or what goes wrong there."""
        stand = self.stand
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = json.loads(body) if body else {}
        if self.path == "/faults":
            stand.faults = request
            self.answer(200, "")
        elif self.path == "/generate":
            stand.generate(int(request.get("steps", 1)))
            self.answer(200, "")
        elif self.path in ("/start_profile", "/stop_profile"):
            action = self.path[1:].partition("_")[0]
            stand.told.append([action, request, self.headers.get("Authorization")])
            wanted = stand.options.get("token")
            if wanted and self.headers.get("Authorization") != f"Bearer {wanted}":
                self.answer(401, {"error": "Unauthorized"})
            else:
                self.act(action, request)
        else:
            self.answer(404, {"error": {"message": "Not Found", "code": 404}})

    def act(self, action: str, request: dict[str, Any]) -> None:
        """Start or stop, perhaps late, perhaps wrongly."""
        stand = self.stand
        fault = stand.faults.get(action)
        if fault is not None and stand.faults.get("times", 1) > 0:
            stand.faults["times"] = stand.faults.get("times", 1) - 1
            if self.misbehave(fault, action, request):
                return
        with stand.ordered:
            time.sleep(stand.faults.get(f"{action}_delay", 0))
            while stand.faults.get(f"{action}_hold"):
                time.sleep(0.01)
            with stand.mutex:
                status, said = stand.start(request) if action == "start" else stand.stop()
        self.answer(status, said)

    def misbehave(self, fault: str, action: str, request: dict[str, Any]) -> bool:
        """Do something wrong; say whether that is all.

        ``refuse:STATUS`` answers so and does nothing. ``mumble:STATUS`` does it and answers so. ``hang`` never answers;
        ``cut`` does it and closes in the middle of the answer; ``close`` closes without an answer. ``die`` kills the
        worker and the server; ``orphan`` the server alone. ``huge`` answers without end, ``trickle`` byte by byte;
        ``page`` with a page for people; ``away`` with a redirect; ``echo`` with the token; ``busy`` as if a session
        were in progress, in words.
        """
        stand, (what, _, value) = self.stand, fault.partition(":")
        if what in ("mumble", "cut"):
            with stand.mutex:
                stand.start(request) if action == "start" else stand.stop()
        acts = {
            "refuse": self.complain, "mumble": self.complain, "hang": self.hang, "cut": self.cut, "close": self.cut,
            "die": self.die, "orphan": self.die, "huge": self.endless, "trickle": self.endless, "page": self.page,
            "away": self.away, "echo": self.echo, "busy": self.busy,
        }  # fmt: skip
        if what in acts:
            acts[what](what, value)
        return what in acts

    def complain(self, _: str, status: str) -> None:
        """Answer with an error."""
        self.answer(int(status), {"error": {"message": f"it says {status}", "code": int(status)}})

    def hang(self, *_: str) -> None:
        """Never answer."""
        time.sleep(3600)

    def cut(self, what: str, _: str) -> None:
        """Close the connection, perhaps in the middle of an answer."""
        if what == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nStop")
        self.close_connection = True
        self.connection.shutdown(2)

    def die(self, what: str, _: str) -> None:
        """Be gone, perhaps with the worker."""
        if what == "die":
            self.stand.worker.kill()
        os._exit(1)

    def page(self, _: str, status: str) -> None:
        """Answer as what stands between might."""
        self.answer(int(status), "<html><body>Internal Server Error</body></html>")

    def away(self, *_: str) -> None:
        """Lead elsewhere."""
        self.send_response(307)
        self.send_header("Location", "http://elsewhere/start_profile")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def echo(self, *_: str) -> None:
        """Say what nobody should."""
        self.answer(500, {"error": {"message": f"bad header {self.headers.get('Authorization')}\x1b[2J"}})

    def busy(self, *_: str) -> None:
        """Say in words that a session is open."""
        self.answer(500, {"detail": "Profiling is already in progress. Call /stop_profile first."})

    def endless(self, what: str, _: str) -> None:
        """Answer without end: an error with a body, or a success whose headers come byte by byte."""
        huge = what == "huge"
        head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 99999999999\r\n\r\n"
        self.wfile.write(head if huge else b"HTTP/1.1 200 OK\r\nX-Slow: ")
        self.close_connection = True
        try:
            while True:
                self.wfile.write(b"x" * (65536 if huge else 1))
                time.sleep(0.0 if huge else 0.02)
        except OSError:
            pass  # the client has had enough

    def answer(self, status: int, said: str | dict[str, Any]) -> None:
        """Answer."""
        data = (said if isinstance(said, str) else json.dumps(said)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(said, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            pass  # nobody waits any more


def main() -> None:
    """Serve until standard input ends, or it is killed."""
    kind, directory, *options = sys.argv[1:]
    Handler.stand = Stand(kind, directory, dict(option.split("=", 1) for option in options if option[0] != "-"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    Handler.stand.worker.kill()


if __name__ == "__main__":
    main()

"""What the tests with vLLM share: a real server on the CPU, in the environment that ``VLLM_PYTHON`` names."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

import pytest
from vllm_guard import end, members

import profwin

if TYPE_CHECKING:
    from profwin.engines import VLLMServer

HERE = Path(__file__).parent
PYTHON = os.environ.get("VLLM_PYTHON", "")
PATIENCE = 240.0
"""Seconds that a server may take until it answers: about 25 on two idle cores, where nothing else starts."""
DEVICE = "pretend:served"
FEW, LONG = 16, 80
"""Tokens, for an answer each: a stop takes 0.4 s and 2 s after them, on two idle cores, without stacks in the trace."""

needs_vllm = pytest.mark.environment("VLLM_PYTHON", "vllm")


def make_model(folder: Path) -> Path:
    """Write the model that the servers serve."""
    subprocess.run(
        [PYTHON, str(HERE / "vllm_model.py"), str(folder)],
        env={**_environment(), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    return folder


class Server:
    """A ``vllm serve`` in a session of its own; it begins to start at once, and all of it ends with the ``with`` block.

    It ends with this process, too, however that ends.

    Args:
        folder: where its log is, and its traces, in ``traces``.
        model: what it serves.
        profiler: further fields of its ``--profiler-config``; None: it has none.
        token: asked of whom it serves.

    Attributes:
        url: where it listens.
        traces: the directory that its profiler writes to.
        token: as it was given.
    """

    def __init__(
        self, folder: Path, model: Path, profiler: dict[str, Any] | None = None, *, token: str | None = None
    ) -> None:
        folder.mkdir(parents=True)
        self.traces, self._log, self.token = folder / "traces", folder / "log", token
        self.traces.mkdir()
        with socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [
            str(Path(PYTHON).with_name("vllm")), "serve", str(model), "--served-model-name", "tiny",
            "--host", "127.0.0.1", "--port", str(port), "--max-model-len", "128", "--dtype", "float32",
            "--enforce-eager", "--kv-cache-memory-bytes", str(1 << 26),
        ]  # fmt: skip
        if profiler is not None:
            fields = {"profiler": "torch", "torch_profiler_dir": str(self.traces), "ignore_frontend": True, **profiler}
            command += ["--profiler-config", json.dumps(fields)]
        if token is not None:
            command += ["--api-key", token]
        with ExitStack() as stack:
            log = stack.enter_context(self._log.open("wb"))
            self._guard = subprocess.Popen(
                [sys.executable, str(HERE / "vllm_guard.py"), *command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=_environment(), start_new_session=True,
            )  # fmt: skip
        assert self._guard.stdout is not None
        self.pid = int(self._guard.stdout.readline())

    def wait(self) -> Server:
        """Wait until it answers.

        Raises:
            AssertionError: it ended, or does not answer in time.
        """
        deadline = time.monotonic() + PATIENCE
        while self.ask("/health")[0] != 200:
            hopeless = self.pid not in members(self.pid) or time.monotonic() > deadline
            assert not hopeless, self._log.read_text(errors="replace")[-6000:]
            time.sleep(0.25)
        return self

    def ask(self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None) -> tuple[int, str]:
        """Send a request; return the status, 0 where there was no answer, and the body."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def post(self, path: str, body: dict[str, Any] | None = None) -> int:
        """Send a POST request; return the status."""
        return self.ask(path, body, method="POST")[0]

    def generate(self, tokens: int, *, answers: int = 1) -> list[str]:
        """Let it generate that many tokens for each answer; return the answers."""
        status, body = self.ask(
            "/v1/completions",
            {"model": "tiny", "prompt": "3 2 1", "max_tokens": tokens, "n": answers, "ignore_eos": True},
        )
        assert status == 200, body
        return [choice["text"] for choice in json.loads(body)["choices"]]

    def process(self, title: str) -> int:
        """Return the one process with this title: ``VLLM::EngineCore`` or ``VLLM::Worker``."""
        (found,) = [pid for pid in members(self.pid) if _title(pid) == title]
        return found

    def recording(self) -> bool:
        """Say whether a process is left that can record."""
        return any(_title(pid) == "VLLM::Worker" for pid in members(self.pid))

    def close(self) -> None:
        """End it and all its processes. May be called twice."""
        assert self._guard.stdin is not None
        assert self._guard.stdout is not None
        end(self.pid)
        self._guard.stdin.close()
        self._guard.wait(PATIENCE)
        self._guard.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PROFWIN_", "PYTHON", "VLLM_"))}
    return {
        **kept,
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode().strip()
    except OSError:
        return ""


def configure(output: Path, **settings: Any) -> None:
    """Begin a run on the device that the servers pretend to have; their stop takes long on a busy machine."""
    known = {"steps": "1-9", "output": str(output), "run": "served", "devices": DEVICE, "wait_budget": PATIENCE}
    profwin.configure(**{**known, **settings})


def engine(server: Server, **options: Any) -> VLLMServer:
    """Return what a window is given as ``engine=``."""
    from profwin.engines import VLLMServer

    return VLLMServer(server.url, **{"devices": DEVICE, "token": server.token, **options})


def traces(output: Path, step: int) -> list[Path]:
    """Return the traces in a step's rollout folder."""
    return sorted(output.glob(f"*/step_{step:06}/rollout/*.pt.trace.json.gz"))


def iterations(trace: Path) -> int:
    """Return how many of the engine's iterations a trace holds: vLLM names each."""
    with gzip.open(trace, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return sum(event.get("name", "").startswith("execute_context_") for event in events if event.get("ph") == "X")

"""The stand-in server as a context manager, and the windows that tests open on it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import profwin
from profwin.engines import SGLangServer, VLLMServer

SCRIPT = Path(__file__).with_name("engine_stand_in.py")
PATIENCE = 30.0
DEVICE = "pretend:card"


class Server:
    """A stand-in server in a process of its own, with a worker below it.

    Args:
        kind: ``"vllm"`` or ``"sglang"``.
        directory: where it writes.
        tell: whether its command line says so, as that of vLLM does.
        profiler: which profiler it says that it has; with ``none`` it has none.
        options: see `engine_stand_in`.
    """

    script = SCRIPT

    def __init__(
        self, kind: str, directory: Path, *, tell: bool = True, profiler: str = "torch", **options: object
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.kind, self.directory = kind, directory
        config = json.dumps({"profiler": profiler, "torch_profiler_dir": str(directory), "ignore_frontend": True})
        command = [sys.executable, str(self.script), kind, str(directory)]
        command += [f"{name}={value}" for name, value in {**options, "profiler": profiler}.items()]
        command += [f"--profiler-config={config}"] if tell else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Let the server end, and its worker with it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def engine(self, **more: Any) -> VLLMServer | SGLangServer:
        """Return the adapter for it, on the tests' one device."""
        kind = VLLMServer if self.kind == "vllm" else SGLangServer
        return kind(self.url, **{"devices": DEVICE, **more})

    def faults(self, **faults: object) -> None:
        """Say what goes wrong from now on."""
        self._post("/faults", faults)

    def generate(self, steps: int = 1) -> None:
        """Do forward steps."""
        self._post("/generate", {"steps": steps})

    def post(self, path: str) -> int:
        """Do what another client does; return the status."""
        return self._post(path, {})

    def state(self) -> dict[str, Any]:
        """Return what it says of itself."""
        with urlopen(self.url + "/state", timeout=PATIENCE) as answer:
            return json.load(answer)

    @property
    def told(self) -> list[str]:
        """What it was told, as words."""
        return [each[0] for each in self.state()["told"]]

    @property
    def recording(self) -> bool:
        """Whether its worker records."""
        return self.state()["recording"]

    def files(self) -> list[str]:
        """The names of the files in its directory."""
        return sorted(path.name for path in self.directory.iterdir())

    def _post(self, path: str, value: object) -> int:
        with urlopen(Request(self.url + path, json.dumps(value).encode(), method="POST"), timeout=PATIENCE) as answer:
            return answer.status


def configure(output: Path, **more: Any) -> None:
    """Configure this process with the settings that these tests share."""
    profwin.configure(**{"steps": "1-9", "backend": "record", "output": str(output), "run": "mine", **more})


def until(condition: Any, patience: float = PATIENCE) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)

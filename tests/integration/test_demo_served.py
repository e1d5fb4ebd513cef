"""The demo with a server's generation, against the stand-in for vLLM; the real one is in tests/clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from demo_support import Demo, failed, interrupt, rows, wait_for_line
from stand_in_support import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

NOWHERE = "http://127.0.0.1:1"


class Completing(Server):
    """The stand-in that generates, too."""

    script = Path(__file__).with_name("completions_stand_in.py")

    def arguments(self, *more: str) -> list[str]:
        """Return what the demo is told."""
        return ["--engine", "vllm", "--url", self.url, *more]


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    """The command in an empty directory."""
    return Demo(tmp_path)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Return a function that starts a server."""
    servers: list[Completing] = []

    def start(**options: object) -> Completing:
        servers.append(Completing("vllm", tmp_path / "traces", **options))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


def test_the_loop_is_verified(demo: Demo, serve: Any) -> None:
    """Windows and stages of the profiled steps are apart and whole, and the server is told nothing else."""
    server = serve()
    report = demo.report(*server.arguments("--steps", "4", "--profile", "2,4"))
    assert report["passed"], failed(report)
    for step in (2, 4):
        whats = [row["what"] for row in rows(report, step)]
        assert whats[:3] == ["window rollout", "handover", "stage old_log_prob"]
        assert len(whats) == 6
    assert len(report["traces"]) == 10
    # Steps 1 and 3 are not profiled, and the last one is followed by the validation.
    assert server.told == ["generate", *["start", "generate", "stop", "generate"] * 2]
    assert server.files() == []
    (note,) = report["notes"]
    assert note.endswith("serves 'digits', whose weights stay as they are")
    assert demo.survivors() == []


def test_without_the_lock_the_verification_fails(tmp_path: Path, serve: Any) -> None:
    """Negative control: where everyone has the lock at once, training runs into a stop that takes long: it is seen."""
    server = serve()
    server.faults(stop_delay=3.0)
    report = Demo(tmp_path, without_lock=True).report(*server.arguments("--steps", "2", "--profile", "2"), code=1)
    assert failed(report) == ["journals: no rollout collection overlaps a training collection of its device"]


def test_a_token_is_used_and_not_shown(demo: Demo, serve: Any) -> None:
    """The token comes from the option, or from the variable that vLLM reads itself, and is in nothing that is left."""
    server = serve(token="tell-nobody")
    arguments = server.arguments("--steps", "2", "--profile", "2")
    assert demo.run(*arguments)[0] == 1
    demo.environment["VLLM_API_KEY"] = "wrong"
    code, output, errors = demo.run(*arguments, "--token", "tell-nobody")
    assert code == 0, errors
    demo.environment["VLLM_API_KEY"] = "tell-nobody"
    assert demo.report(*arguments)["passed"]
    assert "tell-nobody" not in output + errors
    left = [path for path in (demo.directory / "out").rglob("*") if path.is_file()]
    assert len(left) > 10
    assert not any(b"tell-nobody" in path.read_bytes() for path in left)
    assert {told[2] for told in server.state()["told"]} == {"Bearer tell-nobody"}


def test_the_devices_can_be_named(demo: Demo, serve: Any) -> None:
    """What is recorded is guarded under the names that were given, in the server's windows and in the stages."""
    server = serve()
    report = demo.report(*server.arguments("--steps", "2", "--profile", "2", "--devices", "pretend:b,pretend:a"))
    assert report["passed"], failed(report)
    assert {row["device"] for row in rows(report, 2)} == {"a, b"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"routes": "none"}, "no profiler is configured: start vLLM with --profiler-config"),
        ({"model": "none"}, "it names no model"),
        ({"answers": "none"}, "it has not given 8 answers to each prompt"),
    ],
)
def test_a_server_that_will_not_do(demo: Demo, serve: Any, options: dict[str, str], problem: str) -> None:
    """What is wrong with the server is said in a sentence, and no process is left."""
    server = serve(**options)
    code, output, errors = demo.run(*server.arguments("--steps", "2", "--profile", "2"))
    assert (code, output) == (1, "")
    assert f"profwin: the server at {server.url}: {problem}" in errors
    assert "Traceback" not in errors
    assert demo.survivors() == []


def test_without_profiling_no_profiler_is_needed(demo: Demo, serve: Any) -> None:
    """``--profile none`` runs the loop against any server, and writes nothing."""
    server = serve(routes="none")
    report = demo.report(*server.arguments("--steps", "1", "--profile", "none"))
    assert report["passed"]
    assert not (demo.directory / "out").exists()
    assert server.told == ["generate", "generate"]


def test_a_server_that_records_nothing_is_found_out(demo: Demo, serve: Any) -> None:
    """Where the server agrees and leaves no file, the verification fails and says which step has no trace."""
    server = serve()
    server.faults(silent=True)
    code, output, _ = demo.run("--json", *server.arguments("--steps", "2", "--profile", "2"))
    report = json.loads(output)
    assert (code, report["passed"]) == (1, False)
    assert failed(report) == ["each profiled step has its windows and all stages, whole"]
    assert any("engine-silent" in note for note in report["notes"])


def test_ctrl_c_stops_the_server_too(demo: Demo, serve: Any) -> None:
    """An interrupted demo leaves no process, and no server that records."""
    server = serve()
    process = demo.start(*server.arguments("--steps", "500", "--profile", "1-500"))
    wait_for_line(process, "step   2/500")
    assert interrupt(process) == 130
    assert demo.survivors() == []
    assert not server.recording
    told = server.told
    assert told.count("start") <= told.count("stop")


def test_nobody_answers(demo: Demo) -> None:
    """An address where nothing listens is named, and nothing is started or written."""
    code, output, errors = demo.run("--engine", "vllm", "--url", NOWHERE)
    assert (code, output) == (1, "")
    assert f"profwin: the server at {NOWHERE}: no answer to /v1/models" in errors
    assert not (demo.directory / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--engine", "vllm"),
        ("--url", NOWHERE),
        ("--token", "t"),
        ("--devices", "pretend:a"),
        ("--engine", "vllm", "--url", NOWHERE, "--loop", "colocate"),
        ("--engine", "vllm", "--url", NOWHERE, "--loop", "all"),
        ("--engine", "vllm", "--url", NOWHERE, "--misuse", "no-stop"),
        ("--engine", "vllm", "--url", "ftp://host"),
        ("--engine", "vllm", "--url", NOWHERE, "--token", "two words"),
        ("--engine", "vllm", "--url", NOWHERE, "--devices", ","),
    ],
)
def test_wrong_usage(demo: Demo, arguments: tuple[str, ...]) -> None:
    """Wrong usage gives a sentence, and starts nothing."""
    code, output, errors = demo.run(*arguments)
    assert code == 2
    assert output == ""
    assert "profwin demo: error: " in errors
    assert not (demo.directory / "out").exists()

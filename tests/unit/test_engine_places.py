"""Where a server writes: what its command line and its variables say, and whether that is a path from here."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from profwin.engines import places


@pytest.fixture
def process(tmp_path):
    """Return a function that starts a process with a command line and variables; it sleeps in ``tmp_path``."""
    started = []

    def start(*arguments: str, **variables: str) -> int:
        command = [sys.executable, "-c", "print(flush=True); import time; time.sleep(60)", *arguments]
        child = subprocess.Popen(command, env={**os.environ, **variables}, cwd=tmp_path, stdout=subprocess.PIPE)
        started.append(child)
        child.stdout.readline()
        return child.pid

    yield start
    for child in started:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--profiler-config", '{"profiler": "torch", "torch_profiler_dir": "/a/b"}'),
        ('--profiler-config={"profiler": "torch", "torch_profiler_dir": "/a/b"}',),
        ("--profiler-config.profiler=torch", "--profiler-config.torch_profiler_dir=/a/b"),
        ("--profiler_config.torch_profiler_dir", "/a/b", "--port", "1"),
        ("--profiler-config", "{", "--profiler-config.torch-profiler-dir", "/a/b"),
    ],
)
def test_vllm_options(process, arguments):
    """All the ways to write the option are read."""
    assert places.vllm_directory([process(*arguments)]) == "/a/b"


def test_which_profiler_vllm_has(process):
    """The profiler is read from either form of the option; without the option it is not known."""
    assert places.vllm_profiler([process("--profiler-config", '{"profiler": "cuda"}')]) == "cuda"
    assert places.vllm_profiler([process(), process("--profiler-config.profiler=torch")]) == "torch"
    assert places.vllm_profiler([process("--profiler", "cuda")]) is None


def test_a_path_is_the_servers(process, tmp_path):
    """A relative path is counted from the server's directory; a store that is no file system is left as it is."""
    option = "--profiler-config.torch_profiler_dir="
    assert places.vllm_directory([process(option + "x/../y")]) == str(tmp_path / "y")
    assert places.vllm_directory([process(option + "s3://bucket/x")]) == "s3://bucket/x"


def test_older_vllm(process):
    """Versions before 0.16 are told by a variable; an option goes before it."""
    assert places.vllm_directory([process(VLLM_TORCH_PROFILER_DIR="/old")]) == "/old"
    option = "--profiler-config.torch_profiler_dir=/new"
    assert places.vllm_directory([process(option, VLLM_TORCH_PROFILER_DIR="/old")]) == "/new"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--profiler-config",),
        ("--profiler-config", "[" * 5000),
        ("--profiler-config", '["torch_profiler_dir"]'),
        ("--profiler-config", '{"torch_profiler_dir": 7}'),
        ("--profiler-configuration", '{"torch_profiler_dir": "/a"}'),
    ],
)
def test_what_does_not_say(process, arguments):
    """A command line that does not name a directory is no answer, whatever stands in it."""
    assert places.vllm_directory([process(*arguments)]) is None


def test_processes_that_are_gone(process):
    """What cannot be looked at is not known, and cannot write here."""
    gone = 2**22 + 1
    assert places.vllm_directory([gone]) is None
    assert places.vllm_directory([]) is None
    assert places.sglang_directory([gone]) is None
    assert places.sglang_directory([]) is None
    assert not places.can_write_here([])
    assert not places.can_write_here([process(), gone])


def test_sglang(process):
    """SGLang writes where its variable says, else into /tmp."""
    assert places.sglang_directory([process(SGLANG_TORCH_PROFILER_DIR="/x")]) == "/x"
    assert places.sglang_directory([process()]) == "/tmp"


def test_who_can_write_here(process, monkeypatch):
    """A process of this user with the same files can; one of another user, or with other files, is not told to."""
    pid = process()
    assert places.can_write_here([pid])
    monkeypatch.setattr(places, "_user", lambda _pid: os.geteuid() + 1)
    assert not places.can_write_here([pid])
    monkeypatch.undo()
    monkeypatch.setattr(places, "_same_files", lambda _pid: False)
    assert not places.can_write_here([pid])
    assert places.vllm_directory([process("--profiler-config.torch_profiler_dir=/a")]) is None

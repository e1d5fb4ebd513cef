"""``profwin locks`` and the survey behind it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lock_support import ROOT, Other

from profwin.registry.holder import Holder, Mark, encode
from profwin.registry.lock import Busy, Held, Registry
from profwin.registry.process import identity


@pytest.fixture
def registry(tmp_path):
    """Give a registry in a directory of the test's own."""
    return Registry(str(tmp_path / "locks"))


def take(registry, *keys, **more):
    """Take devices as a window of this process."""
    return registry.acquire(keys, kind="rollout", run="mine", name="n", step=1, **more)


def command(registry, *arguments):
    """Run ``profwin locks``; give its exit code and what it wrote."""
    code = (
        "import argparse, sys; from profwin.cli import locks; parser = argparse.ArgumentParser(); "
        "locks.add_parser(parser.add_subparsers()); parsed = parser.parse_args(['locks', *sys.argv[1:]]); "
        "sys.exit(locks.run(parsed))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PROFWIN_LOCK_DIR": registry.directory}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_table_names_holders(registry):
    """The table shows each device, whether it is held, since when and by whom."""
    with Other(registry.directory) as other:
        other.ask("free = take('free'); free.release(); held = take('held', kind='training')")
        code, text = command(registry)
    assert code == 0
    rows = {line.split()[0]: line for line in text.splitlines() if line.startswith(("free", "held"))}
    assert rows["free"].split() == ["free", "free"]
    assert f"training stage 'n' of step 1, pid {other.pid}, uid {os.geteuid()}, run other" in rows["held"]
    assert time.strftime("%Y-%m-%d") in rows["held"]
    assert registry.directory in text


def test_json_is_whole(registry):
    """The JSON document has the same facts as values."""
    with Other(registry.directory) as other:
        other.ask("held = take('held')")
        code, text = command(registry, "--json")
    document = json.loads(text)
    (device,) = document["devices"]
    assert (code, document["directory"], device["key"], device["state"]) == (0, registry.directory, "held", "held")
    assert device["holder"]["pid"] == other.pid
    assert abs(device["since"] - time.time()) < 60


def test_empty_directory(registry):
    """Where nothing was ever locked the command says so."""
    assert "no device has been locked yet" in command(registry)[1]


def test_record_of_the_dead_is_shown_as_free(registry):
    """A killed holder's record is not taken for a holder."""
    with Other(registry.directory) as victim:
        victim.ask("held = take('d')")
        victim.kill()
    (state,) = registry.survey()
    assert (state.state, state.holder) == ("free", None)


def test_surviving_lock_of_a_dead_holder_is_shown_as_held(registry):
    """A lock that outlives the process of its record is held, by nobody who is known."""
    take(registry, "d").release()
    with Other(registry.directory) as other:
        other.ask(f"import fcntl; file = open({registry.path('d')!r}); fcntl.flock(file, fcntl.LOCK_EX)")
        (state,) = registry.survey()
    assert (state.state, state.holder) == ("held", None)


def test_looking_disturbs_nobody(registry):
    """While another process surveys without a pause, a free device can always be taken."""
    with Other(registry.directory) as other:
        take(registry, "d").release()
        other.send("for i in range(10**9): registry.survey()")
        for _ in range(2000):
            held = take(registry, "d", wait_for=lambda _: False)
            assert isinstance(held, Held)
            held.release()
        os.kill(other.pid, signal.SIGKILL)


def test_foreign_process_namespace_is_asked_of_the_kernel(registry):
    """Where a record speaks of another process namespace, only the lock itself tells."""
    own = identity()
    record = encode(Holder(own.pid, own.start, own.boot, 1, 0, "r", "rollout", "n", 1))
    take(registry, "d").release()
    Path(registry.path("d")).write_bytes(record)
    assert registry.survey()[0].state == "free"
    with Other(registry.directory) as other:
        other.ask(f"import fcntl; file = open({registry.path('d')!r}); fcntl.flock(file, fcntl.LOCK_EX)")
        (state,) = registry.survey()
        assert (state.state, state.holder.namespace) == ("held", 1)
        # A process of another namespace cannot be proven gone, so its record is believed.
        answer = take(registry, "d", wait_for=lambda _: False)
        assert isinstance(answer, Busy)
        assert answer.holder.namespace == 1


def test_confirm_clears_a_mark(registry):
    """--confirm frees a marked device, and exits with 1 and a reason where there is nothing to confirm."""
    held = take(registry, "d")
    held.set_mark(Mark([identity()], "r", "rollout", 2))
    assert command(registry, "--confirm", "d") == (
        1,
        f"d: held by {registry.survey()[0].holder.describe()}; end that first\n",
    )
    held.release()
    code, text = command(registry)
    assert "unknown" in text
    assert "its stop is not confirmed" in text
    assert command(registry, "--confirm", "d")[0] == 0
    assert command(registry, "--confirm", "d") == (1, "d: there is no mark to remove, the device is free\n")
    code, text = command(registry, "--confirm", "nowhere")
    assert (code, "no such device" in text) == (1, True)
    assert isinstance(take(registry, "d"), Held)


def test_names_cannot_control_a_terminal(registry):
    """Escape sequences in keys and records are shown as text, in the table and in JSON."""
    evil = "\x1b[2J\x07\u202eevil\n"
    held = registry.acquire([f"pretend-{evil}"], kind="rollout", run=evil, name=evil, step=1)
    for arguments in ([], ["--json"], ["--confirm", evil]):
        text = command(registry, *arguments)[1]
        assert "evil" in text
        assert not set(text) & set("\x1b\x07\u202e")
        assert all(line.isprintable() for line in text.splitlines())
    held.release()

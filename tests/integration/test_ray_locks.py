"""``profwin locks --cluster`` on a real cluster of two raylets, each as if on a host of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="ray is not installed: no cluster can be asked")

from core_support import HOLDER, PATIENCE, ROOT, Child
from ray_faults import until
from ray_support import raylet, workers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
NODES, HOSTS = ("first", "second"), True

MARK = """
from profwin.registry.holder import Mark
from profwin.registry.lock import Registry
from profwin.registry.process import identity
held = Registry(None).acquire(["pretend-card"], kind="rollout", run="gone", name="rollout", step=4)
held.set_mark(Mark([identity(int(sys.stdin.readline()))], "gone", "rollout", 4))
held.release()
"""

HIDING = """
import sys

class Hidden:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "profwin":
            raise ModuleNotFoundError(f"No module named {name!r}")

def hide():
    sys.meta_path.insert(0, Hidden())
"""


def start(address, *arguments, **environment):
    """Start ``profwin locks --cluster``."""
    command = [sys.executable, "-m", "profwin", "locks", "--cluster", "--address", address]
    command += ["--timeout", str(PATIENCE), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def command(address, *arguments, **environment):
    """Run it to its end; return its exit code and what it said on both outputs."""
    process = start(address, *arguments, **environment)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def hosts(address, *arguments):
    """Return what its JSON says of each host, by the host's name, and of those that did not answer."""
    code, out, err = command(address, "--json", *arguments)
    document = json.loads(out)
    assert code == 0, err
    return {each["host"]: each for each in document["hosts"]}, document["silent"]


def test_every_host_is_shown(cluster, tmp_path, locks):
    """The devices of each host are rows of its own, with their holders; a host without devices is there, too."""
    script = HOLDER.format(output=str(tmp_path / "out"), block="rollout_window(1)", run="theirs")
    with Child(script, PROFWIN_PRETEND_HOST="second") as child:
        assert child.hear() == "inside"
        code, text, _ = command(cluster)
        found, silent = hosts(cluster)
        child.say()
        child.say()
        assert child.finish()[0] == 0
    assert (code, silent, sorted(found)) == (0, [], ["first", "second"])
    rows = [line.split() for line in text.splitlines() if "device locks" not in line]
    assert rows[0] == ["NODE", "DEVICE", "STATE", "SINCE", "HOLDER"]
    assert [row[0] for row in rows[1:]] == ["first", "second"]
    assert "no device has been locked yet" in " ".join(rows[1])
    assert rows[2][1] == found["second"]["nodes"][0]["node"][:8]
    assert rows[2][2:4] == ["pretend-card", "held"]
    assert f"pid {child.pid}, " in " ".join(rows[2])
    assert found["second"]["directory"] == f"{locks}-host-second"
    assert len({each["boot"] for each in found.values()}) == 2
    (device,) = found["second"]["devices"]
    assert (device["state"], device["holder"]["run"]) == ("held", "theirs")


def test_a_mark_is_confirmed_on_its_host(cluster):
    """--confirm removes the mark on the node that is named, on no other, and says where there is none."""
    with Child("hear()") as engine, Child(MARK, PROFWIN_PRETEND_HOST="second") as child:
        child.say(str(engine.pid))
        assert child.finish()[0] == 0
        _, text, _ = command(cluster)
        [row] = [line.split() for line in text.splitlines() if "pretend-card" in line]
        assert (row[0], row[2:4]) == ("second", ["pretend-card", "unknown"])
        assert "its stop is not confirmed" in text
        code, text, _ = command(cluster, "--confirm", "pretend-nothing", "--node", row[1])
        assert (code, "there is no such device" in text) == (1, True)
        code, _, err = command(cluster, "--confirm", "pretend-card", "--node", "nowhere")
        assert (code, row[1] in err) == (2, True)
        code, _, err = command(cluster, "--confirm", "pretend-card", "--node", cluster.partition(":")[0])
        assert (code, "several nodes" in err) == (2, True), "all raylets of a test have one address"
        code, text, _ = command(cluster, "--confirm", "pretend-card", "--node", row[1])
        assert (code, text) == (0, "pretend-card: the mark is removed, the device is free\n")
        assert [each["state"] for each in hosts(cluster)[0]["second"]["devices"]] == ["free"]


def test_the_lock_directory_may_be_given(cluster, tmp_path):
    """--directory is that of every node."""
    found, _ = hosts(cluster, "--directory", str(tmp_path / "other"))
    assert {each["directory"] for each in found.values()} == {
        f"{tmp_path}/other-host-{name}" for name in ("first", "second")
    }


def test_no_cluster():
    """Where no cluster is, that is said at once, with exit code 2."""
    code, out, err = command("127.0.0.1:1")
    assert (code, out) == (2, "")
    assert "profwin: no Ray cluster at 127.0.0.1:1: start one, or give --address" in err  # perhaps after its progress


def test_a_node_without_profwin(cluster, tmp_path):
    """Where profwin cannot be imported the reason is said, and the exit code is 1."""
    (tmp_path / "hiding.py").write_text(HIDING)
    broken = {"env_vars": {"PYTHONPATH": str(tmp_path)}, "worker_process_setup_hook": "hiding.hide"}
    code, text, _ = command(cluster, RAY_JOB_CONFIG_JSON_ENV_VAR=json.dumps({"runtime_env": broken}))
    assert code == 1
    assert text.count("no answer") == text.count("profwin cannot be imported there") == 2


def test_nodes_that_do_not_answer(cluster):
    """One that hangs makes the exit code 1, Ctrl-C ends the wait for it and leaves nothing; a dead one is only said."""
    before, stopped = workers(cluster), raylet(cluster, "second")
    os.kill(stopped, signal.SIGSTOP)
    try:
        code, text, _ = command(cluster, "--timeout", "3")
        assert code == 1
        rows = [line for line in text.splitlines() if "device locks" not in line]
        assert len(rows) == 3
        assert "no answer" in text  # that of the other one comes late, too, on a busy machine
        assert "it has not answered within 3 s" in text
        waiting = start(cluster, "--timeout", "600")
        assert waiting.stderr.readline().startswith("profwin locks: ")
        until(lambda: workers(cluster) - before)
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=PATIENCE)
        assert (waiting.returncode, out) == (130, ""), err
        until(lambda: not workers(cluster) - before)
    finally:
        os.kill(stopped, signal.SIGCONT)
    cluster.kill("second")
    cluster.dead("second")
    code, text, _ = command(cluster)
    assert code == 0
    assert "Ray takes it for dead" in text
    assert "first" in text

"""``profwin collect`` on a cluster of two pretended hosts, each with an output directory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="ray is not installed: there is no cluster to collect from")

from core_support import PATIENCE, ROOT
from ray_faults import until
from ray_support import Driver, workers

from profwin.registry.process import gone, identities

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
NODES, HOSTS = ("first", "second"), True

LOOP = """
def environment(node, **settings):
    return profwin.ray.environment(output=os.path.join(os.environ["OUTPUT"], node), **settings)

def at(kind, node, device):
    return ray.remote(kind).options(
        num_cpus=0, resources={node: 0.001}, runtime_env=environment(node, devices=device)
    ).remote()

profwin.configure(steps="1-2", output=os.path.join(os.environ["OUTPUT"], "first"), run="run")
ray.init(os.environ["CLUSTER"], runtime_env=profwin.ray.environment(), logging_level="ERROR", log_to_driver=False)
engines = [at(Engine, "first", "pretend:a"), at(Engine, "second", "pretend:b")]
trainers = [at(Trainer, "first", "pretend:a"), at(Trainer, "second", "pretend:b")]
for step in (1, 2):
    with rollout_window(step, engine=profwin.ray.actors(engines)):
        ray.get([each.generate.remote() for each in engines])
    with training_step(step):
        ray.get([each.update.remote() for each in trainers])
"""
STOPPING = """
import os, sys, time
from profwin.cli import main
from profwin.ray.collecting.landing import Landing
write = Landing.write

def stopping(landing, data):
    write(landing, data)
    if landing.name == os.environ["STOPS_IN"] and landing.offset >= 8 << 20:
        open(os.environ["STOPS"] + "-here", "w").close()
        while not os.path.exists(os.environ["STOPS"]):
            time.sleep(0.01)

Landing.write = stopping
sys.exit(main(sys.argv[1:]))
"""
"""The command, which stops in the middle of the file that ``STOPS_IN`` names until there is the file ``STOPS``."""
BIG = 20 << 20


@pytest.fixture
def big(output):
    """Return an output directory that all nodes share, with a run of a big file."""
    (output / "big/journal").mkdir(parents=True)
    (output / "big/journal/j.jsonl").write_text("{}\n")
    (output / "big/trace.json").write_bytes(os.urandom(1 << 20) * (BIG >> 20))
    return output


def command(cluster, directory, source, *options):
    """Return the words of a command that collects, and its variables."""
    words = [sys.executable, "-m", "profwin", "collect", str(directory), "--from", str(source)]
    return [*words, "--address", str(cluster), *options], {**os.environ, "PROFWIN_PRETEND_HOST": "first"}


@contextlib.contextmanager
def stopped(tmp_path, name, cluster, *arguments):
    """Start a command that collects, wait until it is in the middle of a file, and give its process.

    It goes on when there is a file ``go`` in the test's directory.
    """
    words, variables = command(cluster, *arguments)
    words[1:3] = ["-c", STOPPING]
    variables |= {"STOPS_IN": name, "STOPS": str(tmp_path / "go"), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            until(lambda: process.poll() is not None or (tmp_path / "go-here").exists())
            yield process
        finally:
            process.kill()


def collect(cluster, directory, source, *options):
    """Run the command to its end; return its status and what it says as JSON."""
    words, variables = command(cluster, directory, source, "--json", *options)
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def kept(directory):
    """Return everything below a directory with its size and the time of its last change."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def copied(directory):
    """Return what `kept` does of a folder that was collected into, by the names that the files have on their nodes.

    The manifest is gathered anew there, and the driver's own kept beside it.
    """
    found = kept(directory)
    anew = [path for path in found if os.path.basename(path) == "manifest.json"]
    assert all(json.loads(found.pop(path)[0])["collected"] for path in anew)
    return {path.replace("manifest~own.json", "manifest.json"): file for path, file in found.items()}


def test_a_run_of_two_hosts(cluster, output, tmp_path):
    """The run's files of both hosts come into one folder, over which check, timeline and report work."""
    with Driver(LOOP + "say('done')\nhear()\nprofwin.shutdown()", cluster, output, PROFWIN_PRETEND_HOST="first") as run:
        assert run.hear() == "done"
        status, said = collect(cluster, tmp_path / "all", output / "$PROFWIN_PRETEND_HOST")
        assert (status, said["missing"], said["runs"]) == (0, {}, ["run"])
        assert all(said["nodes"].values())
        run.say()
        run.end()
    before = kept(output / "first/run") | kept(output / "second/run")
    status, said = collect(cluster, tmp_path / "all", output / "$PROFWIN_PRETEND_HOST")
    assert (status, said["missing"], said["renamed"]) == (0, {}, {})
    assert 0 < said["bytes"] < sum(len(data) for data, _ in before.values())  # what was there was not read again
    assert copied(tmp_path / "all/run") == before == kept(output / "first/run") | kept(output / "second/run")
    assert {path.split("/")[0] for path in before} == {"journal", "manifest.json"}
    tools = {
        "check": ["check", "all", "--fail-on", "error"],
        "timeline": ["timeline", "all", "-o", "all.pftrace"],
        "report": ["report", "all", "-o", "all.html"],
    }
    for name, words in tools.items():
        done = subprocess.run(
            [sys.executable, "-m", "profwin", *words], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{name}\n{done.stdout}\n{done.stderr}"


CALL = (
    LOOP
    + """
profwin.shutdown()
result = profwin.ray.collect(os.environ["ALL"], os.environ["OUTPUT"] + "/first")
say(json.dumps(result.as_json()))
"""
)


def test_in_the_driver(cluster, output, tmp_path):
    """The function does it in a driver; nodes that share the folder give each file once between them."""
    with Driver(CALL, cluster, output, PROFWIN_PRETEND_HOST="first", ALL=str(tmp_path / "all")) as run:
        (said,) = map(json.loads, run.end())
    assert said["whole"]
    assert copied(tmp_path / "all") == kept(output / "first")
    assert said["bytes"] == sum(len(data) for data, _ in kept(output / "first").values())
    assert [size for size in said["nodes"].values() if size] == [said["bytes"]]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "SIGINT"])
def test_broken_off_in_the_middle(cluster, big, tmp_path, number):
    """A collector that is ended in the middle of a file leaves a part, and the next start reads only the rest."""
    part = tmp_path / "all/big/trace.json.part"
    with stopped(tmp_path, "trace.json", cluster, tmp_path / "all", big) as process:
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    there = part.stat().st_size
    assert 8 << 20 <= there < BIG
    status, said = collect(cluster, tmp_path / "all", big)
    assert status == 0
    assert (said["bytes"], said["files"], said["already"]) == (BIG - there, 1, 1)
    assert kept(tmp_path / "all/big") == kept(big / "big")


def test_mistakes_are_said(cluster, big, tmp_path):
    """What cannot be asked for, or is not there, ends with a status and a sentence."""
    expected = [
        (2, "another folder", command(cluster, big, big)),
        (1, "run nothing: not in", command(cluster, tmp_path / "all", big, "--run", "nothing")),
        (1, "runs: none in", command(cluster, tmp_path / "all", tmp_path / "empty")),
        (2, "no Ray cluster", command("127.0.0.1:1", tmp_path / "all", big)),
        (2, "not allowed with", command(cluster, tmp_path / "all", big, "--run", "a", "--all")),
    ]
    running = [
        subprocess.Popen(words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _, _, (words, variables) in expected
    ]
    for (status, words, _), process in zip(expected, running, strict=True):
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == status, said
        assert words in said


def test_a_node_that_dies(cluster, output, tmp_path):
    """What a node had that dies in the middle is said to be missing, the rest is there. The last test: it is gone."""
    for host in ("first", "second"):
        (output / host / "run/journal").mkdir(parents=True)
        (output / host / f"run/journal/{host}.jsonl").write_text("{}\n")
        (output / host / f"run/{host}.json").write_bytes(os.urandom(1 << 20) * (BIG >> 20))
    arguments = tmp_path / "all", output / "$PROFWIN_PRETEND_HOST", "--timeout", "20"
    with stopped(tmp_path, "second.json", cluster, *arguments) as process:
        there = identities(workers(cluster, "second"))
        cluster.kill("second")
        until(lambda: all(map(gone, there)))
        (tmp_path / "go").touch()
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, said
    assert "missing: node" in said
    assert "run/second.json" in said
    whole = set(kept(tmp_path / "all/run")) - {"second.json.part"}
    assert whole == {"journal/first.jsonl", "journal/second.jsonl", "first.json"}

"""A driver's window over actors and over a server of another host, held against their own windows after collecting."""

from __future__ import annotations

import json
import os
import shutil

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from check_support import run_check
from core_support import Evidence
from ray_support import Driver
from stand_in_support import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

HOSTS = True
CODES = {"not-collected", "remote-missing", "remote-unknown", "remote-outside"}

RUN = """
from profwin.engines import VLLMServer

def at(kind, node, device):
    environment = profwin.ray.environment(output=os.path.join(os.environ["OUTPUT"], node), devices=device)
    return ray.remote(kind).options(num_cpus=0, resources={node: 0.001}, runtime_env=environment).remote()

def end(actor):
    profwin.shutdown()

profwin.configure(steps="1-2", output=os.path.join(os.environ["OUTPUT"], "first"), run="run")
ray.init(os.environ["CLUSTER"], runtime_env=profwin.ray.environment(), logging_level="ERROR", log_to_driver=False)
agents = profwin.ray.agents()
there = next(node for node, each in agents.identities().items() if each.host == "second")
members = [at(Engine, "first", "pretend:a"), at(AsyncEngine, "second", "pretend:b")]
engines = profwin.ray.actors(members) + [agents.engine(VLLMServer(os.environ["URL"], devices="pretend:c"), there)]
trainer = at(Trainer, "second", "pretend:b")
for step in (1, 2):
    beside = members[1].beside.remote()  # whose start waits for it
    with rollout_window(step, engine=engines, weight_version=step):
        ray.get(members[0].generate.remote())
    with training_step(step):
        ray.get(trainer.update.remote())
    ray.get(beside)
say(*ray.get([each.__ray_call__.remote(lambda actor: os.getpid()) for each in members]))
ray.get([each.__ray_call__.remote(end) for each in (*members, trainer)])
profwin.ray.collect(os.environ["BEFORE"], os.environ["OUTPUT"] + "/first", "run")
profwin.shutdown()
result = profwin.ray.collect(os.environ["ALL"], os.environ["OUTPUT"] + "/$PROFWIN_PRETEND_HOST", "run")
assert result.whole, result.missing
"""


@pytest.fixture(scope="module")
def made(cluster, tmp_path_factory):
    """Record a run over two actors and a server behind an agent; return where it lies, and the actors' pids."""
    place = tmp_path_factory.mktemp("remotes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROFWIN_LOCK_DIR", str(place / "locks"))
        (place / "locks").mkdir()
        patch.setenv("PROFWIN_PRETEND_HOST", "second")
        server = Server("vllm", place / "traces")
        patch.delenv("PROFWIN_PRETEND_HOST")
        variables = {"ALL": str(place / "all"), "BEFORE": str(place / "before"), "URL": server.url}
        with server, Driver(RUN, cluster, place / "out", PROFWIN_PRETEND_HOST="first", **variables) as driver:
            pids = [int(pid) for pid in driver.hear().split()]
            driver.end()
    return place, pids


def found(directory):
    """Return the findings of these codes, each as its code and its words."""
    _, out, _ = run_check(directory, "--json")
    return [(each["code"], each["detail"]) for each in json.loads(out)["findings"] if each["code"] in CODES]


def altered(made, tmp_path, pid, change):
    """Return a copy of the collected run in which the records of one process's journal were changed.

    Args:
        made: the run.
        tmp_path: where the copy goes.
        pid: of the process; None: the driver.
        change: is given each record, and returns it, or None to leave it out.
    """
    run = tmp_path / "run"
    shutil.copytree(made[0] / "all/run", run)
    for path in run.glob("journal/*.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        if records[0]["pid"] == pid or (pid is None and records[0]["root"]):
            kept = [record for each in records if (record := change(each)) is not None]
            path.write_text("".join(json.dumps(each) + "\n" for each in kept))
    return run


def test_all_sides_say_the_same(made):
    """Over the collected run nothing is found; the driver has each answer, with the process that gave it."""
    place, pids = made
    assert found(place / "all") == []
    evidence = Evidence(place / "all")
    heard = evidence.of("remote", status="recording")
    assert len(heard) == 6
    entered = {each["token"]: each for each in evidence.of("enter") if "token" in each}
    assert {each["token"] for each in heard} == entered.keys()
    processes = {each["pid"]: each for each in evidence.of("process")}
    assert set(pids) <= processes.keys()
    for each in heard:
        process = processes[entered[each["token"]]["pid"]]
        assert all(process[name] == each[name] for name in ("start", "boot", "host", "run"))
    assert len(evidence.of("remote", status="stopped")) == 6


def test_before_collecting(made):
    """The driver's own folder lacks the journals of the other host: each is named, with what is to be done."""
    place, (_, other) = made
    said = found(place / "out/first")
    assert [code for code, _ in said] == ["not-collected"]
    assert f"pid {other} on host 'second': its journal is not here (2 windows)" in said[0][1]
    _, text, _ = run_check(place / "out/first")
    assert "profwin collect DIR" in text


def test_the_manifest_is_of_all(made):
    """The collected manifest has the processes and the stages of both hosts, and nothing that is not so."""
    place, _ = made
    whole, own = (json.loads((place / "all/run" / name).read_text()) for name in ("manifest.json", "manifest~own.json"))
    assert {each["host"] for each in whole["processes"]} == {"first", "second"}
    assert {each["pid"] for each in own["processes"]} < {each["pid"] for each in whole["processes"]}
    assert [each["code"] for each in own["findings"] + whole["findings"]] == []
    assert own["elsewhere"] == ["second"]
    assert whole["elsewhere"] == []
    early = json.loads((place / "before/run/manifest.json").read_text())  # the driver had written none yet
    assert early["elsewhere"] == ["second"]
    purposes = {each["purpose"] for each in whole["steps"]["2"]["collections"]}
    assert purposes == {"rollout", "training"}


def test_a_journal_that_is_gone(made, tmp_path):
    """Without an actor's journal that is said, once for all its windows, and that the manifest names it."""
    run = altered(made, tmp_path, None, lambda record: record)
    (path,) = (path for path in run.glob("journal/*.jsonl") if f"_p{made[1][1]}-" in path.name)
    os.unlink(path)
    assert [code for code, _ in found(run)] == ["not-collected"]
    _, text, _ = run_check(run)
    assert "journal-missing" in text


@pytest.mark.parametrize("number", [0, 1])
def test_a_recording_that_is_gone(made, tmp_path, number):
    """Without the records of an actor's window of one step, what it confirmed is a lie, and is named."""
    pid = made[1][number]
    run = altered(
        made, tmp_path, pid, lambda record: None if record["kind"] == "enter" and record["step"] == 2 else record
    )
    [(code, words)] = found(run)
    assert code == "remote-missing"
    assert "window 'rollout' of step 2" in words
    assert f"pid {pid}" in words


def test_a_window_that_the_driver_does_not_know(made, tmp_path):
    """Without the driver's records of one actor, its windows are strangers."""
    run = altered(
        made, tmp_path, None,
        lambda record: None if record["kind"] == "remote" and "AsyncEngine" in record["engine"] else record,
    )  # fmt: skip
    assert [code for code, _ in found(run)] == ["remote-unknown"] * 2


def test_a_recording_of_another_version_or_time(made, tmp_path):
    """A recording of other weights, or one that ends after the driver heard that it had, is outside of the window."""
    run = altered(
        made, tmp_path, made[1][1],
        lambda record: {**record, "version": 7} if record["kind"] == "open" and record["step"] == 1 else record,
    )  # fmt: skip
    assert [code for code, _ in found(run)] == ["remote-outside"]
    late = altered(
        made, tmp_path / "late", made[1][0],
        lambda record: {**record, "t": record["t"] + 10**10} if record["kind"] == "close" else record,
    )  # fmt: skip
    assert [code for code, _ in found(late)] == ["remote-outside"] * 2

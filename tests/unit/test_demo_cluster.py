"""The demo on a cluster: who gets which device and which part of the samples, and what is verified besides."""

from __future__ import annotations

import asyncio
import pickle
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from demo_run_directory import RunDirectory

from profwin.demo.cluster import cluster
from profwin.demo.cluster.cluster import Cluster, ClusterError
from profwin.demo.cluster.group import EngineGroup, TrainerGroup, shares
from profwin.demo.cluster.verify import verify_check, verify_handovers, verify_hosts
from profwin.demo.loop import GROUP
from profwin.demo.options import LOOPS, Options
from profwin.demo.witness import gather
from profwin.selection import parse_steps

if TYPE_CHECKING:
    from profwin.demo.witness import Evidence


class Member:
    """An actor that answers at once: with what a function makes of the request."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def send(self, request: str, **arguments: Any) -> Any:
        """Take note of a request and return its answer."""
        self.asked.append((request, arguments))
        return self._answer(request, arguments)

    def receive(self, sent: Any) -> Any:
        """Return the answer."""
        return sent

    def call(self, request: str, **arguments: Any) -> Any:
        """Do both."""
        return self.receive(self.send(request, **arguments))


def options(loop: str, nodes: int) -> Options:
    """Return those of a run whose second step is profiled."""
    return Options(loop, 3, parse_steps("2"), "out", 1, run="r", nodes=nodes)


def shared_run(tmp_path: Path, *, window_until: int = 20) -> tuple[Evidence, str]:
    """Write a run with an engine and a trainer on a device of node1; return what it says."""
    run = RunDirectory(str(tmp_path / "run"))
    for role, records in run.journals.items():
        records[0]["host"] = "node1"
        for record in run.records(role, "open"):
            record["devices"] = ["pretend-node1-r"]
    run.records("driver", "close")[0]["t"] = window_until * 1_000_000
    directory = run.write()
    return gather(directory), directory


def generated(_request: str, arguments: dict[str, Any]) -> Any:
    """Answer as an engine: a group for each prompt that is wanted."""
    groups = [{"prompt": prompt} for prompt in arguments["prompts"][: arguments["wanted"]]]
    return {"groups": groups, "decoding_steps": 10}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("nodes", range(1, 9))
def test_every_node_has_a_device(loop: str, nodes: int) -> None:
    """Each node has one device of its own; one alone has both of a pipelined loop."""
    found = options(loop, nodes)
    hosts = [found.host_of(device) for device in found.devices]
    assert hosts == ([*found.hosts] if nodes > 1 or not found.pipelined else ["node1", "node1"])
    assert len(set(found.devices)) == len(found.devices)


def test_shares_are_even() -> None:
    """Parts differ by one at the most, and make up the whole."""
    assert shares(32, 5) == [7, 7, 6, 6, 6]
    assert shares(8, 4) == [2, 2, 2, 2]


@pytest.mark.parametrize("parts", range(1, 9))
def test_spare_prompts_are_spread_alike(parts: int) -> None:
    """In colocate, where a step begins more than it wants, no engine ever has less than is wanted of it."""
    first, wanted = shares(40, parts), shares(32, parts)
    assert all(begun >= goal for begun, goal in zip(first, wanted, strict=True))


def test_engines_get_a_part_each() -> None:
    """The prompts are handed out in order, and what comes back is in that order, too."""
    members = [Member(generated) for _ in range(3)]
    group = EngineGroup(members)  # type: ignore[arg-type]  # they have all that is used
    found = group.generate(list(range(8)), group=GROUP, wanted=8)
    assert [member.asked[0][1]["prompts"] for member in members] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [each["prompt"] for each in found["groups"]] == list(range(8))
    assert found["decoding_steps"] == 30


def test_trainers_agree_on_the_mean() -> None:
    """Each trains on its groups with their rewards; then all have the mean of the weights."""

    def answer(request: str, arguments: dict[str, Any]) -> Any:
        if request == "load_weights":
            return None
        value = float(len(arguments["groups"]))
        return {
            "weights": pickle.dumps({"w": value}), "updates": 4, "generated_with": [int(value)], "seconds": value,
        }  # fmt: skip

    members = [Member(answer) for _ in range(2)]
    group = TrainerGroup(members)  # type: ignore[arg-type]  # they have all that is used
    groups = [{"prompt": number} for number in range(3)]
    trained = group.receive(group.send("train", step=1, groups=groups, rewards=[0.0, 0.1, 1.0, 1.1, 2.0, 2.1]))
    assert [member.asked[0][1]["rewards"] for member in members] == [[0.0, 0.1, 1.0, 1.1], [2.0, 2.1]]
    assert pickle.loads(trained.pop("weights")) == {"w": 1.5}
    assert trained == {"updates": 8, "generated_with": [1, 2], "seconds": 2.0, "trainers": 2}
    assert [pickle.loads(member.asked[1][1]["weights"]) for member in members] == [{"w": 1.5}] * 2


def test_a_good_run_passes(tmp_path: Path) -> None:
    """Training after the engine's stop, on the device's own host: nothing is found."""
    evidence, _directory = shared_run(tmp_path)
    assert verify_handovers(evidence, options("sync", 1)).passed
    assert verify_hosts(evidence, options("sync", 1)).passed


def test_training_before_the_stop_is_seen(tmp_path: Path) -> None:
    """A stage that begins while the engine still records is named."""
    evidence, directory = shared_run(tmp_path, window_until=25)
    (problem,) = verify_handovers(evidence, options("sync", 1)).problems
    assert problem == "step 2 on node1: training began before the engine had stopped"
    assert not verify_check(directory).passed


def test_a_device_of_another_host_is_seen(tmp_path: Path) -> None:
    """A device that is recorded on by another host, and one that is not recorded on at all."""
    evidence, _directory = shared_run(tmp_path)
    evidence.collections[0].host = "node2"
    assert verify_hosts(evidence, options("sync", 2)).problems == [
        "node1 was recorded on by node1, node2, not node1",
        "node2 was recorded on by no host, not node2",
    ]


def test_a_long_directory_is_avoided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the path for temporary files is long, another is used, since Ray's sockets lie there; or it is said."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 60)))
    found = Path(cluster._directory())
    found.rmdir()
    assert found.parent == Path("/tmp")
    monkeypatch.setattr(cluster, "LONGEST_DIRECTORY", 3)
    with pytest.raises(ClusterError, match="TMPDIR"):
        cluster._directory()


def test_no_process_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives no process, the error says so, and no directory stays."""
    made: list[str] = []

    def refuse(name: str, module: str, settings: dict[str, Any], environment: dict[str, str]) -> None:
        made.append(settings["directory"])
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(cluster, "Child", refuse)
    with pytest.raises(ClusterError, match=r"could not be started: BlockingIOError: .* temporarily unavailable"):
        Cluster(("node1",), print).__enter__()
    assert not Path(made[0]).exists()


ORPHAN = """
import os, subprocess, sys, time
from profwin.demo.cluster.raylets import _adopt, _end_children
_adopt()
middle = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=-3, stderr=-3).pid, flush=True)"
done = subprocess.run([sys.executable, "-c", middle], stdout=subprocess.PIPE, text=True)
orphan = int(done.stdout)
assert os.path.exists(f"/proc/{orphan}")
_end_children()
print(os.path.exists(f"/proc/{orphan}"))
"""


def test_what_a_raylet_leaves_behind_is_ended() -> None:
    """A process whose parent has ended, as a worker's raylet, is ended by the one that has the raylets."""
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "False", done.stderr


def test_a_rollouter_decodes_only_while_it_may() -> None:
    """Between pause and resume nothing is decoded, so nothing is generated while the weights change."""
    torch = pytest.importorskip("torch")
    from profwin.demo.cluster.actors import RollouterActor
    from profwin.demo.trainer import Trainer

    async def work() -> None:
        actor = RollouterActor(random.randrange(100), 2)
        await actor.load_weights(Trainer(1).weights(), 0, 0.0)
        assert actor._engine.decoded == 0
        await actor.resume()
        first = await actor.samples()
        assert len(first) == 2
        await actor.pause()
        decoded = actor._engine.decoded
        await asyncio.sleep(0.1)
        assert actor._engine.decoded == decoded
        assert actor._task is not None
        actor._task.cancel()

    threads = torch.get_num_threads()
    asyncio.run(work())
    torch.set_num_threads(threads)

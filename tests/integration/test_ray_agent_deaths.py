"""Node agents, their driver or a node that die or are missing: training goes on, and the steps after it are right."""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("ray", reason="ray is not installed: agents cannot be tried")

from core_support import Evidence
from ray_support import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
NODES, HOSTS = ("first", "second"), True

FIRST = {"PROFWIN_PRETEND_HOST": "first"}


def steps(output):
    """Return the steps of the stages that were recorded, in order."""
    return [record["step"] for record in Evidence(output).of("enter", name="update") if "collection" in record]


def ended(pid, patience=100.0):
    """Wait until a process is gone."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        assert time.monotonic() < deadline, pid
        time.sleep(0.05)


KILLED = """
connect(steps="1,3,5")
agents = profwin.ray.agents(timeout=100)
trainer = place(Trainer, "second", "pretend:b")

def second():
    [(node, found)] = [pair for pair in agents.identities().items() if pair[1].host == "second"]
    return node, found.pid

pids = []
for step in range(7):
    node, pid = second()
    pids.append(pid)
    if step in (1, 2):
        os.kill(pid, signal.SIGKILL)
    if step in (3, 5):
        ray.kill(agents.handle(node))
    with training_step(step):
        ray.get(trainer.update.remote())
        if step in (1, 3, 5):
            board = agents.status()["nodes"][node.id]["board"]["training"]
            say(json.dumps([board["step"], board["selected"], board["declarer"] == second()[1]]))
    ray.get(trainer.update.remote())
say(len(set(pids)))
"""


def test_death_of_an_agent(cluster, output):
    """One that is killed, or given up by Ray, is replaced, and says the same; the training learns nothing of it."""
    with Driver(KILLED, cluster, output, **FIRST) as driver:
        *boards, different = driver.end()
    assert [json.loads(board) for board in boards] == [[1, True, True], [3, True, True], [5, True, True]]
    assert steps(output) == [1, 3, 5]
    assert Evidence(output).of("finding") == []
    assert different == "4"  # that of step 2 died unnoticed


SLOW = """
connect(steps="1-3,5")
agents = profwin.ray.agents(timeout=100)
crew = agents._relay.crew
[pid] = [each.pid for each in agents.identities().values() if each.host == "second"]
trainer = place(Trainer, "second", "pretend:b")
ray.get(trainer.update.remote())
with rollout_window(1):
    pass
os.kill(pid, signal.SIGSTOP)
crew.timeout = 1
with rollout_window(2):
    say("late")
crew.timeout = 1000  # now it would be waited for too long
for step in (3, 4):
    with rollout_window(step):
        pass
os.kill(pid, signal.SIGCONT)
while not all(seat._waiting is None or seat._waiting.done() for seat in crew.all()):
    time.sleep(0.05)
with rollout_window(5):
    ray.get(trainer.update.remote())
with rollout_window(6):
    ray.get(trainer.update.remote())
"""


def test_an_agent_that_does_not_answer(cluster, output):
    """It delays one step by the time limit, is said once, and when it answers again the steps are right again."""
    with Driver(SLOW, cluster, output, **FIRST) as driver:
        assert driver.end() == ["late"]
    assert steps(output) == [5]
    assert [each["code"] for each in Evidence(output).of("finding")] == ["agent-late"]


DRIVER_DIES = """
connect(steps="1-3")
agents = profwin.ray.agents(timeout=100)
with rollout_window(1):
    say(json.dumps([each.pid for each in agents.identities().values()]))
    hear()
"""


def test_death_of_the_driver(cluster, output):
    """Its agents end with it, on every node."""
    with Driver(DRIVER_DIES, cluster, output, **FIRST) as driver:
        pids = json.loads(driver.hear())
        assert len(pids) == 2
        driver.kill()
    for pid in pids:
        ended(pid)


AGAIN = """
connect(steps="1,4")
agents = profwin.ray.agents(timeout=100)
address = os.environ["CLUSTER"]
with rollout_window(1):
    ray.shutdown()
with rollout_window(2):
    pass
ray.init(address, runtime_env=profwin.ray.environment(), logging_level="ERROR", log_to_driver=False)
trainer = place(Trainer, "second", "pretend:b")
for step in (3, 4, 5):
    with rollout_window(step):
        pass
    ray.get(trainer.update.remote())
with rollout_window(6):
    ray.shutdown()
profwin.shutdown()
"""


def test_driver_that_disconnects(cluster, output):
    """Without a connection nothing raises, and with a new one there are agents again."""
    with Driver(AGAIN, cluster, output, **FIRST) as driver:
        driver.end()
    assert steps(output) == [4]
    assert Evidence(output).of("finding") == []


BROKEN = """
import tempfile
folder = tempfile.mkdtemp()
with open(folder + "/sitecustomize.py", "w") as file:
    file.write("import sys; sys.modules['profwin'] = None")  # as if it were not installed
profwin.configure(steps="1-2", output=os.environ["OUTPUT"])
broken = {"env_vars": {"PYTHONPATH": folder}}
ray.init(os.environ["CLUSTER"], runtime_env=broken, logging_level="ERROR", log_to_driver=False)
agents = profwin.ray.agents()
say(len(agents.nodes()))
for step in (1, 2):
    with rollout_window(step):
        pass
"""


def test_no_profwin_in_the_workers(cluster, output):
    """Where the agents' class cannot be loaded, there is one finding for each node, and nothing else happens."""
    with Driver(BROKEN, cluster, output, **FIRST) as driver:
        assert driver.end() == ["0"]
    said = [each["detail"] for each in Evidence(output).of("finding", code="agent-failed")]
    assert len(said) == 2
    assert all("profwin must be installed there: ModuleNotFoundError" in each for each in said), said


NODE_DIES = """
connect(steps="0-10")
agents = profwin.ray.agents(timeout=100)
say(json.dumps([each.host for each in agents.identities().values()]))
hear()
step, deadline = 0, time.monotonic() + 100
while len(agents.nodes()) > 1 and time.monotonic() < deadline:
    with rollout_window(step % 10):
        time.sleep(0.1)
    agents._relay.crew._looked = 0.0  # it looks every 5 s
    step += 1
with rollout_window(9):
    say(json.dumps([each.host for each in agents.identities().values()]))
hear()
agents._relay.crew._looked = 0.0
with rollout_window(10):
    pass
ray.get(place(Trainer, "third", "pretend:b").update.remote())
with rollout_window(11):
    say(json.dumps([each.host for each in agents.identities().values()]))
"""


def test_nodes_that_die_and_join(cluster, output):
    """One is dropped, with one finding, and the loop goes on; another gets an agent. The last test: a node is gone."""
    with Driver(NODE_DIES, cluster, output, **FIRST) as driver:
        assert sorted(json.loads(driver.hear())) == ["first", "second"]
        cluster.kill("second")
        driver.say()
        assert json.loads(driver.hear()) == ["first"]
        cluster.add("third")
        driver.say()
        assert sorted(json.loads(*driver.end())) == ["first", "third"]
    assert steps(output) == [10]
    assert [each["code"] for each in Evidence(output).of("finding")] == ["node-gone"]

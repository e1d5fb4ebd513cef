"""A fully asynchronous loop of two processes: one generates, one trains, and weights are synced between them."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from core_support import Child, Evidence

COMMON = """
from multiprocessing.connection import Client, Listener
from profwin import weight_sync
profwin.configure(steps={steps!r}, output={output!r}, devices="pretend:{part}", run="run")
bodies = []

def bracket(what, version, body):
    begin = time.monotonic_ns()
    body()
    bodies.append([what, version, begin, time.monotonic_ns()])
"""

TRAINER = """
listener = Listener({address!r}, "AF_UNIX")
say("listens")
peer = listener.accept()
queue = []

def hear_from(patience, version=None):
    # Samples are kept; an answer is the one that is waited for, or late.
    deadline = time.monotonic() + patience
    while peer.poll(max(0.0, deadline - time.monotonic())):
        what, number = peer.recv()
        if what == "synced" and number == version:
            return True
        if what == "sample":
            queue.append(number)
            if version is None:
                return True
    return False

def push(version):
    peer.send(version)
    answered.append(hear_from({patience}, version))

answered = []
for version in range({first}, {last} + 1):
    try:
        with weight_sync(version, window=False):
            bracket("sync", version, lambda: push(version))
        for _ in range(2):
            hear_from(0.05)
            with training_stage("update"):
                bracket("update", version, lambda: time.sleep(0.005))
    except (BrokenPipeError, EOFError, ConnectionResetError):
        break  # nobody generates any more
try:
    peer.send(None)
except OSError:
    pass
say(json.dumps([bodies, answered]))
profwin.shutdown()
"""

ROLLOUTER = """
peer = Client({address!r}, "AF_UNIX")
behaviour = {behaviour!r}
version = None

def generate():
    bracket("generate", version, lambda: time.sleep(0.003))
    peer.send(("sample", version))

def load(how):
    if how == "dies":
        say(json.dumps(bodies))
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.4 if how == "late" else 0.01)

while True:
    if not peer.poll(0.001):
        if version is not None:
            generate()
        continue
    version_asked = peer.recv()
    how = None if version_asked is None else behaviour.get(version_asked)
    if version_asked is None or how == "ends":
        break
    for _ in range({{"never": 0, "twice": 2}}.get(how, 1)):
        with weight_sync(version_asked):
            bracket("sync", version_asked, lambda: load(how))
        version = version_asked
        peer.send(("synced", version))
say(json.dumps(bodies))
peer.close()
"""


class Run:
    """What both processes did, by their own account and by their journals."""

    def __init__(self, folder, behaviour=None, first=0, last=3, steps="1-9", patience=10.0):
        values = {
            "output": str(folder / "output"),
            "address": str(folder / "peer"),
            "steps": steps,
            "first": first,
            "last": last,
            "patience": patience,
            "behaviour": behaviour or {},
        }
        common = {part: COMMON.format(part=part, **values) for part in ("train", "rollout")}
        with Child(common["train"] + TRAINER.format(**values)) as trainer:
            assert trainer.hear() == "listens"
            with Child(common["rollout"] + ROLLOUTER.format(**values)) as rollouter:
                self.train, self.answered = json.loads(trainer.hear())
                self.rollout = json.loads(rollouter.hear())
                self.trainer, self.rollouter = trainer.pid, rollouter.pid
                status, _, errors = trainer.finish()
                assert status == 0, errors
                self.status, _, self.errors = rollouter.finish()
        self.evidence = Evidence(folder / "output")

    def windows(self):
        """Return the windows' recordings, in order."""
        return self.evidence.collections(purpose="rollout")

    def hold_against_the_journals(self):
        """Assert that each generation and each update of a selected step was recorded there, and no sync was."""
        self.evidence.check(killed=(self.rollouter,) if self.status < 0 else ())
        for pid, bodies in ((self.trainer, self.train), (self.rollouter, self.rollout)):
            collections = self.evidence.collections(pid=pid)
            assert {each["devices"][0] for each in collections} <= {"pretend-train", "pretend-rollout"}
            for what, version, begin, end in bodies:
                met = [each for each in collections if each["t"] <= end and begin <= (each["end"] or end)]
                if what == "sync":
                    assert met == [], "a sync was recorded"
                else:
                    assert [each["step"] for each in met] == [version + 1]
                    assert met[0]["t"] <= begin
                    assert end <= (met[0]["end"] or end)
        assert not [record for record in self.evidence.records if record.get("waited", 0) > 5]
        self.hold_syncs_against_the_journals()

    def hold_syncs_against_the_journals(self):
        """Assert that each body of a sync lies between its two records, with nothing of its process between those."""
        for pid, bodies in ((self.trainer, self.train), (self.rollouter, self.rollout)):
            ends = {record["id"]: record for record in self.evidence.of("synced", pid=pid)}
            syncs = [(sync, ends.get(sync["id"])) for sync in self.evidence.of("sync", pid=pid)]
            done = [(sync["version"], sync["t"], end["t"]) for sync, end in syncs if end and end["status"] == "ok"]
            told = [(version, begin, end) for what, version, begin, end in bodies if what == "sync"]
            assert [version for version, *_ in done] == [version for version, *_ in told]
            for (_, first, last), (_, begin, end) in zip(done, told, strict=True):
                assert first <= begin <= end <= last
                records = [each for each in self.evidence.records if each["pid"] == pid]
                assert not [each for each in records if first < each["t"] < last]
            killed = [sync["version"] for sync, end in syncs if end is None]
            assert killed == ([2] if pid == self.rollouter and self.status < 0 else [])


def test_each_window_lies_between_two_syncs(tmp_path):
    """The window of step n is closed before the n-th sync is done in the trainer; the next one opens after the sync."""
    run = Run(tmp_path)
    assert (run.status, run.answered) == (0, [True] * 4), run.errors
    run.hold_against_the_journals()
    windows = run.windows()
    assert [(each["step"], each["version"]) for each in windows] == [(1, 0), (2, 1), (3, 2), (4, 3)]
    done = {version: end for what, version, _, end in run.train if what == "sync"}
    loaded = {version: (begin, end) for what, version, begin, end in run.rollout if what == "sync"}
    for before, after in pairwise(windows):
        version = after["version"]
        assert before["end"] <= loaded[version][0] <= done[version]
        assert loaded[version][1] <= after["t"]
    stages = [each["step"] for each in run.evidence.collections(purpose="training")]
    assert stages == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_late_answer_harms_nobody(tmp_path):
    """A rollout side that answers after the trainer has gone on: each records its own steps, whole."""
    run = Run(tmp_path, {1: "late"}, patience=0.1)
    assert run.status == 0, run.errors
    assert run.answered[:2] == [True, False]
    run.hold_against_the_journals()
    assert [each["step"] for each in run.evidence.collections(purpose="training")] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [each["step"] for each in run.windows()][:2] == [1, 2]


def test_a_sync_that_is_answered_twice_opens_its_step_twice(tmp_path):
    """A rollout side that loads the same weights twice has two windows of one step."""
    run = Run(tmp_path, {1: "twice"})
    assert run.status == 0, run.errors
    run.hold_against_the_journals()
    assert [(each["step"], each["occurrence"]) for each in run.windows()] == [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1)]


def test_an_answer_that_never_comes_harms_nobody(tmp_path):
    """A rollout side that skips a sync goes on in its window, and joins in at the next one; the trainer goes on."""
    run = Run(tmp_path, {2: "never"}, patience=0.1)
    assert run.status == 0, run.errors
    assert run.answered[2] is False
    run.hold_against_the_journals()
    assert [each["step"] for each in run.windows()] == [1, 2, 4]
    assert [each["step"] for each in run.evidence.collections(purpose="training")] == [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("end", ["ends", "dies"])
def test_a_rollout_side_that_is_gone_in_the_middle_leaves_nothing_open(tmp_path, end):
    """One that ends closes its window at its exit; one that is killed in the sync had closed it before."""
    run = Run(tmp_path, {2: end}, patience=0.3)
    assert run.status == (0 if end == "ends" else -9), run.errors
    run.hold_against_the_journals()
    windows = run.windows()
    assert [each["step"] for each in windows] == [1, 2]
    assert all(each["end"] is not None for each in windows)


def test_a_resumed_run_goes_on_at_its_version(tmp_path):
    """A run resumed at version 7 begins with step 8 in both processes."""
    run = Run(tmp_path, first=7, last=8, steps="8-9")
    assert run.status == 0, run.errors
    run.hold_against_the_journals()
    assert [each["step"] for each in run.windows()] == [8, 9]
    assert [each["step"] for each in run.evidence.collections(purpose="training")] == [8, 8, 9, 9]

"""What a driver heard of the processes that recorded for it, held against what their journals say."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings, strategies
from journal_builder import BOOT, SECOND, JournalBuilder

from profwin.evidence.check import check
from profwin.evidence.remotes import remotes
from profwin.evidence.run import load

OTHER = "77770000-0000-4000-8000-000000000000"
AHEAD = 5 * SECOND
"""What the other host's clock is ahead of the driver's, by what the driver measured, to the tenth of a second."""

DRIVER, ACTOR, AGENT = "d0d0-10", 20, 30


class Journals:
    """Of a driver, an actor beside it and an agent on another host, for windows of two steps.

    Each window of the driver is from 10 to 20 s of its step's hundred, those for it from 11 to 19.
    """

    def __init__(self, directory):
        self.directory = str(directory)
        self.driver = JournalBuilder(directory, "driver", None, pid=10, fields={"root": True})
        self.actor = JournalBuilder(directory, "engine", None, pid=ACTOR)
        self.agent = JournalBuilder(
            directory, "agent", None, pid=AGENT, boot=OTHER, host="second", clock=1000 * SECOND + AHEAD
        )
        self.driver.write(
            "clock", 0, boot=OTHER, host="second", at=1000 * SECOND, offset=AHEAD, uncertainty=SECOND // 10
        )
        self._number = 0
        self.all = [self.driver, self.actor, self.agent]

    def window(self, step, *, heard=("recording", "stopped"), did=True, begin=11.0, end=19.0, other=None, to=None):
        """Have the driver open a window over both, and both record it.

        Args:
            step: of the driver's window.
            heard: what the driver hears of the agent.
            did: whether the agent records it.
            begin: of the agent's recording.
            end: of that.
            other: step and version that it has.
            to: its token's driver, and number.
        """
        at = 100.0 * step
        driver, opened = self.driver, {"version": step - 1, "unlocked": True}
        collection = driver.number() + 1
        driver._next -= 1
        driver.window(step, at + 10, at + 20, devices=(), backends=("engine",), opened=opened)
        close = driver.lines.pop(-1)
        exit_ = driver.lines.pop(-1)
        for journal, said in ((self.actor, ("recording", "stopped")), (self.agent, heard)):
            self._number += 1
            token = f"{DRIVER}.{self._number}"
            for status, when in (
                ("recording", 12),
                ("refused", 12),
                ("unknown", 12),
                ("stopped", 19.5),
                ("died", 19.5),
            ):
                if status in said:
                    who = {} if status != "recording" else who_is(journal)
                    driver.write(
                        "remote",
                        at + when,
                        collection=collection,
                        token=token,
                        engine=journal.role,
                        status=status,
                        **who,
                    )
            mine = journal is self.actor
            if mine or did:
                place = (11.0, 19.0) if mine else (begin, end)
                self._recorded(journal, step if mine or other is None else other[0], at, *place, {
                    "version": step - 1 if mine or other is None else other[1],
                }, token if mine or to is None else to)  # fmt: skip
        driver.lines += [exit_, close]

    @staticmethod
    def _recorded(journal, step, at, begin, end, opened, token):
        devices = (f"{journal.role}-0",)
        place = len(journal.lines)
        journal.window(step, at + begin, at + end, devices=devices, backends=("engine",), opened=opened)
        line = journal.lines[place + 1]
        assert b'"enter"' in line
        journal.lines[place + 1] = line[:-2] + b',"token":"%s"}\n' % token.encode()

    def found(self, *ended, without=()):
        """End these processes in order, save all journals but some, and return the findings by their codes."""
        for journal in self.all:
            if journal in ended:
                journal.end()
            if journal not in without:
                journal.save()
        codes = {}
        for each in remotes(load(self.directory)):
            codes.setdefault(each.code.name, []).append(each)
        return codes


def who_is(journal):
    """Return what a process answers of itself."""
    boot = OTHER if journal.pid == AGENT else BOOT
    return {"pid": journal.pid, "start": 1, "boot": boot, "host": "second" if boot == OTHER else "host", "run": "a-run"}


@pytest.fixture
def journals(tmp_path):
    """Return the journals of a run, with a first step in which nothing is amiss."""
    made = Journals(tmp_path)
    made.window(1)
    return made


def test_nothing_is_amiss(journals):
    """Windows that all sides tell alike give no finding, nor do refusals and starts without an answer."""
    journals.window(2)
    journals.window(3, heard=("refused",), did=False)
    journals.window(4, heard=("unknown", "stopped"))
    journals.window(5, heard=("unknown",))
    journals.window(6, heard=("recording", "died"), end=30.0)
    assert journals.found(*journals.all) == {}


@pytest.mark.parametrize("killed", [False, True])
def test_a_lie(journals, killed):
    """A start that was confirmed, and is not in that process's journal, is named; also if it was killed later."""
    journals.window(2, did=False)
    journals.window(3)
    found = journals.found(*(journals.all[:2] if killed else journals.all))
    (finding,) = found.pop("remote-missing")
    assert "'rollout' of step 2 by driver (no rank, pid 10): agent, pid 30 on host 'second'" in finding.detail
    assert finding.file == journals.agent.name
    assert finding.data["step"] == 2
    assert found == {}


def test_a_window_without_a_recording_is_a_lie(journals):
    """A window that was skipped is no recording."""
    journals.window(2, did=False)
    identifier = journals.agent.skipped("window", "rollout", 2, 211, 219, "busy")
    line = journals.agent.lines[-2]
    assert b'"id":%d' % identifier in line
    journals.agent.lines[-2] = line[:-2] + b',"token":"%s.4"}\n' % DRIVER.encode()
    assert list(journals.found(*journals.all)) == ["remote-missing"]


def test_journals_that_are_not_collected(journals):
    """A journal that is not here is said once, with its process and how many windows, and what is to be done."""
    journals.window(2)
    (finding,) = journals.found(*journals.all, without=[journals.agent]).pop("not-collected")
    assert "agent, pid 30 on host 'second': its journal is not here (2 windows)" in finding.detail
    assert "profwin collect DIR" in finding.code.remedy


def test_a_journal_that_was_collected_too_early(journals):
    """One that here ends before the window is no lie, but is to be collected again."""
    journals.window(2, did=False)
    (finding,) = journals.found(journals.driver).pop("not-collected")
    assert "its journal here ends before (1 window)" in finding.detail


def test_a_journal_of_another_run(journals):
    """An actor of an earlier run has its journal there: that is said, since no collecting brings it here."""
    journals.driver.lines = [line.replace(b'"run":"a-run"}', b'"run":"old"}') for line in journals.driver.lines]
    found = journals.found(*journals.all, without=[journals.agent])
    assert "in the folder of its own run, 'old'" in found["not-collected"][0].detail


def test_a_driver_that_is_not_here(journals):
    """Where the driver's journal alone is missing, as on another node, that is said once, and nothing else."""
    journals.window(2)
    found = journals.found(*journals.all, without=[journals.driver])
    (finding,) = found.pop("not-collected")
    assert finding.detail == "pid 10, for which processes here recorded: its journal is not here (4 windows)"
    assert found == {}


@pytest.mark.parametrize("heard", ["others", "nothing"])
def test_a_driver_that_knows_of_nothing(journals, heard):
    """A recording that its driver's journal does not know of is named, whatever else it knows."""
    journals.window(2, heard=())
    if heard == "nothing":
        journals.driver.lines = [line for line in journals.driver.lines if b'"remote"' not in line]
    found = journals.found(*journals.all)
    assert len(found["remote-unknown"]) == (1 if heard == "others" else 4)
    said = "window 'rollout' of step 2 by agent (no rank, pid 30), for driver (no rank, pid 10)"
    assert said in [each.detail for each in found["remote-unknown"]]
    assert found.keys() == {"remote-unknown"}


@pytest.mark.parametrize(("last", "codes"), [(211.5, []), (300.0, ["remote-unknown"])])
def test_a_driver_that_was_killed(journals, last, codes):
    """One that was killed meanwhile need not know it; one that went on long after must."""
    journals.window(2, heard=())
    journals.driver.lines = [line for line in journals.driver.lines if b'"close"' not in line or b"120" not in line]
    kept = [line for line in journals.driver.lines if journals_time(line) <= 211.0]
    journals.driver.lines = kept
    journals.driver.step(3, last)
    assert list(journals.found(*journals.all[1:])) == codes


def journals_time(line):
    """Return when a line was written, in seconds after the run's begin."""
    return (int(line.partition(b'"t":')[2].partition(b",")[0].rstrip(b"}\n")) - 1000 * SECOND) / SECOND


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"other": (3, 1)}, "of step 3"),
        ({"other": (2, 7)}, "of version 7 of the weights, and the window of 1"),
        ({"other": (2, None)}, "of version None"),
        ({"begin": 9.0}, "begun before the window"),
        ({"end": 20.0}, "ended after the window"),
        ({"end": 21.0, "heard": ("recording",)}, "ended after the window"),
    ],
)
def test_what_is_outside_of_the_window(journals, changed, words):
    """A recording of another step, of other weights or at another time than the driver's window is named."""
    journals.window(2, **changed)
    found = journals.found(*journals.all)
    assert words in found.pop("remote-outside")[0].detail
    assert found == {}


@pytest.mark.parametrize("changed", [{"begin": 9.9}, {"end": 19.6}])
def test_clocks_that_do_not_tell(journals, changed):
    """What the clocks of two hosts leave open is no finding, and without an estimate nothing of the times is."""
    journals.window(2, **changed)
    assert journals.found(*journals.all) == {}
    journals.window(3, begin=0.0, end=50.0)
    journals.driver.lines = [line for line in journals.driver.lines if b'"clock"' not in line]
    assert journals.found() == {}


def test_a_recording_that_others_share(journals):
    """A recording that the actor's own code has begun, and a driver's window joined, may be longer than that."""
    agent = journals.agent
    journals.window(2, begin=9.0, end=30.0)
    place = next(number for number, line in enumerate(agent.lines) if b"enter" in line and b'"step":2' in line)
    own = agent.lines[place].partition(b',"token"')[0] + b"}\n"
    agent.lines.insert(place, own.replace(b'"id":3', b'"id":90'))
    assert journals.found(*journals.all) == {}


def test_check_says_so(journals):
    """`profwin check` has these findings, with what to do; each fails it as its severity says."""
    journals.window(2, did=False)
    for journal in journals.all:
        journal.end()
        journal.save()
    found = {each.code.name for each in check(journals.directory).findings}
    assert "remote-missing" in found
    os.unlink(journals.agent.path)
    result = check(journals.directory)
    assert "not-collected" in {each.code.name for each in result.findings}
    assert not result.clean("warning")


STATUS = strategies.sets(strategies.sampled_from(["recording", "stopped", "unknown", "refused"]))


@settings(max_examples=60, deadline=None)
@given(strategies.lists(strategies.tuples(STATUS, strategies.booleans()), min_size=1, max_size=5))
def test_every_disagreement_is_found_and_nothing_else(tmp_path_factory, steps):
    """A window is named exactly where one side has it as recorded and the other does not know of it."""
    journals = Journals(tmp_path_factory.mktemp("run"))
    for step, (heard, did) in enumerate(steps, 1):
        journals.window(step, heard=heard, did=did)
    found = journals.found(*journals.all)
    lies = sum("recording" in heard and not did for heard, did in steps)
    strangers = sum(not heard and did for heard, did in steps)
    assert len(found.pop("remote-missing", ())) == lies
    assert len(found.pop("remote-unknown", ())) == strangers
    assert found == {}

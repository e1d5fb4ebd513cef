"""An engine for tests of `weight_sync`, and what the journal says of it."""

from __future__ import annotations

import os

from profwin.journal import read


class Engine:
    """An engine that notes what it is told, and fails where that is planned."""

    def __init__(self, *plan):
        self.devices, self.process_ids = ["pretend:0"], [os.getpid()]
        self.plan, self.told, self.recording = list(plan), [], False

    def start_profile(self, profile_prefix):
        """Begin to record."""
        self.tell("start")
        self.recording, self.prefix = True, profile_prefix

    def stop_profile(self):
        """Stop recording."""
        self.tell("stop")
        self.recording = False

    def tell(self, what):
        """Note a call, then fail if that is planned next."""
        self.told.append(what)
        if self.plan and self.plan[0] == what:
            del self.plan[0]
            raise OSError("the engine does not answer")


def records(output, kind=None):
    """Return the journal's records, of one kind or of all."""
    found = [record for path in sorted(output.glob("*/journal/*.jsonl")) for record in read(str(path))]
    return [record for record in found if kind in (None, record["kind"])]


def opened(output):
    """Return (step, name, occurrence, version) of each window's recording, in order."""
    return [(r["step"], r["name"], r["occurrence"], r.get("version")) for r in records(output, "open")]

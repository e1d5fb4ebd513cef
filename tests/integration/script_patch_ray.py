"""Run as a script: patches classes of ``__main__``, decorated and not, and ships them to Ray actors.

Arguments: the directory to record in, and a short one for Ray's own files (its sockets' paths are limited).
"""

from __future__ import annotations

import pathlib
import sys

import ray
from travellers import arm

from profwin.patch import install
from profwin.patch.notes import PENDING
from profwin.patch.reading import read_text

PLAN = """
format = 1
name = "ray"
[[loop]]
owner = "self"
mode = "sync"
devices = ["pretend:loop"]
"""
METHODS = {
    "generate": 'role = "window"\nstep = "step"\nname = "NAME"',
    "update": 'role = "stage"\nname = "NAME"\nwhen = "self.ready"',
    "own_profiler": 'role = "silence"',
    "begin": 'role = "events"\nbefore = [{ event = "step_begins", number = "step" }]',
    "end": 'role = "events"\nafter = [{ event = "samples_in_hand", when = "return.done" }]',
    "stream": 'role = "stage"\nname = "NAME_stream"',
}


class Plain:
    """Becomes an actor by ``ray.remote(Plain)``."""

    ready = True

    def generate(self, step):
        """Generate."""
        return step

    def update(self, x=1):
        """Train."""
        return x + 1

    def own_profiler(self):
        """Start a profiler of its own."""
        return "started"

    def begin(self, step):
        """Begin a step."""

    def end(self):
        """Have samples."""
        return {"done": True}

    def stream(self, n):
        """Yield."""
        for item in range(n):  # noqa: UP028  # Ray sends values in, which a range cannot take
            yield item


@ray.remote(num_cpus=0)
class Decorated(Plain):
    """Is an actor class already."""


class Asynchronous:
    """Has an event loop."""

    async def generate(self, step):
        """Generate."""
        return step

    async def own_profiler(self):
        """Start a profiler of its own."""
        return "started"


@ray.remote(num_cpus=0)
class Late:
    """Is patched too late."""

    def update(self):
        """Train."""
        return 1


def plan():
    """Return the plan for all classes."""
    text = PLAN
    for owner, methods in (("Plain", METHODS), ("Decorated", METHODS), ("Asynchronous", ("generate", "own_profiler"))):
        for method in methods:
            body = METHODS[method].replace("NAME", owner.lower())
            text += f'[[patch]]\ntarget = "__main__:{owner}.{method}"\n{body}\n'
    return read_text(text + '[[patch]]\ntarget = "__main__:Late.update"\nrole = "stage"\nname = "late"\n')


def main(directory, temporary):
    """Start Ray, make each call once, and stop Ray."""
    arm(pathlib.Path(directory))
    ray.init(
        num_cpus=1, include_dashboard=False, object_store_memory=80 * 2**20, _temp_dir=temporary,
        logging_level="ERROR", log_to_driver=True,
    )  # fmt: skip
    try:
        late = Late.remote()
        install(plan(), strict=True)
        assert [code for code, text in PENDING if "Late.update" in text] == ["plan-note"]
        plain = ray.remote(Plain).options(num_cpus=0).remote()
        actors = [plain, Decorated.remote()]
        for actor in actors:
            assert ray.get(actor.generate.remote(2)) == 2
            assert ray.get(actor.update.remote(x=4)) == 5
            assert [ray.get(item) for item in actor.stream.remote(2)] == [0, 1]
            assert ray.get(actor.own_profiler.remote()) is None
            ray.get(actor.begin.remote(2))
            assert ray.get(actor.end.remote()) == {"done": True}
        actor = ray.remote(Asynchronous).options(num_cpus=0).remote()
        assert ray.get(actor.generate.remote(2)) == 2
        assert ray.get(actor.own_profiler.remote()) is None
        assert ray.get(late.update.remote()) == 1
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])

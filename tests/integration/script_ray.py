"""Run as a script: calls decorated methods of Ray actors, of classes sent by value and by reference.

Arguments: the directory to record in, and a short one for Ray's own files (its sockets' paths are limited).
"""

from __future__ import annotations

import pathlib
import sys

import ray
from travellers import AsyncTrainer, Trainer, arm

from profwin import training_stage, training_step


class Local:
    """Sent by value, because it is defined in ``__main__``."""

    @training_stage("local")
    def fit(self, x, *, args=0, self_=0):
        """Add."""
        return x + args + self_

    @training_stage("local_items")
    def items(self, n):
        """Count."""
        for item in range(n):  # noqa: UP028  # Ray sends values in, which a range cannot take
            yield item


class LocalAsync:
    """The same for an actor with an event loop; it has no other coroutine than the decorated ones."""

    @training_stage("local_async")
    async def fit(self, x):
        """Add one."""
        return x + 1

    @training_stage("local_stream")
    async def stream(self, n):
        """Count."""
        for item in range(n):
            yield item


@training_stage("task")
def task(x):
    """Add one."""
    return x + 1


def main(directory, temporary):
    """Start Ray, make each call once, and stop Ray."""
    arm(pathlib.Path(directory))
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        object_store_memory=80 * 2**20,
        _temp_dir=temporary,
        logging_level="ERROR",
        log_to_driver=True,
    )
    try:
        # Sent before the step is selected: a switch that travels by value would stay as it is now.
        kinds = (Trainer, Local, AsyncTrainer, LocalAsync)
        actors = [ray.remote(kind).options(num_cpus=0).remote() for kind in kinds]
        by_reference, by_value, by_reference_async, by_value_async = actors
        with training_step(2):
            assert ray.get(by_reference.step.remote(1)) == 3
            assert ray.get(by_reference.loss.remote(1)) == 4
            assert [ray.get(item) for item in by_reference.batches.remote(2)] == [0, 1]
            assert ray.get(by_value.fit.remote(1, args=2, self_=3)) == 6
            assert [ray.get(item) for item in by_value.items.remote(2)] == [0, 1]
            assert ray.get(by_reference_async.step.remote(1, y=5)) == 6
            assert [ray.get(item) for item in by_reference_async.stream.remote(2)] == [0, 1]
            assert ray.get(by_value_async.fit.remote(1)) == 2
            assert [ray.get(item) for item in by_value_async.stream.remote(2)] == [0, 1]
            assert ray.get(ray.remote(task).remote(1)) == 2
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])

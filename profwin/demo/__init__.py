"""A tiny GRPO loop, real in every part: what `profwin demo` runs, in four forms.

In sync and colocate (``loop``) an inference engine (``engine``) and a trainer (``trainer``) share one pretend
device, and a driver leads them. Only the device lock keeps the engine's profiler and the trainer's apart: the
trainer gets its batch while the engine is still being recorded. In ``separate`` rollout has a device of its own, and
the trainer's is lent to it in part of the steps; in ``fully_async`` a ``rollouter`` and an ``async_trainer`` run
freely on two devices. Each run is a ``trial``: ``verify``, ``versions`` and ``overlap`` judge it by its files alone.
"""

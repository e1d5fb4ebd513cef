"""A tiny GRPO loop, real in every part: what `profwin demo` runs.

Three processes share one pretend device: the driver (``loop``), the inference engine (``engine``) and the
trainer (``trainer``). Only the device lock keeps the engine's profiler and the trainer's apart: the trainer
gets its batch while the engine is still being recorded. ``verify`` then judges the run by its files alone.
"""

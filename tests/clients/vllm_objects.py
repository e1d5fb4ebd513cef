"""Loops of two steps around engine objects of vLLM's; runs in the environment of vllm_environment.sh.

``python vllm_objects.py here|others MODEL OUTPUT TRACES``: with the engine in this process, or in others. Each loop is
a run of its own. For each it says, as one line of JSON, its name, and what the adapter knows of the engine.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

import torch

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.engines import adapt

TOKENS = 4


def options(model, traces):
    """Return what every engine here is made with."""
    return {
        "model": model, "max_model_len": 128, "dtype": "float32", "enforce_eager": True,
        "kv_cache_memory_bytes": 1 << 26,
        "profiler_config": {
            "profiler": "torch", "torch_profiler_dir": traces, "ignore_frontend": True,
            "torch_profiler_with_stack": False,
        },
    }  # fmt: skip


@training_stage
def update():
    """Train a little."""
    return (torch.ones(8, 8) @ torch.ones(8, 8)).sum()


def known(engine):
    """Say what the adapter knows."""
    adapted = adapt(engine)
    return {"in_process": adapted.in_process, "processes": [title(pid) for pid in adapted.process_ids]}


def title(pid):
    """Return a process's title; ``here`` for this one."""
    if pid == os.getpid():
        return "here"
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().split("\0")[0]


def begin(loop, output):
    """Begin the run of a loop."""
    profwin.configure(
        steps="1-2",
        backend="torch",
        output=output,
        run=loop.replace(" ", "-"),
        devices="pretend:card",
        wait_budget=240.0,
    )


def end(loop, engine):
    """End it."""
    found = known(engine)
    profwin.shutdown()
    print(json.dumps([loop, found]), flush=True)


def plain(llm, output):
    """Run a loop with an ``LLM``."""
    begin("LLM", output)
    for step in (1, 2):
        with rollout_window(step, engine=llm):
            llm.generate("3 2 1", parameters(), use_tqdm=False)
        with training_step(step):
            update()
    end("LLM", llm)


def crossed(llm, output):
    """Let an ``LLM`` of this process and this process's own profilers meet."""
    begin("crossed", output)
    with torch.profiler.profile(), rollout_window(1, engine=llm):
        pass
    with rollout_window(2, engine=llm), training_step(2):
        llm.generate("3 2 1", parameters(), use_tqdm=False)
        update()
    end("crossed", llm)


def parameters():
    """Return how an ``AsyncLLM`` is to generate."""
    from vllm import SamplingParams

    return SamplingParams(max_tokens=TOKENS, ignore_eos=True)


async def answer(engine, number):
    """Generate once."""
    async for _ in engine.generate("3 2 1", parameters(), request_id=f"r{number}"):
        pass


async def asynchronous(model, output, traces):
    """Run loops with an ``AsyncLLM``, in its own event loop and in another thread."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**options(model, traces)))
    begin("AsyncLLM", output)
    for step in (1, 2):
        async with rollout_window(step, engine=engine):
            await answer(engine, step)
        with training_step(step):
            update()
    end("AsyncLLM", engine)
    await asyncio.to_thread(elsewhere, engine, asyncio.get_running_loop(), output)
    engine.shutdown()


def elsewhere(engine, loop, output):
    """Run a loop with an ``AsyncLLM`` whose event loop runs in another thread."""
    begin("AsyncLLM of another thread", output)
    for step in (1, 2):
        with rollout_window(step, engine=engine):
            asyncio.run_coroutine_threadsafe(answer(engine, f"{step}-elsewhere"), loop).result()
        with training_step(step):
            update()
    end("AsyncLLM of another thread", engine)


def main(where, model, output, traces):
    """Run all loops with engines there."""
    from vllm import LLM

    llm = LLM(**options(model, traces))
    plain(llm, output)
    if where == "here":
        crossed(llm, output)
    llm.llm_engine.engine_core.shutdown()
    if where == "others":
        asyncio.run(asynchronous(model, output, traces))


if __name__ == "__main__":
    main(*sys.argv[1:])

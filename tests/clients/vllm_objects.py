"""A loop of two steps around an engine object of vLLM's; runs in the environment of vllm_environment.sh.

``python vllm_objects.py KIND MODEL OUTPUT TRACES``. It says, as one line of JSON, what the adapter knows of the engine.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading

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


def plain(model, traces):
    """Run a loop with an ``LLM``."""
    from vllm import LLM

    llm = LLM(**options(model, traces))
    for step in (1, 2):
        with rollout_window(step, engine=llm):
            llm.generate("3 2 1", parameters(), use_tqdm=False)
        with training_step(step):
            update()
    found = known(llm)
    llm.llm_engine.engine_core.shutdown()
    return found


def crossed(model, traces):
    """Let an ``LLM`` of this process and this process's own profilers meet."""
    from vllm import LLM

    llm = LLM(**options(model, traces))
    with torch.profiler.profile(), rollout_window(1, engine=llm):
        pass
    with rollout_window(2, engine=llm), training_step(2):
        llm.generate("3 2 1", parameters(), use_tqdm=False)
        update()
    return known(llm)


def parameters():
    """Return how an ``AsyncLLM`` is to generate."""
    from vllm import SamplingParams

    return SamplingParams(max_tokens=TOKENS, ignore_eos=True)


async def make(model, traces):
    """Return an ``AsyncLLM`` made in the running event loop."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(AsyncEngineArgs(**options(model, traces)))


async def answer(engine, number):
    """Generate once."""
    async for _ in engine.generate("3 2 1", parameters(), request_id=f"r{number}"):
        pass


async def asynchronous(model, traces):
    """Run a loop with an ``AsyncLLM`` in its own event loop."""
    engine = await make(model, traces)
    for step in (1, 2):
        async with rollout_window(step, engine=engine):
            await answer(engine, step)
        with training_step(step):
            update()
    found = known(engine)
    engine.shutdown()
    return found


def elsewhere(model, traces):
    """Run a loop with an ``AsyncLLM`` whose event loop runs in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        engine = asyncio.run_coroutine_threadsafe(make(model, traces), loop).result()
        for step in (1, 2):
            with rollout_window(step, engine=engine):
                asyncio.run_coroutine_threadsafe(answer(engine, step), loop).result()
            with training_step(step):
                update()
        found = known(engine)
        loop.call_soon_threadsafe(engine.shutdown)
        return found
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


KINDS = {
    "LLM": plain,
    "crossed": crossed,
    "AsyncLLM": lambda model, traces: asyncio.run(asynchronous(model, traces)),
    "elsewhere": elsewhere,
}


def main(kind, model, output, traces):
    """Run one."""
    profwin.configure(
        steps="1-2", backend="torch", output=output, run="objects", devices="pretend:card", wait_budget=240.0
    )
    found = KINDS[kind](model, traces)
    profwin.shutdown()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

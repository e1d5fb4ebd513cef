"""Adapters of vLLM's and SGLang's engine objects, on classes of their names: what they are told, and what it means."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from types import SimpleNamespace as Bag

import pytest

from profwin.engines import ObjectEngine, adapt
from profwin.errors import EngineRefusedError

ABOUT = {"step": 3, "name": "rollout é", "run": "r"}


def of(package, name, **members):
    """Return a class of a package."""
    return type(name, (), {"__module__": f"{package}.some.where", "stop_profile": lambda self: None, **members})


def start_profile(self, profile_prefix=None, *, delay_iterations=None, max_iterations=None):
    """Note the prefix, as vLLM's have it."""
    self.told = profile_prefix


def configured(directory="", kind="torch", **more):
    """Return vLLM's configuration, as far as it is read."""
    return Bag(profiler_config=Bag(profiler=kind, torch_profiler_dir=directory, proton_profiler_dir="p", **more))


def llm(config, client=None, start=start_profile, **members):
    """Return an engine like vLLM's LLM."""
    engine = of("vllm", "LLM", start_profile=start, **members)()
    engine.llm_engine = Bag(vllm_config=config, engine_core=client)
    return engine


def write(directory, name):
    """Write a trace."""
    (directory / name).write_text("{}")


def test_files_are_named_and_moved(tmp_path):
    """The prefix is one that vLLM takes and no other window has; the file moves into the step's folder."""
    source, target = tmp_path / "source", tmp_path / "step"
    source.mkdir()
    engine = llm(configured(str(source)))
    adapted = adapt(engine)
    adapted.start(str(target), "stem", ABOUT)
    assert engine.told.startswith("step3_rollout___")
    assert engine.told.isascii()
    write(source, f"{engine.told}_rank0.pt.trace.json")
    write(source, "other.pt.trace.json")
    assert adapted.stop() == []
    (path,) = adapted.export(str(target), "stem")
    assert path == str(target / "stem.rank0.pt.trace.json")
    assert [each.name for each in source.iterdir()] == ["other.pt.trace.json"]


def test_no_file_means_that_nothing_was_recorded(tmp_path):
    """A start that was confirmed proves nothing."""
    adapted = adapt(llm(configured(str(tmp_path))))
    adapted.start(str(tmp_path), "stem", ABOUT)
    adapted.stop()
    with pytest.raises(FileNotFoundError):
        adapted.export(str(tmp_path), "stem")


@pytest.mark.parametrize(("kind", "place"), [("cuda", []), ("torch", ["t"]), ("proton", ["p"])])
def test_versions_without_a_prefix_leave_their_files(kind, place):
    """Where their files are is all that can be said; with cuda there is none."""
    engine = llm(configured("t", kind), start=lambda self: None)
    adapted = adapt(engine)
    adapted.start("d", "stem", ABOUT)
    adapted.stop()
    assert adapted.export("d", "stem") == place


def test_without_a_profiler_it_refuses(tmp_path):
    """It says which option it lacks, and is not told anything."""
    engine = llm(configured(kind=None))
    with pytest.raises(EngineRefusedError, match="profiler_config") as caught:
        adapt(engine).start(str(tmp_path), "stem", ABOUT)
    assert not caught.value.foreign
    assert not hasattr(engine, "told")


def test_an_open_session_is_foreign_unless_it_was_ours():
    """After a stop of ours that failed it is that one, and must be stopped again."""
    active = RuntimeError("A profiling session is already active.")

    def start(self, profile_prefix=None):
        if self.active:
            raise active

    def stop(self):
        raise ConnectionError

    engine = llm(configured(), start=start, stop_profile=stop)
    engine.active = True
    for _ in range(2):
        with pytest.raises(EngineRefusedError) as caught:
            adapt(engine).start("d", "stem", ABOUT)
        assert caught.value.foreign
    engine.active = False
    ours = adapt(engine)
    ours.start("d", "stem", ABOUT)
    with pytest.raises(ConnectionError):
        ours.stop()
    engine.active = True
    with pytest.raises(RuntimeError, match="still records window 'rollout é' of step 3"):
        adapt(engine).start("d", "stem", ABOUT)
    type(engine).stop_profile = lambda self: None
    adapt(engine).stop()
    with pytest.raises(EngineRefusedError):
        adapt(engine).start("d", "stem", ABOUT)


class UniProcExecutor:
    """Stands for vLLM's executor whose worker is in its own process."""


class ExecutorWithExternalLauncher(UniProcExecutor):
    """TRL's colocate mode has it."""


class MultiprocExecutor:
    """Its workers are processes of their own."""


@pytest.mark.parametrize(
    ("executor", "here"), [(UniProcExecutor, True), (ExecutorWithExternalLauncher, True), (MultiprocExecutor, False)]
)
def test_where_its_workers_are(executor, here):
    """An engine core in this process records here, unless its executor has workers elsewhere."""
    client = Bag(engine_core=Bag(model_executor=executor()))
    adapted = adapt(llm(configured(), client))
    assert adapted.in_process is here
    assert adapted.process_ids == ((os.getpid(),) if here else ())
    assert not adapted.revocable


def test_its_processes_are_those_below_its_core():
    """The core's process, and what that has started; what somebody has set on the object counts before them."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as core:
        client = Bag(resources=Bag(engine_manager=Bag(processes=[core])))
        while len(found := adapt(llm(configured(), client)).process_ids) < 2:
            pass
        engine = llm(configured(), client)
        engine.process_ids = [os.getpid()]
        engine.devices = "pretend:card"
        assert (adapt(engine).process_ids, adapt(engine).devices) == ((os.getpid(),), ("pretend:card",))
        os.kill(found[1], 9)
    assert found[0] == core.pid


@pytest.mark.parametrize("known", [True, False])
def test_a_coroutine_engine_runs_in_its_own_loop(known):
    """Not in the window's; not from its own thread, which would wait for itself; and not when it does not run."""
    loops = []

    async def start(self, profile_prefix=None):
        loops.append(asyncio.get_running_loop())

    async def stop(self):
        loops.append(asyncio.get_running_loop())

    engine = of("vllm", "AsyncLLM", start_profile=start, stop_profile=stop)()
    engine.vllm_config = configured(should_profile_frontend=False)
    own = asyncio.new_event_loop()
    engine.output_handler = own.create_task(asyncio.sleep(60))
    assert adapt(engine).obstacle() == "its event loop does not run"
    thread = threading.Thread(target=own.run_forever)
    thread.start()
    try:
        adapted = adapt(engine)
        assert adapted.detached
        assert adapted.obstacle() is None
        adapted.start("d", "stem", ABOUT)
        adapted.stop()

        async def inside():
            if not known:
                own._thread_id, number = None, own._thread_id  # as with uvloop
                adapted = adapt(engine)
                own._thread_id = number
                return adapted.obstacle(), adapted.needs(number)
            return adapt(engine).obstacle(), adapt(engine).needs(threading.get_ident())

        obstacle, needed = asyncio.run_coroutine_threadsafe(inside(), own).result()
        assert "async with" in obstacle
        assert needed
    finally:
        own.call_soon_threadsafe(engine.output_handler.cancel)
        own.call_soon_threadsafe(own.stop)
        thread.join()
        own.close()
    assert loops == [own, own]


@pytest.mark.parametrize("frontend", [True, False])
def test_a_front_end_that_records_is_in_this_process(frontend):
    """Its workers are elsewhere all the same: the death of this process proves nothing about them."""
    engine = of("vllm", "AsyncLLM", start_profile=start_profile)()
    engine.vllm_config = configured(should_profile_frontend=frontend)
    with subprocess.Popen(["sleep", "60"]) as core:
        engine.engine_core = Bag(resources=Bag(engine_manager=Bag(processes=[core])))
        adapted = adapt(engine)
        assert adapted.in_process is frontend
        assert set(adapted.process_ids) == {core.pid, os.getpid()} - (set() if frontend else {os.getpid()})
        core.kill()


def test_sglang_is_told_where_and_under_which_name(tmp_path):
    """It has keywords only; its own words for a stop of nothing confirm, and for a second start are foreign."""
    given, problems = [], []

    def start(self, **fields):
        given.append(fields)
        if problems:
            raise RuntimeError(problems.pop())
        write(tmp_path / "step", f"{fields['profile_id']}-TP-0.trace.json")

    def stop(self):
        raise RuntimeError("Profiling is not in progress. Call /start_profile first.")

    engine = of("sglang", "Engine", start_profile=start, stop_profile=stop)()
    adapted = adapt(engine)
    adapted.start(str(tmp_path / "step"), "stem", ABOUT)
    adapted.stop()
    assert adapted.export(str(tmp_path / "step"), "stem") == [str(tmp_path / "step" / "stem.TP-0.trace.json")]
    assert set(given[0]) == {"output_dir", "profile_id"}
    problems.append("Profiling is already in progress. Call /stop_profile first.")
    with pytest.raises(EngineRefusedError) as caught:
        adapt(engine).start(str(tmp_path / "step"), "stem", ABOUT)
    assert caught.value.foreign


def test_other_objects_are_not_taken_for_them():
    """A class of the same name elsewhere is any object; one derived from theirs is theirs."""
    assert type(adapt(of("mine", "LLM", start_profile=start_profile)())) is ObjectEngine
    derived = type("Mine", (of("vllm", "LLM", start_profile=start_profile),), {})()
    derived.llm_engine = Bag()
    assert type(adapt(derived)) is not ObjectEngine

"""Decorated functions and methods fire in the process that they are sent to, however they travel."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import functools
import multiprocessing
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import time

import pytest
import travellers
from travellers import Trainer, recorded, update

import profwin
from profwin import training_step

HERE = pathlib.Path(__file__).parent
SOURCES = str(HERE.parents[1])


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Record step 2 in this process and its children; forget it afterwards."""
    with monkeypatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PROFWIN_")]:
            patch.delenv(name)
        before = set(os.environ)
        travellers.arm(tmp_path)
        yield tmp_path
        profwin.shutdown()
        for name in set(os.environ) - before:
            del os.environ[name]


def run_script(name, *arguments):
    """Run a script of this folder in an interpreter of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PROFWIN_")}
    environment["PYTHONPATH"] = os.pathsep.join([SOURCES, str(HERE)])
    done = subprocess.run(
        [sys.executable, str(HERE / name), *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_pickle_in_this_process(directory):
    """Functions, partials, objects and bound methods come back from pickle and still record."""
    with training_step(2):
        assert pickle.loads(pickle.dumps(update)) is update
        assert pickle.loads(pickle.dumps(functools.partial(update, 1)))() == 2
        assert pickle.loads(pickle.dumps(Trainer())).step(1) == 3
        assert pickle.loads(pickle.dumps(Trainer().step))(1) == 3
    assert recorded(directory) == {("update", True): 1, ("step", True): 2}


def test_deep_copy(directory):
    """Deep copies of functions, objects and bound methods still record."""
    with training_step(2):
        assert copy.deepcopy(update)(1) == 2
        assert copy.deepcopy(Trainer()).step(1) == 3
        assert copy.deepcopy(Trainer().step)(1) == 3
    assert recorded(directory) == {("update", True): 1, ("step", True): 2}


def test_process_pool(directory):
    """Worker processes record what they are sent; their environment configures them."""
    context = multiprocessing.get_context("spawn")
    with training_step(2), concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(update, 1).result(60) == 2
        assert pool.submit(functools.partial(update, 2)).result(60) == 3
        assert pool.submit(Trainer().step, 1).result(60) == 3
        assert pool.submit(Trainer.loss, 1).result(60) == 4
    assert recorded(directory) == {("update", False): 2, ("step", False): 1, ("loss", False): 1}


def test_unselected_step_records_nothing_in_the_other_process(directory):
    """Outside the selected step the same worker runs the same functions and records none of them."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        for step in (1, 2, 3):
            with training_step(step):
                assert pool.submit(update, step).result(60) == step + 1
    assert recorded(directory) == {("update", False): 1}


def test_by_value_from_main(tmp_path):
    """What is defined in ``__main__`` is sent whole by cloudpickle and records in a fresh interpreter."""
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    run_script("script_by_value.py", tmp_path)
    assert recorded(tmp_path) == {
        ("update", False): 2, ("apply", False): 1, ("fit", False): 1, ("loss", False): 1,
        ("wait", False): 1, ("items", False): 1, ("stream", False): 1,
    }  # fmt: skip


@pytest.mark.slow
def test_ray_actors(tmp_path):
    """Methods of Ray actors of every kind record, their classes sent by value or by reference; tasks too."""
    pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")
    temporary = tempfile.mkdtemp(prefix="r", dir="/tmp")
    try:
        run_script("script_ray.py", tmp_path, temporary)
        assert recorded(tmp_path) == {
            ("step", False): 1, ("loss", False): 1, ("batches", False): 1,
            ("local", False): 1, ("local_items", False): 1,
            ("astep", False): 1, ("stream", False): 1,
            ("local_async", False): 1, ("local_stream", False): 1,
            ("task", False): 1,
        }  # fmt: skip
        deadline = time.monotonic() + 20
        while (left := processes_that_name(temporary)) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert left == []
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def processes_that_name(text):
    """Return the ids of the processes whose command line contains *text*."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found

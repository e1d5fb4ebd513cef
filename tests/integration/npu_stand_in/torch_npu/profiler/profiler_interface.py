"""Imitates ``profiler/profiler_interface.py``: what it calls, in which order, and the two JSON files at the end."""

import json
import os
import time

import torch_npu
from torch_npu import _C

from ._profiler_path_creator import ProfPathCreator
from .analysis.prof_common_func._constant import Constant, check_msprof_env, print_warn_msg
from .experimental_config import _ExperimentalConfig


class _ProfInterface:
    def __init__(self, activities=None, schedule=None, metadata=None, experimental_config=None, **switches) -> None:
        self._is_env_valid = check_msprof_env()
        self.prof_path = ""
        self.activities = set(activities) if activities else set(torch_npu.profiler.ProfilerActivity)
        self.schedule, self.metadata, self.switches = schedule, metadata, switches
        self.experimental_config = experimental_config or _ExperimentalConfig()
        self.start_monotonic = 0
        if self._is_env_valid:
            torch_npu.npu._lazy_init()

    def init_trace(self):
        if not self._is_env_valid:
            return
        ProfPathCreator().create_prof_dir()
        self.prof_path = ProfPathCreator().get_prof_dir()
        self._init_profiler()

    def _init_profiler(self):
        _C.init_profiler(self.prof_path)

    def warmup_trace(self):
        pass

    def start_trace(self):
        if not self._is_env_valid:
            return
        self.start_monotonic = time.monotonic_ns()
        _C.start_profiler(self.prof_path)

    def stop_trace(self):
        if not self._is_env_valid:
            return
        torch_npu.npu.synchronize()
        self._stop_profiler()

    def _stop_profiler(self):
        _C.stop_profiler()

    def finalize_trace(self):
        if not self._is_env_valid:
            return
        self._dump_profiler_info()
        self._dump_metadata()
        ProfPathCreator().is_prof_inited = False

    def delete_prof_dir(self):
        ProfPathCreator().delete_prof_dir()

    def analyse(self, async_mode=False, **kwargs):
        if self._is_env_valid:
            analyse_folder(self.prof_path)

    def _dump_profiler_info(self):
        config = {
            "common_config": {"activities": sorted(map(str, self.activities)), **self.switches},
            "experimental_config": self.experimental_config.__dict__,
        }
        told = {
            "config": config,
            "start_info": {"syscnt_enable": False, "freq": 100, "start_monotonic": self.start_monotonic},
            Constant.END_INFO: {"collectionTimeEnd": time.time_ns(), "MonotonicTimeEnd": time.monotonic_ns()},
            "torch_npu_version": "2.14.0",
            "cann_version": "9.1.0",
        }
        rank = os.environ.get("RANK")
        name = "profiler_info.json" if rank is None else f"profiler_info_{rank}.json"
        if rank is not None:
            told["rank_id"] = rank
        _write(os.path.join(self.prof_path, name), told)

    def _dump_metadata(self):
        self.metadata.update({"trace_id": "0" * 32})
        if not ProfPathCreator().is_prof_inited:
            print_warn_msg("Profiler is not initialized. Skip this metadata.")
            return
        _write(os.path.join(self.prof_path, Constant.PROFILER_META_DATA), self.metadata)
        self.metadata.clear()


def analyse_folder(path):
    """Leave results of one event; where the analysis fails, the folder says all the same that it is done."""
    output = os.path.join(path, Constant.OUTPUT_DIR)
    os.makedirs(output, exist_ok=True)
    with open(os.path.join(output, "analyse.done"), "wb"):
        pass
    if _C.fails("analysis"):
        return
    event = {"ph": "X", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "1780000000000000.000", "dur": 1, "cat": "cpu_op"}
    _write(os.path.join(output, "trace_view.json"), [event])


def _write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)

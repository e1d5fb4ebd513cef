"""Imitates ``profiler/profiler.py``: swallowed errors, steps, metadata, the handler, and a profiler that is dropped."""

import json
import os
from sys import getsizeof

from torch_npu.npu import mstx

from ._profiler_action_controller import ProfActionController
from ._profiler_path_creator import ProfPathCreator
from .analysis.prof_common_func._constant import Constant, no_exception_func, print_error_msg, print_warn_msg
from .profiler_interface import _ProfInterface, analyse_folder
from .scheduler import ProfilerAction, _default_schedule_fn


class prof:
    """What is torch's there: ``torch.autograd.profiler``."""

    class record_function:
        """A range."""

        def __init__(self, name):
            self.name = name

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            return None


class _KinetoProfile:
    def __init__(self, *, activities=None, **switches):
        self.metadata = {}
        self.max_meta_size = 50 * 1024
        self.max_str_len = 4096

    @no_exception_func()
    def add_metadata_json(self, key: str, value: str):
        """Add a value to profiler_metadata.json."""
        if not isinstance(key, str) or not isinstance(value, str):
            print_warn_msg("The key and value of metadata must be string. Skip this metadata.")
            return
        if max(len(key), len(value)) > self.max_str_len:
            print_warn_msg("Invalid input key or value. Skip this metadata.")
            return
        if getsizeof(self.metadata) + getsizeof(key) + getsizeof(value) < self.max_meta_size:
            try:
                self.metadata[key] = json.loads(value)
            except ValueError:
                print_warn_msg("The metadata value must be json format string. Skip this metadata")


@no_exception_func()
def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False
):
    """Fill the slot, and return what is called when a recording has ended."""
    ProfPathCreator().init(worker_name=worker_name, dir_name=dir_name)

    def handler_fn(prof_inst) -> None:
        if analyse_flag:
            prof_inst.prof_if.analyse(async_mode=async_mode)

    return handler_fn


class profile(_KinetoProfile):
    """A profiler of steps."""

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config=None,
        execution_trace_observer=None,
        custom_trace_id_callback=None,
        use_cuda: bool | None = None,
    ):
        super().__init__(activities=activities)
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.prof_if = _ProfInterface(
            activities=activities, schedule=self.schedule, metadata=self.metadata,
            experimental_config=experimental_config, record_shapes=record_shapes, profile_memory=profile_memory,
            with_stack=with_stack, with_flops=with_flops, with_modules=with_modules,
        )  # fmt: skip
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(self.step_num)
        self.step_rec_fn = None
        self._step_mstx_range_id = 0
        self.stopped = False
        self.action_controller = ProfActionController(self, self.prof_if, self.on_trace_ready)

    @no_exception_func()
    def __del__(self):
        if not self.stopped:
            self.stop()

    def _start_step_mstx_range(self, message: str):
        self._step_mstx_range_id = mstx.range_start(message)

    def _end_step_mstx_range(self):
        if self._step_mstx_range_id:
            mstx.range_end(self._step_mstx_range_id)
            self._step_mstx_range_id = 0

    @no_exception_func()
    def start(self):
        """Start."""
        self.stopped = False
        if not self.on_trace_ready:
            ProfPathCreator().init(export_only_mode=True)
        self.action_controller.transit_action(ProfilerAction.NONE, self.current_action)
        if self.record_steps:
            step_name = "ProfilerStep#" + str(self.step_num)
            self.step_rec_fn = prof.record_function(step_name)
            self.step_rec_fn.__enter__()
            self._start_step_mstx_range(step_name)

    @no_exception_func()
    def stop(self):
        """Stop."""
        if self.record_steps and self.step_rec_fn:
            self.step_rec_fn.__exit__(None, None, None)
            self._end_step_mstx_range()
        self.action_controller.transit_action(self.current_action, None)
        self.stopped = True

    @no_exception_func()
    def step(self):
        """Go on to the next step."""
        if self.stopped:
            print_warn_msg("Profiler is stopped, step takes no effect!")
            return
        if self.record_steps and self.step_rec_fn:
            self.step_rec_fn.__exit__(None, None, None)
            self._end_step_mstx_range()
        prev_action = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self.action_controller.transit_action(prev_action, self.current_action)
        if self.record_steps:
            step_name = "ProfilerStep#" + str(self.step_num)
            self.step_rec_fn = prof.record_function(step_name)
            self.step_rec_fn.__enter__()
            self._start_step_mstx_range(step_name)


@no_exception_func()
def analyse(profiler_path: str, max_process_number: int = Constant.DEFAULT_PROCESS_NUMBER, export_type=None):
    """Analyse raw data."""
    if not os.path.isdir(profiler_path):
        print_error_msg(f"The path does not exist: {profiler_path}")
        return
    analyse_folder(profiler_path)

"""Imitates ``profiler/_profiler_action_controller.py``: what is done at a change of state."""

from functools import partial

from .analysis.prof_common_func._constant import print_warn_msg
from .scheduler import ProfilerAction


class ProfActionController:
    """Does it."""

    def __init__(self, prof, prof_inst, on_trace_ready=None) -> None:
        self.prof, self.prof_inst, self.on_trace_ready = prof, prof_inst, on_trace_ready
        self.action_map = {
            (ProfilerAction.NONE, ProfilerAction.NONE): [],
            (ProfilerAction.NONE, ProfilerAction.WARMUP): [self.prof_inst.init_trace, self.prof_inst.warmup_trace],
            (ProfilerAction.NONE, ProfilerAction.RECORD): [self.prof_inst.init_trace, self.prof_inst.start_trace],
            (ProfilerAction.NONE, ProfilerAction.RECORD_AND_SAVE): [
                self.prof_inst.init_trace,
                self.prof_inst.start_trace,
            ],
            (ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE): [self.prof_inst.start_trace],
            (ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE): [
                self.prof_inst.stop_trace,
                self.prof_inst.finalize_trace,
                self._trace_ready,
            ],
            (ProfilerAction.WARMUP, None): [
                partial(print_warn_msg, "Incorrect schedule: Stop profiler while current state is WARMUP"),
                self.prof_inst.finalize_trace,
                self.prof_inst.delete_prof_dir,
            ],
            (ProfilerAction.RECORD, None): [
                partial(print_warn_msg, "Incorrect schedule: Stop profiler while current state is RECORD"),
                self.prof_inst.stop_trace,
                self.prof_inst.finalize_trace,
                self._trace_ready,
            ],
            (ProfilerAction.RECORD_AND_SAVE, None): [
                partial(print_warn_msg, "Stop profiler while current state is RECORD_AND_SAVE"),
                self.prof_inst.stop_trace,
                self.prof_inst.finalize_trace,
                self._trace_ready,
            ],
        }

    def transit_action(self, prev_action, current_action):
        """Do what a change of state asks for."""
        for action in self.action_map.get((prev_action, current_action)) or ():
            action()

    def _trace_ready(self):
        if self.on_trace_ready:
            self.on_trace_ready(self.prof)

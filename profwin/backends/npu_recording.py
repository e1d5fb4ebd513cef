"""One recording of torch_npu's profiler, from its start to the folder that it leaves; why it is so: `torch_npu`."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from profwin.backends import npu_access, npu_output
from profwin.backends.npu_config import experimental
from profwin.backends.npu_marks import Mark, Marks
from profwin.errors import BackendError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.backends import Request

__all__ = ["NpuRecording"]

_LONGEST_METADATA = 4096
"""Characters of a value that ``add_metadata_json`` takes; of a longer one it says on stdout that it is skipped."""
_current: NpuRecording | None = None
_at_exit = False


class NpuRecording:
    """One ``torch_npu.profiler.profile``, from entry to exit, and the folder that it leaves.

    Args:
        request: where the folder goes and what it must say.
        options: ``npu_options``, checked.
        beside_torch: whether the backend ``torch`` was asked for, too.
    """

    def __init__(self, request: Request, options: dict[str, Any], *, beside_torch: bool) -> None:
        self._request, self._options, self._beside_torch = request, options, beside_torch
        self._thread = threading.get_ident()
        self._profile: Any = None
        self._npu: Any = None
        self._folder = ""  # as torch_npu has it
        self._stopped = False
        self._lost: str | None = None
        self._failure: BaseException | None = None  # of a stop at the end of the process
        self._marks: Marks | None = None

    def __enter__(self) -> NpuRecording:
        global _current
        if (problem := npu_access.unfit()) is not None:
            raise BackendError("torch_npu", "open", problem)
        torch_npu = npu_access.load()
        if (problem := npu_access.foreign(beside_torch=self._beside_torch)) is not None:
            raise BackendError("torch_npu", "open", problem)
        self._npu = torch_npu.npu
        self._profile = self._make(torch_npu.profiler)
        _stop_at_exit()
        try:
            self._profile.start()
            self._see_that_it_started()
            self._marks = Marks(torch_npu.npu.mstx)
            self._profile.add_metadata_json(key="profwin", value=self._metadata())
        except BaseException:  # Ctrl-C may come at any point
            self._abandon()
            raise
        _current = self
        return self

    def _make(self, profiler: Any) -> Any:
        analysis = self._options.get("analysis", "off")
        handler = profiler.tensorboard_trace_handler(
            dir_name=os.path.dirname(self._request.stem),
            worker_name=npu_output.worker_name(self._request.stem),
            analyse_flag=analysis == "async",
            async_mode=analysis == "async",
        )
        if handler is None:
            raise BackendError("torch_npu", "open", _SILENT.format("tensorboard_trace_handler"))
        return profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
            schedule=profiler.schedule(wait=0, warmup=0, active=1, repeat=1),
            on_trace_ready=handler,
            record_shapes=self._options.get("shapes", False),
            profile_memory=self._options.get("memory", False),
            with_stack=self._options.get("stack", False),
            experimental_config=profiler._ExperimentalConfig(**experimental(profiler, self._options)),
        )

    def _see_that_it_started(self) -> None:
        self._folder = self._profile.prof_if.prof_path or ""
        # The range of its first step is the last thing that its start makes.
        if not self._folder or not os.path.isdir(self._folder) or self._profile.step_rec_fn is None:
            raise BackendError("torch_npu", "open", _SILENT.format("start"))

    def _metadata(self) -> str:
        import json

        text = json.dumps(self._request.metadata)
        if len(text) > _LONGEST_METADATA:
            text = json.dumps({**self._request.metadata, "devices": []})
        return text

    def __exit__(self, *exception: object) -> None:
        if self._failure is not None:
            raise self._failure
        if self._stopped:
            return  # at the end of the process, or by the parent of this one
        if threading.get_ident() != self._thread:
            raise BackendError("torch_npu", "close", _NOT_HERE)
        self._stop()

    def _stop(self) -> None:
        global _current
        slot = npu_access.path_slot()
        if slot is not None and slot.get_prof_dir() != self._folder:
            self._lost = (
                "another torch_npu profiler was started inside the recording, whose data may end early or be mixed: "
                f"see {self._folder} and {slot.get_prof_dir()}"
            )
        try:
            if self._marks is not None:
                self._marks.end_all()
            self._npu.synchronize()
        finally:
            self._stopped = True
            self._profile.step()
            self._profile.stop()
            _current = None
        if slot is not None and slot.is_prof_inited and slot.get_prof_dir() == self._folder:
            self._lost = _SILENT.format("stop") + "; it may record on until the process ends"

    def _abandon(self) -> None:
        """Stop what may have started, and leave no folder without data."""
        if folder := self._profile.prof_if.prof_path:
            self._profile.stop()
            npu_output.remove(folder, self._request.stem)
        # Without a folder nothing started, and a stop, also that of a dropped profiler, would write to the current one.
        self._stopped = self._profile.stopped = True

    @property
    def still_on(self) -> bool:
        """Whether it goes on, since it was left where it cannot be stopped; then its device is not given back."""
        return self._profile is not None and not self._stopped

    def span(self, name: str) -> Mark:
        """Return an mstx range."""
        if self._marks is None:
            raise BackendError("torch_npu", "open", "it is not recording")
        return Mark(self._marks, name)

    def loose_span(self, name: str) -> Mark:
        """Return an mstx range: each may end in any thread, and in any order."""
        return self.span(name)

    def step(self) -> None:
        """Do nothing: the profiler's own step would end the recording."""

    def export(self) -> list[str]:
        """Verify the folder, analyse it where that was asked for, and return it."""
        if not self._stopped:
            raise BackendError("torch_npu", "export", _NOT_HERE)
        profile, self._profile = self._profile, None
        if profile is None or self._lost is not None:
            raise BackendError("torch_npu", "export", self._lost or "it was exported before")
        # torch_npu resolves links in the path; the run's directory is the one that was given.
        folder = os.path.join(os.path.dirname(self._request.stem), os.path.basename(self._folder))
        if problems := npu_output.lacking(folder):
            detail = "; ".join(problems)
            raise BackendError("torch_npu", "export", f"{folder} lacks {detail}. " + _SILENT.format("stop"))
        if self._options.get("analysis") == "sync":
            npu_access.load().profiler.profiler.analyse(profiler_path=folder)
        return [folder]

    def leave_to_parent(self) -> None:
        """Tell the profiler, in a forked child, that it has stopped: dropped, it would write to the parent's folder."""
        self._stopped = True
        if self._profile is not None:
            self._profile.stopped = True

    def stop_at_exit(self) -> None:
        """Stop before torch_npu shuts the NPUs down. What fails is raised when the collection is closed."""
        try:
            self._stop()
        except Exception as error:  # noqa: BLE001  # whatever a device says; nothing may break the end
            self._failure = error


_SILENT = (
    "torch_npu's {} failed, and printed why ('Call ... failed. Exception: ...') on standard output instead of raising; "
    "CANN's log may say more"
)
_NOT_HERE = (
    "it must be stopped in the main thread, and is on until the process ends, when it is stopped there: call "
    "profwin.shutdown() and profwin.configure() in the main thread"
)


def _stop_at_exit() -> None:
    """See to it that a recording is stopped before torch_npu shuts down: what was registered last runs first."""
    global _at_exit
    if not _at_exit:
        _at_exit = True
        atexit.register(_end)


def _end() -> None:
    if _current is not None and threading.current_thread() is threading.main_thread():
        _current.stop_at_exit()


def _after_fork() -> None:
    global _current
    npu = getattr(sys.modules.get("torch_npu"), "npu", None)
    if _current is not None:
        _current.leave_to_parent()
        _current = None
        npu_access.forked()
    elif npu is not None and getattr(npu, "is_initialized", bool)():
        npu_access.forked()


os.register_at_fork(after_in_child=_after_fork)

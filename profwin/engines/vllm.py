"""vLLM's HTTP server.

What its answers mean was read in vLLM 0.32.0 and 0.33.0, and is held against the installed one by the tests.
"""

from __future__ import annotations

from profwin.engines.checks import checked_json, checked_optional
from profwin.engines.server import ProfilerServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.engines.asked import Asked

__all__ = ["VLLMServer"]

_OPTION = """start it with --profiler-config '{"profiler": "torch", "torch_profiler_dir": "/DIRECTORY"}'"""


class VLLMServer(ProfilerServer):
    """A vLLM server, for ``rollout_window(step, engine=VLLMServer("http://127.0.0.1:8000"))``.

    The server must have been started with ``--profiler-config``, else a window is skipped and says so. With the
    profiler ``cuda`` it marks a capture range of Nsight Systems, which writes the file, and none is looked for. Which
    fields of a request it knows depends on its version, and it ignores those that it does not know:
    ``profiler_kwargs`` came with 0.33; a version that does not know ``profile_prefix`` names its files in a way that no
    window can be told by.

    A start that is answered with 409 is somebody else's session: the window is skipped, and nothing is stopped. A stop
    takes as long as the traces take to be written: 19 s for a window of 0.1 s was measured on a CPU.

    Args:
        url, token, devices, directory, revocable, start_timeout, stop_timeout, ranks: see
            :class:`profwin.engines.server.ProfilerServer`. vLLM itself asks for its ``--api-key`` only below ``/v1``.
        delay_iterations: engine steps, from 0, that pass before it records; None: as the server is configured. The
            devices are taken all the time.
        max_iterations: engine steps after which it stops recording by itself; 0: none; None: as configured.
        profiler_kwargs: JSON values for its profiler, for versions that know them.

    Raises:
        SettingError: one of them is wrong.
    """

    kind = "vLLM"
    missing = _OPTION
    silence = (
        "its profiler has not begun, or was still delayed, and its log says why; versions that do not know "
        "profile_prefix name their files otherwise"
    )

    def __init__(
        self,
        url: str,
        *,
        delay_iterations: int | None = None,
        max_iterations: int | None = None,
        profiler_kwargs: dict[str, Any] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(url, **common)
        self._fields: dict[str, Any] = {
            "delay_iterations": checked_optional("delay_iterations", delay_iterations, 0),
            "max_iterations": checked_optional("max_iterations", max_iterations, 0),
            "profiler_kwargs": checked_json("profiler_kwargs", profiler_kwargs),
        }

    def _start_request(self, asked: Asked, directory: str, prefix: str) -> dict[str, Any]:  # noqa: ARG002  # not told
        from profwin.engines.places import vllm_directory, vllm_profiler

        if asked.directory is None:
            asked.directory = vllm_directory(asked.processes)
        asked.leaves_files = vllm_profiler(asked.processes) != "cuda"
        fields = {name: value for name, value in self._fields.items() if value is not None}
        return {"profile_prefix": asked.token, **fields}

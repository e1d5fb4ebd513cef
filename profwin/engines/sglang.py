"""SGLang's HTTP server.

What its answers mean was read in SGLang 0.5.23, and is held against its wheel's source by the tests. It was never run
here.
"""

from __future__ import annotations

import os

from profwin.engines.checks import checked_names, checked_optional
from profwin.engines.http import Answer
from profwin.engines.server import INTERNAL, ProfilerServer, successful
from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from profwin.engines.asked import Asked

__all__ = ["SGLangServer"]

_OPAQUE = "Internal Server Error"
"""All that its HTTP server says of an error that its scheduler explains: no handler passes the explanation on."""
_NAME = "profwin"
_SURE = 2


class SGLangServer(ProfilerServer):
    """An SGLang server, for ``rollout_window(step, engine=SGLangServer("http://127.0.0.1:30000"))``.

    The server needs no option. Where all its processes see this process's files, as its user or as root, it is told to
    write into a folder of the step's folder. Elsewhere it is told nothing, since SGLang 0.5.23 dies of a folder that it
    cannot make: its files are in ``SGLANG_TORCH_PROFILER_DIR``, else ``/tmp``.

    SGLang 0.5.23 refuses a start beside another client's session only with ``start_step`` or ``profile_by_stage``. A
    plain one takes over: that session's data is lost, and this window's files have its name.

    A stop is answered with 500 where nothing is in progress, such as after ``num_steps``, and no other answer of a
    living server is 500; where it does not say why, it is believed when it says so twice.

    Args:
        url, token, devices, revocable, start_timeout, stop_timeout, ranks: see
            :class:`profwin.engines.server.ProfilerServer`. The token is its ``--admin-api-key``, else its
            ``--api-key``.
        directory: where it is told to write; it must be able to.
        start_step: forward step, from 1, counted from the server's start, at which it begins; a step that has passed
            means the next one.
        num_steps: forward steps, from 1, after which it stops by itself.
        activities: of ``CPU``, ``GPU``, ``MEM``, ``RPD``, ``CUDA_PROFILER``; None: ``CPU`` and ``GPU``. It may die of
            one that its machine cannot do.
        profile_by_stage: whether prefill and decode get files of their own, of ``num_steps`` each.
        with_stack, record_shapes: None: as SGLang does by itself, which is both.

    Raises:
        SettingError: one of them is wrong; also ``profile_by_stage`` without ``num_steps``, of which SGLang dies.
    """

    kind = "SGLang"
    missing = "is this its address?"
    silence = "nothing was generated, or another client's session was open and the files have its name; its log says it"

    def __init__(
        self,
        url: str,
        *,
        start_step: int | None = None,
        num_steps: int | None = None,
        activities: Iterable[str] | None = None,
        profile_by_stage: bool = False,
        with_stack: bool | None = None,
        record_shapes: bool | None = None,
        **common: Any,
    ) -> None:
        super().__init__(url, **common)
        if profile_by_stage and num_steps is None:
            raise SettingError("profile_by_stage", profile_by_stage, "it with num_steps")
        self._armed = bool(start_step or profile_by_stage)
        self._fields: dict[str, Any] = {
            "start_step": checked_optional("start_step", start_step, 1),
            "num_steps": checked_optional("num_steps", num_steps, 1),
            "activities": checked_names("activities", activities),
            "profile_by_stage": True if profile_by_stage else None,
            "with_stack": with_stack,
            "record_shapes": record_shapes,
        }

    def _start_request(self, asked: Asked, directory: str, prefix: str) -> dict[str, Any]:
        from profwin.engines.places import can_write_here, sglang_directory

        told = asked.directory
        if told is None and can_write_here(asked.processes):
            try:
                told = os.path.join(os.path.abspath(directory), prefix)
                os.makedirs(told)
                asked.alone = True
            except OSError:
                told = None  # the disk's trouble: it writes where it does by itself
        asked.directory = told or sglang_directory(asked.processes)
        fields = {"output_dir": told, "profile_prefix": asked.token, "profile_id": _NAME, **self._fields}
        return {name: value for name, value in fields.items() if value is not None}

    def _taken(self, answer: Answer) -> bool:
        # What is to begin later is only noted down, and all that can be wrong then is that a session is open.
        return super()._taken(answer) or (self._armed and _opaque(answer))

    def _stopped(self, answers: list[Answer]) -> bool:
        if successful(answers[-1]):
            return True
        idle = "not in progress" in answers[-1].body or sum(map(_opaque, answers)) >= _SURE
        return idle and (not self._armed or self._disarm())

    def _disarm(self) -> bool:
        """Make sure that what was to begin at a later step does not: only a recording that ends makes SGLang forget it.

        So one is started and stopped at once, under the same locks; it leaves a small file.
        """
        body = {"profile_prefix": f"{_NAME}_unused", "profile_id": os.urandom(4).hex(), "activities": ["CPU"]}
        return all(
            isinstance(answer := self._channel.post(path, value, self._stop_timeout), Answer) and successful(answer)
            for path, value in (("/start_profile", body), ("/stop_profile", None))
        )


def _opaque(answer: Answer) -> bool:
    return answer.status == INTERNAL and answer.body == _OPAQUE

"""Retreat: profwin is turned off where a plan cannot be followed, so that no run is recorded in part."""

from __future__ import annotations

import os

from profwin.configuration import current, shutdown
from profwin.patch.notes import note, record
from profwin.switch import SWITCH

__all__ = ["retreat"]

_VARIABLES = ("PROFWIN_STEPS", "PROFWIN_PATCH_PLAN", "PROFWIN_PATCH_MODULES")


def retreat(text: str) -> None:
    """Turn profwin off in this process, and in those that it starts from now on, and say why.

    The journal gets a finding, if this process was to have one.
    """
    note("plan-target", f"{text}; the run goes on and is not profiled")
    session = current() if SWITCH.on else None
    if session is not None:
        record(session)
        shutdown()
    for name in _VARIABLES:
        os.environ.pop(name, None)

"""Codes of findings about plans, which processes that follow one write into their journals."""

from __future__ import annotations

from profwin.evidence.finding import Code

__all__ = ["OF_PLANS", "PLAN_NOTE", "PLAN_PATH", "PLAN_TARGET"]

PLAN_TARGET = Code(
    "plan-target", "error", "A plan does not fit a process's code, so nothing more was profiled there.",
    "Correct the plan as the finding says; `profwin plan check` compares it with what is installed.",
)  # fmt: skip
PLAN_PATH = Code(
    "plan-path", "error", "A path of a plan led nowhere in a call, so calls of that target ran unprofiled.",
    "Correct the path, or say with `when` which calls have it.",
)  # fmt: skip
PLAN_NOTE = Code(
    "plan-note", "remark", "A plan was followed, and there is something that its user should know.",
    "See the finding's words: calls by another name that are not seen, or an optional target that is not there.",
)  # fmt: skip

OF_PLANS = {code.name: code for code in (PLAN_TARGET, PLAN_PATH, PLAN_NOTE)}
"""The codes by the names that they have in journals."""

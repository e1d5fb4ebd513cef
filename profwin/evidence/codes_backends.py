"""Codes of findings about backends, which processes write into their journals."""

from __future__ import annotations

from profwin.evidence.finding import Code

__all__ = ["BACKEND_REPLACED", "OF_BACKENDS"]

BACKEND_REPLACED = Code(
    "backend-replaced", "warning", "A backend cannot record in a process, and another one recorded in its place.",
    "See the finding's words for the reason; ask for one of the two only.",
)  # fmt: skip

OF_BACKENDS = {code.name: code for code in (BACKEND_REPLACED,)}
"""The codes by the names that they have in journals."""

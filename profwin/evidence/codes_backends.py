"""Codes of findings about backends, which processes write into their journals."""

from __future__ import annotations

from profwin.evidence.finding import Code

__all__ = ["BACKEND_REPLACED", "NSYS_NOT_THERE", "OF_BACKENDS"]

BACKEND_REPLACED = Code(
    "backend-replaced", "warning", "A backend cannot record in a process, and another one recorded in its place.",
    "See the finding's words for the reason; ask for one of the two only.",
)  # fmt: skip
NSYS_NOT_THERE = Code(
    "nsys-not-there", "warning", "A process records with nsys, and nothing shows that nsys launched it.",
    "Start it under nsys profile, with the options that profwin nsys-options prints.",
)  # fmt: skip

OF_BACKENDS = {code.name: code for code in (BACKEND_REPLACED, NSYS_NOT_THERE)}
"""The codes by the names that they have in journals."""

"""Codes of findings about engines, which processes write into their journals."""

from __future__ import annotations

from profwin.evidence.finding import Code

__all__ = ["ENGINE_FAILED", "ENGINE_SILENT", "ENGINE_UNGUARDED", "FOREIGN_SESSION", "OF_ENGINES"]

ENGINE_FAILED = Code(
    "engine-failed", "error", "Of several engines of one window one did not record, or its traces cannot be had.",
    "See the finding's words for which one, and why; the others recorded.",
)  # fmt: skip
ENGINE_SILENT = Code(
    "engine-silent", "error", "An engine confirmed its start and its stop, and left no trace.",
    "Look at the engine's log: its answer does not prove that its profiler began.",
)  # fmt: skip
ENGINE_UNGUARDED = Code(
    "engine-unguarded", "warning", "Which devices an engine records on is not known, so none was locked for it.",
    "Pass devices= to the engine or to the window.",
)  # fmt: skip
FOREIGN_SESSION = Code(
    "foreign-session", "warning", "An engine was recording for somebody else, so a window was not recorded.",
    "Find out who started its profiler; what trains on its devices meanwhile is recorded beside it.",
)  # fmt: skip

OF_ENGINES = {code.name: code for code in (ENGINE_FAILED, ENGINE_SILENT, ENGINE_UNGUARDED, FOREIGN_SESSION)}
"""The codes by the names that they have in journals."""

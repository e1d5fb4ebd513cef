"""Codes of findings about a Ray cluster: of its nodes, which processes note, and of who recorded for whom."""

from __future__ import annotations

from profwin.evidence.finding import Code

__all__ = [
    "AGENT_DIED", "AGENT_FAILED", "AGENT_LATE", "NODE_GONE", "NOT_COLLECTED", "OF_RAY", "REMOTE_MISSING",
    "REMOTE_OUTSIDE", "REMOTE_UNKNOWN", "REPORT_MISSING",
]  # fmt: skip

AGENT_DIED = Code(
    "agent-died", "error", "A node's agent died in the window of an engine that it drove: the traces are lost.",
    "See Ray's logs for why it ended; profwin locks --cluster shows devices that are still unknown.",
)  # fmt: skip
AGENT_FAILED = Code(
    "agent-failed", "warning", "A node of the cluster has no agent, so processes there do not learn the step.",
    "See the finding's words; workers need profwin and profwin.ray.environment(): give it to ray.init.",
)  # fmt: skip
AGENT_LATE = Code(
    "agent-late", "warning", "A node's agent did not confirm a step in time.",
    "Stages on that node may be recorded in the wrong step, or not; see why the node is slow.",
)  # fmt: skip
NODE_GONE = Code(
    "node-gone", "warning", "A node of the cluster died during the run.",
    "See Ray's logs; what its processes recorded may be lost, and they may live on and hold their devices.",
)  # fmt: skip
REPORT_MISSING = Code(
    "report-missing", "warning", "A report of nsys was not there, empty or still growing when the run ended.",
    "Have them written while the actors live, by nsight(mode='async'); give wait_for_reports() more time.",
)  # fmt: skip
# What journals of several processes say of each other.
NOT_COLLECTED = Code(
    "not-collected", "warning",
    "The journal of a process that recorded for a window, or of the one that led it, is not here, or not to its end.",
    "Run `profwin collect DIR` while the cluster is up, again when its processes have ended, and check that folder.",
)  # fmt: skip
REMOTE_MISSING = Code(
    "remote-missing", "error", "A process confirmed that it recorded for a window, and its journal has no recording.",
    "Look for records of that process that are lost; if there are none, report it as a bug of profwin.",
)  # fmt: skip
REMOTE_UNKNOWN = Code(
    "remote-unknown", "warning", "A process recorded for another one, whose journal knows nothing of it.",
    "Look for lost records of the one that led it: nothing shows that the recording was within a window.",
)  # fmt: skip
REMOTE_OUTSIDE = Code(
    "remote-outside", "error",
    "What a process recorded for a window is not within that, or is of another step or weight version.",
    "Do not read it as that window's; see both journals.",
)  # fmt: skip

OF_RAY = {code.name: code for code in (AGENT_DIED, AGENT_FAILED, AGENT_LATE, NODE_GONE, REPORT_MISSING)}
"""The codes by the names that they have in journals."""

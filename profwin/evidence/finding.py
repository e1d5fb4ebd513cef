"""Findings: what is wrong with the evidence, under codes that stay the same from version to version."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SEVERITIES", "Code", "Finding", "at_least"]

SEVERITIES = ("remark", "warning", "error")
"""From the mildest: a remark is no finding for the exit status unless it is asked for."""


@dataclass(frozen=True)
class Code:
    """A kind of finding.

    Attributes:
        name: stable, lower case, words joined by ``-``.
        severity: one of `SEVERITIES`.
        meaning: one sentence: what is wrong.
        remedy: one sentence: what to do.
    """

    name: str
    severity: str
    meaning: str
    remedy: str


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth a remark.

    Attributes:
        code: its kind.
        detail: what exactly, with figures; names from files are escaped where it is shown, not here.
        file: path relative to the checked directory; empty where it is about the run as a whole.
        place: where in the file: ``byte 123``, ``event 45``, ``row 6 of KERNEL``; empty for the whole file.
        data: further JSON values, such as ``step``, ``rank``, ``device``, ``seconds``.
    """

    code: Code
    detail: str
    file: str = ""
    place: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "code": self.code.name, "severity": self.code.severity, "file": self.file, "place": self.place,
            "detail": self.detail, "remedy": self.code.remedy, **({"data": self.data} if self.data else {}),
        }  # fmt: skip


def at_least(severity: str, threshold: str) -> bool:
    """Say whether a severity reaches a threshold."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(threshold)

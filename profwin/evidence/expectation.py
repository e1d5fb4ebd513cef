"""Expectation: what was asked for, by the settings of a run or the options of a check."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profwin.errors import SettingError
from profwin.evidence import codes_run as codes
from profwin.evidence.finding import Finding
from profwin.selection import parse_names, parse_ranks, parse_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from profwin.evidence.run import Run
    from profwin.selection import Names, Selection

    Value = TypeVar("Value")

__all__ = ["Expectation", "expect", "options"]

_LITERAL = re.compile(r"[^!*?\[\]][^*?\[\]]*")


@dataclass(frozen=True)
class Expectation:
    """What was asked for. Whatever is None or empty is not known, and nothing is expected of it.

    Attributes:
        steps: to be recorded, of any attempt.
        ranks: to be recorded.
        stages, roles: a name is wanted if one of these has it.
        named_stages, named_roles: those that were asked for by their very name, not by a pattern.
        whole_steps: whether stages of one step are recorded together (``collect="step"``).
        required: whether options name the ranks, so that each must be there whatever the world size.
        findings: selections that cannot be read.
    """

    steps: Selection | None = None
    ranks: Selection | None = None
    stages: tuple[Names, ...] = ()
    roles: tuple[Names, ...] = ()
    named_stages: tuple[str, ...] = ()
    named_roles: tuple[str, ...] = ()
    whole_steps: bool = False
    required: bool = False
    findings: list[Finding] = field(default_factory=list)

    def wants_stage(self, name: str) -> bool:
        """Say whether a stage of this name was asked for."""
        return not self.stages or any(name in names for names in self.stages)

    def wants_role(self, name: str | None) -> bool:
        """Say whether a role was asked for."""
        return not self.roles or name is None or any(name in names for names in self.roles)

    def wants_rank(self, rank: int | None) -> bool:
        """Say whether a rank was asked for; a process without one is."""
        return self.ranks is None or rank is None or rank in self.ranks

    def named_ranks(self, most: int = 100_000) -> list[int]:
        """Return the ranks that options name one by one."""
        last = self.ranks.last if self.required and self.ranks is not None else None
        return [] if last is None else [rank for rank in range(min(last + 1, most)) if self.wants_rank(rank)]


def options(
    steps: str | None = None, stages: str | None = None, ranks: str | None = None, roles: str | None = None
) -> Expectation:
    """Return what the options of a check ask for.

    Raises:
        SettingError: one is malformed.
    """
    stage_names = parse_names(stages, "--stages") if stages else None
    role_names = parse_names(roles, "--roles") if roles else None
    return Expectation(
        steps=parse_steps(steps, "--steps"),
        ranks=parse_ranks(ranks, "--ranks") if ranks else None,
        stages=() if stage_names is None else (stage_names,),
        roles=() if role_names is None else (role_names,),
        named_stages=_literals(stages),
        named_roles=_literals(roles),
        required=bool(ranks),
    )


def expect(run: Run, asked: Expectation | None = None) -> Expectation:
    """Return what a run was asked for: by its processes' settings, its manifest's, and, before them, by options.

    Args:
        run: the run.
        asked: by options; each that is given counts instead of the settings.
    """
    asked = asked or Expectation()
    settings: list[tuple[str, dict[str, Any]]] = []
    for process in run.processes:
        if not any(process.settings is other for _, other in settings):
            settings.append((process.journal, process.settings))
    if not settings and run.manifest is not None:
        settings.append(("manifest.json", run.manifest["settings"]))
    reader = _Reader(run, settings)
    steps = reader.united("steps", lambda text: parse_steps(None if text.lower() in ("", "none", "off") else text))
    ranks = reader.united("ranks", parse_ranks)
    return Expectation(
        steps=asked.steps or steps,
        ranks=asked.ranks or ranks,
        stages=asked.stages or reader.names("stages"),
        roles=asked.roles or reader.names("roles"),
        named_stages=asked.named_stages if asked.stages else reader.literals("stages"),
        named_roles=asked.named_roles if asked.roles else reader.literals("roles"),
        whole_steps=any(each.get("collect") == "step" for _, each in settings),
        required=asked.required,
        findings=reader.findings,
    )


class _Reader:
    """Read the selections of a run's settings, which are text from a file."""

    def __init__(self, run: Run, settings: list[tuple[str, dict[str, Any]]]) -> None:
        self._run, self._settings, self.findings = run, settings, list[Finding]()

    def united(self, name: str, parse: Callable[[str], Selection | None]) -> Selection | None:
        """Return what any process was to record; None if one of them is not known, or all have none."""
        found = None
        for value in self._parsed(name, parse):
            if value is None:
                return None
            found = value if found is None else found | value
        return found

    def names(self, name: str) -> tuple[Names, ...]:
        """Return the patterns of all processes; none if a process has none, and so wants every name."""
        parsed = list(self._parsed(name, parse_names))
        return () if None in parsed else tuple(value for value in parsed if value is not None)

    def literals(self, name: str) -> tuple[str, ...]:
        """Return the names that a process was asked for by its very name."""
        texts = {text for _, each in self._settings if isinstance(text := each.get(name), str)}
        return tuple(sorted({literal for text in texts for literal in _literals(text)}))

    def _parsed(self, name: str, parse: Callable[[str], Value | None]) -> list[Value | None]:
        found: dict[str | None, Value | None] = {}
        for file, each in self._settings:
            value = each.get(name)
            if value is None:
                if name != "steps":  # where that is off, and no wish
                    found.setdefault(None, None)
            elif not isinstance(value, str) or value not in found:
                try:
                    found[str(value)] = parse(value if isinstance(value, str) else "?")
                except (SettingError, RecursionError) as error:
                    found[str(value)] = None
                    detail = f"{name} {str(value)[:100]!r}: {error}"[:400]
                    self.findings.append(Finding(codes.BAD_SETTING, detail, self._run.path(file)))
        return list(found.values())


def _literals(text: str | None) -> tuple[str, ...]:
    parts = [part.strip() for part in (text or "").split(",")]
    return tuple(part for part in parts if _LITERAL.fullmatch(part))

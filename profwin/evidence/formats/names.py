"""What a path says about what a file holds. Nothing is opened; a path is text like any other, and may say nothing."""

from __future__ import annotations

import re
from dataclasses import fields, replace

from profwin.evidence.model import Name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["combined", "name_of"]

_NUMBER = r"\d{1,9}"
_OURS = re.compile(
    rf"(?:rank(?P<rank>{_NUMBER})|norank)_(?P<role>.+)_p\d+-[0-9a-f]{{4}}_n(?P<occurrence>{_NUMBER})(?:\.\d+)?_a\d+"
)
_STEP = re.compile(rf"step_(?P<step>{_NUMBER})(?:_again\d+)?")
_VERL = re.compile(
    rf"(?:(?P<before>.*?)_)?(?:step(?P<step>{_NUMBER})_)?rank(?P<rank>{_NUMBER})-of-(?P<world>{_NUMBER})"
    rf"(?:_(?:tp|pp|dp|cp)[^_]*)?_pid\d+_"
)
_RELOCATED = re.compile(rf"rollout-replica(?P<replica>{_NUMBER})-globalrank(?P<rank>{_NUMBER})_")
_REPLICA = re.compile(rf"agent_loop_rollout_replica_(?P<replica>{_NUMBER})")
_VLLM_PARTS = re.compile(rf"(?:^|_)dp(?P<replica>{_NUMBER})_pp{_NUMBER}_tp{_NUMBER}\w*?_rank(?P<rank>{_NUMBER})\.")
_VLLM = re.compile(rf"(?:^|[-_])rank[-_]?(?P<rank>{_NUMBER})\.\d+\.pt\.trace\.json")
_SGLANG = re.compile(
    rf"-TP-(?P<rank>{_NUMBER})(?:-DP-(?P<replica>{_NUMBER}))?(?:-(?:PP|EP|MOE)-?\w*)*[^/]*\.trace\.json"
)
_RANK = re.compile(rf"(?:^|[^A-Za-z])(?:global)?rank[-_]?(?P<rank>{_NUMBER})(?!\d)", re.IGNORECASE)
_PREFIX_STEP = re.compile(rf"(?:^|[^A-Za-z])(?:global_)?step[-_]?(?P<step>{_NUMBER})(?!\d)", re.IGNORECASE)

_ROLLOUT = re.compile(r"rollout|generat", re.IGNORECASE)
_STAGES = re.compile(
    r"(?:actor|critic|ref|reward|rm|e2e|old)_?(?:compute_\w+|update\w*|infer\w*|train\w*|log_prob\w*)"
    r"|compute_\w+|update_\w+",
    re.IGNORECASE,
)


def _numbers(match: re.Match[str]) -> dict[str, Any]:
    return {key: int(match[key]) for key in ("step", "rank", "world", "occurrence", "replica")
            if match.groupdict().get(key) is not None}  # fmt: skip


def name_of(path: str) -> Name:
    """Return what a path, with ``/`` between folders and relative to the checked directory, says."""
    *folders, name = path.split("/")
    for recogniser in (_ours, _relocated, _verl, _sglang, _vllm):
        found = recogniser(folders, name)
        if found is not None:
            return found
    return _guess(folders, name)


def combined(*names: Name) -> Name:
    """Return one name of several: what an earlier one says counts, and the source is that of the first."""
    values: dict[str, Any] = {}
    for name in names:
        for field in fields(name):
            value = getattr(name, field.name)
            if value is not None and value != "":
                values.setdefault(field.name, value)
    return Name(**values)


def _ours(folders: list[str], name: str) -> Name | None:
    match = _OURS.match(name)
    if match is None:
        return None
    said = Name(role=match["role"], source="profwin", **_numbers(match))
    for index in range(len(folders) - 1, -1, -1):
        step = _STEP.fullmatch(folders[index])
        if step is None:
            continue
        below = folders[index + 1 :]
        said = replace(said, step=int(step["step"]))
        if len(below) == 2 and below[0] == "train":
            return replace(said, purpose="training", stage=below[1])
        if len(below) == 1:
            return replace(said, purpose="rollout", stage=below[0])
        return said
    return said


def _relocated(folders: list[str], name: str) -> Name | None:
    match = _RELOCATED.match(name)
    if match is None:
        return None
    step = _step_of(folders, name)
    return Name(purpose="rollout", stage="rollout", step=step, source="verl", **_numbers(match))


def _verl(folders: list[str], name: str) -> Name | None:
    match = _VERL.match(name)
    if match is None:
        return None
    before = match["before"] or None
    purpose, stage = _stage_of([*folders, before or ""])
    said = Name(purpose=purpose, stage=stage, role=before, source="verl", **_numbers(match))
    return said if said.step is not None else replace(said, step=_step_of(folders, before or ""))


def _engine(folders: list[str], name: str, match: re.Match[str], source: str) -> Name:
    replica = next((found for found in map(_REPLICA.fullmatch, reversed(folders)) if found), None)
    numbers = _numbers(replica) if replica and not match.groupdict().get("replica") else {}
    step = _step_of(folders, name)
    return Name(purpose="rollout", stage="rollout", step=step, source=source, **{**_numbers(match), **numbers})


def _sglang(folders: list[str], name: str) -> Name | None:
    match = _SGLANG.search(name)
    return None if match is None else _engine(folders, name, match, "sglang")


def _vllm(folders: list[str], name: str) -> Name | None:
    match = _VLLM_PARTS.search(name)
    if match is None:
        # Others than vLLM name files so too; in a replica's folder, or with its kind of worker's name, it is vLLM's.
        match = _VLLM.search(name)
        if match is None or not (any(map(_REPLICA.fullmatch, folders)) or "-rank-" in name):
            return None
    return _engine(folders, name, match, "vllm")


def _guess(folders: list[str], name: str) -> Name:
    """Return what folders of verl's, and words such as ``rank-0`` or ``step_3`` anywhere, say."""
    rank = _RANK.search(name)
    purpose, stage = _stage_of(folders)
    replica = next((found for found in map(_REPLICA.fullmatch, reversed(folders)) if found), None)
    numbers = {**(_numbers(rank) if rank else {}), **(_numbers(replica) if replica else {})}
    step = _step_of(folders, name)
    source = "verl" if stage else ("name" if numbers or step is not None else "")
    return Name(purpose=purpose, stage=stage, step=step, source=source, **numbers)


def _step_of(folders: list[str], name: str) -> int | None:
    for part in (name, *reversed(folders)):
        match = _PREFIX_STEP.search(part)
        if match:
            return int(match["step"])
    return None


def _stage_of(folders: list[str]) -> tuple[str | None, str | None]:
    """Return purpose and stage as the innermost folder that tells says."""
    for folder in reversed(folders):
        if _REPLICA.fullmatch(folder):
            return "rollout", "rollout"
        if _STAGES.fullmatch(folder):
            return "training", folder
        if _ROLLOUT.search(folder):
            return "rollout", folder
    return None, None

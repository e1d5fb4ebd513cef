"""What is verified on a cluster besides: hosts that are apart, handovers on each device, and what ``check`` finds."""

from __future__ import annotations

from profwin.demo.verify import Check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.demo.options import Options
    from profwin.demo.witness import Evidence

__all__ = ["verify_check", "verify_handovers", "verify_hosts"]


def verify_hosts(evidence: Evidence, options: Options) -> Check:
    """Check that each device was recorded on, by processes of its own host alone.

    Args:
        evidence: what was collected.
        options: of the run.
    """
    problems = []
    for device in options.devices if options.profiled else ():
        key, own = device.replace(":", "-", 1), options.host_of(device)
        found = {each.host for each in evidence.collections if key in each.devices}
        if found != {own}:
            who = ", ".join(sorted(found)) or "no host"
            problems.append(f"{options.short(key)} was recorded on by {who}, not {own}")
    return Check("each device was recorded on, by its own host alone", problems)


def verify_handovers(evidence: Evidence, options: Options) -> Check:
    """Check that on each shared device training of a step began when the engine there had stopped.

    Args:
        evidence: what was collected.
        options: of the run.
    """
    what = "training waited for the engine's stop on each device that they share"
    return Check(what, list(_early(evidence, options)))


def _early(evidence: Evidence, options: Options) -> Iterator[str]:
    for step in options.profiled:
        for device in evidence.devices:
            here = [each for each in evidence.collections if each.step == step and device in each.devices]
            stops = [each.closed or 1 << 62 for each in here if each.purpose == "rollout"]
            starts = [each.opened for each in here if each.purpose == "training"]
            if stops and starts and min(starts) < max(stops):
                yield f"step {step} on {options.short(device)}: training began before the engine had stopped"


def verify_check(directory: str) -> Check:
    """Check that ``profwin check`` finds nothing in what was collected.

    Args:
        directory: of the run.
    """
    from profwin.evidence.check import check

    found = check(directory).findings
    problems = [f"{each.code.name}: {each.detail}" for each in found if each.code.severity != "remark"]
    return Check("profwin check finds nothing in what was collected", problems)

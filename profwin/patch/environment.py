"""The variables by which ``profwin run`` reaches COMMAND and its children; the only things it leaves there."""

from __future__ import annotations

import os

from profwin.patch.finder import boot
from profwin.patch.plan import dump_plans
from profwin.registry.host import known_boot_id
from profwin.run import new_name, process_text, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from profwin.patch.plan import Plan

__all__ = ["FOLDER", "patch_variables", "python_path"]

FOLDER = boot.HERE
"""The folder on PYTHONPATH."""


def patch_variables(plans: Sequence[Plan], children: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that patch a process and its children by plans.

    Args:
        plans: the plans; they travel in a variable, so that nothing is left on disk and Ray takes them along.
        children: the rule of `parse_children`; this very process becomes COMMAND.
        environ: the variables that they are added to.

    Raises:
        PlanError: the plans are too large for that.
    """
    names = {module: None for plan in plans for module in plan.modules()}
    return {
        "PYTHONPATH": python_path(environ.get("PYTHONPATH", "")),
        "PROFWIN_PATCH_PLAN": dump_plans(plans),
        "PROFWIN_PATCH_MODULES": ",".join(names),
        "PROFWIN_PATCH_CHILDREN": children,
        "PROFWIN_PATCH_COMMAND": boot.identity(),
        "PROFWIN_PATCH_MAIN": ",".join(_main_targets(plans)),
        # All that COMMAND starts is of one run, also where COMMAND itself, such as a shell, has no session to hand on.
        "PROFWIN_LAUNCH": f"{new_name()}/{_this_process()}",
    }


def _this_process() -> str:
    """Describe this process; `profwin.launch.Origin` does it, too, but takes longer to import than this command has."""
    return process_text(os.getpid(), start_time(), os.stat("/proc/self/ns/pid").st_ino, 0, known_boot_id())


def python_path(given: str) -> str:
    """Return a PYTHONPATH with our folder in front; an empty entry, which means the current directory, stays one."""
    others = [entry for entry in given.split(os.pathsep) if entry != FOLDER] if given else []
    return os.pathsep.join([FOLDER, *others])


def _main_targets(plans: Iterable[Plan]) -> list[str]:
    targets = [patch.target for plan in plans for patch in plan.patches]
    targets += [plan.configure.target for plan in plans if plan.configure is not None]
    return [target.partition(":")[2] for target in targets if target.startswith("__main__:")]

"""``profwin locks``: who holds which device on this host."""

from __future__ import annotations

import time

from profwin.cli.printing import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from profwin.registry.lock import Registry
    from profwin.registry.survey import DeviceState

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
Show every device that profwin knows on this host, and who holds it. Looking disturbs nobody.

free: nobody collects on it. held: a window or stage collects on it. unknown: nobody holds it, but an engine
that was asked to record on it has not confirmed that it stopped; it becomes free when the engine confirms,
when its processes end, or when you confirm with --confirm that it records no more. unusable: its lock file
cannot be trusted.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``profwin``."""
    import argparse

    parser = subparsers.add_parser(
        "locks",
        help="show who holds which device on this host",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="write one JSON document instead of a table")
    parser.add_argument(
        "--confirm",
        metavar="DEVICE",
        help="say that the engine marked on this device records no more; exit code 1 if there is no mark or"
        " the device is held",
    )
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help="the lock directory; default: PROFWIN_LOCK_DIR, else the host's",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command.

    Returns:
        0; 1 where ``--confirm`` found nothing to confirm.

    Raises:
        RegistryError: the lock directory cannot be used.
    """
    from profwin.registry.lock import Registry

    registry = Registry(arguments.directory)
    if arguments.confirm is not None:
        return _confirm(registry, arguments.confirm)
    states = registry.survey()
    if arguments.json:
        show(_json(registry, states))
    else:
        show(_table(registry, states))
    return 0


def _confirm(registry: Registry, device: str) -> int:
    from profwin.registry.holder import printable

    shown = printable(device)
    state = next((state for state in registry.survey() if state.key == device), None)
    if registry.confirm(device):
        show(f"{shown}: the mark is removed, the device is free")
        return 0
    if state is None:
        show(f"{shown}: there is no such device; `profwin locks` lists those there are")
    elif state.state == "held":
        show(f"{shown}: held by {_who(state)}; end that first")
    elif state.state == "unusable":
        show(f"{shown}: the lock file cannot be used: {state.problem}")
    else:
        show(f"{shown}: there is no mark to remove, the device is free")
    return 1


def _who(state: DeviceState) -> str:
    if state.problem is not None:
        return state.problem
    if state.holder is not None:
        return state.holder.describe()
    if state.mark is not None:
        return state.mark.describe()
    return "an unknown holder" if state.state == "held" else ""


def _table(registry: Registry, states: list[DeviceState]) -> str:
    from profwin.registry.holder import printable

    rows = [("DEVICE", "STATE", "SINCE", "HOLDER")]
    for state in states:
        since = "" if state.since is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.since))
        rows.append((printable(state.key), state.state, since, _who(state)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
        for row in rows
    ]
    if not states:
        lines = ["no device has been locked yet"]
    return "\n".join([printable(registry.choice), *lines])


def _json(registry: Registry, states: list[DeviceState]) -> str:
    import json

    import msgspec

    # Escaped to ASCII: a record is written by any user, and may be printed on a terminal.
    return json.dumps(
        {
            "directory": registry.directory,
            "devices": [{**msgspec.to_builtins(state), "who": _who(state) or None} for state in states],
        },
        indent=2,
        sort_keys=True,
    )

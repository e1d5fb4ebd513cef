"""``profwin locks``: who holds which device on this host, or on all hosts of a Ray cluster."""

from __future__ import annotations

import sys

from profwin.cli.printing import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from profwin.registry.lock import Registry

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
Show every device that profwin knows on this host, and who holds it. Looking disturbs nobody.

free: nobody collects on it. held: a window or stage collects on it. unknown: nobody holds it, but an engine
that was asked to record on it has not confirmed that it stopped; it becomes free when the engine confirms,
when its processes end, or when you confirm with --confirm that it records no more. unusable: its lock file
cannot be trusted.

With --cluster, the same of every host of a Ray cluster: exit code 1 if a node that Ray takes for alive does
not answer, 2 if there is no cluster.
"""
_SECONDS = 30.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``profwin``."""
    import argparse

    parser = subparsers.add_parser(
        "locks",
        help="show who holds which device on this host, or on all of a Ray cluster",
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
    parser.add_argument("--cluster", action="store_true", help="ask all nodes of a Ray cluster")
    cluster = parser.add_argument_group("with --cluster")
    cluster.add_argument("--address", metavar="ADDR", help="the cluster's; default: RAY_ADDRESS, else this host's")
    cluster.add_argument("--node", metavar="NODE", help="where --confirm does so: a node's id as the table shows it")
    cluster.add_argument(
        "--timeout", type=_seconds, metavar="S", help=f"seconds that the nodes have to answer; default: {_SECONDS:g}"
    )
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError
    from math import inf

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Run the command.

    Returns:
        0; 1 where ``--confirm`` found nothing to confirm, or a living node did not answer; 2 where there is no
        cluster, or options do not go together.

    Raises:
        RegistryError: the lock directory cannot be used.
    """
    wrong = _wrong(arguments)
    if wrong is not None:
        print(f"profwin: {wrong}", file=sys.stderr)
        return 2
    if arguments.cluster:
        from profwin.cli.cluster import run as run_cluster

        return run_cluster(arguments, arguments.timeout or _SECONDS)
    from profwin.cli.device_table import json_text, state_json, table
    from profwin.registry.holder import printable
    from profwin.registry.lock import Registry

    registry = Registry(arguments.directory)
    if arguments.confirm is not None:
        return _confirm(registry, arguments.confirm)
    states = registry.survey()
    if arguments.json:
        show(json_text({"directory": registry.directory, "devices": [state_json(state) for state in states]}))
    else:
        show("\n".join([printable(registry.choice), table([("", state) for state in states])]))
    return 0


def _wrong(arguments: argparse.Namespace) -> str | None:
    if not arguments.cluster:
        given = [name for name in ("address", "node", "timeout") if getattr(arguments, name) is not None]
        return f"--{given[0]} is for --cluster" if given else None
    if (arguments.confirm is None) != (arguments.node is None):
        return "with --cluster, --confirm DEVICE and --node NODE go together"
    return None


def _confirm(registry: Registry, device: str) -> int:
    from profwin.cli.device_table import confirmation
    from profwin.registry.survey import confirm

    done, state = confirm(registry, device)
    show(confirmation(device, state, done=done))
    return 0 if done else 1

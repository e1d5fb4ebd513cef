"""``profwin locks --cluster``: who holds which device on the hosts of a Ray cluster."""

from __future__ import annotations

import os
import sys

from profwin.cli.device_table import confirmation, json_text, state_json, table
from profwin.cli.printing import Progress, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from profwin.cli.device_table import Row
    from profwin.ray.nodes import Node
    from profwin.ray.survey import Host, Survey

__all__ = ["run"]

_SHOWN = 8
"""Characters of a node's id that are shown; so many tell nodes apart."""
_MOST = 3
_NOTHING = ("-", "", "", "no device has been locked yet")


def run(arguments: argparse.Namespace, seconds: float) -> int:
    """Run the command.

    Args:
        arguments: of ``profwin locks``.
        seconds: that the nodes have to answer.

    Returns:
        0; 1 where a node that Ray takes for alive did not answer, or there was nothing to confirm; 2 where there is no
        cluster, or no such node.

    Raises:
        ProfwinError: Ray is not installed.
    """
    from profwin.ray.connection import connection
    from profwin.ray.survey import survey
    from profwin.registry.holder import printable

    # What a run that is started from this shell hands on to all nodes.
    directory = arguments.directory or os.environ.get("PROFWIN_LOCK_DIR") or None
    try:
        with Progress("locks", "connecting to the cluster") as progress, connection(arguments.address) as address:
            progress.state = "asking the nodes"
            if arguments.confirm is not None:
                return _confirm(arguments.confirm, arguments.node, directory, seconds)
            found = survey(directory, seconds)
    except ConnectionError as error:
        print(f"profwin: {printable(str(error))}", file=sys.stderr)
        return 2
    show(json_text(_document(address, found)) if arguments.json else _text(found))
    return 1 if any(node.alive for node in found.silent) else 0


def _confirm(device: str, wanted: str, directory: str | None, seconds: float) -> int:
    from profwin.ray.nodes import matching, nodes
    from profwin.ray.survey import confirmed

    living = nodes()
    found = matching(living, wanted)
    if len(found) != 1:
        there = ", ".join(f"{node.id[:_SHOWN]} ({node.host}, {node.address})" for node in found or living)
        raise ConnectionError(f"--node {wanted}: {'several nodes' if found else 'no living node'}; give one of {there}")
    done, state = confirmed(device, found[0], directory, seconds)
    show(confirmation(device, state, done=done))
    return 0 if done else 1


def _text(found: Survey) -> str:
    from profwin.registry.holder import printable

    choices: dict[str, list[str]] = {}
    rows: list[tuple[str, Row]] = []
    for host in found.hosts:
        name = _name(host.name, host.nodes)
        choices.setdefault(host.choice, []).append(name)
        rows += [(name, state) for state in host.devices] or [(name, _NOTHING)]
    for node, why in found.silent.items():
        rows.append((_name(node.host, [node]), ("-", "no answer" if node.alive else "dead", "", printable(why))))
    lines = [f"{_some(names) if len(choices) > 1 else 'all nodes'}: {choice}" for choice, names in choices.items()]
    return "\n".join([*map(printable, lines), table(rows)])


def _name(host: str, nodes: list[Node]) -> str:
    from profwin.registry.holder import printable

    return f"{printable(host)} {_some([node.id[:_SHOWN] for node in nodes])}"


def _some(names: list[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _document(address: str, found: Survey) -> dict[str, object]:
    return {
        "address": address,
        "hosts": [_host(host) for host in found.hosts],
        "silent": [
            {"node": node.id, "host": node.host, "address": node.address, "alive": node.alive, "why": why}
            for node, why in found.silent.items()
        ],
    }  # fmt: skip


def _host(host: Host) -> dict[str, object]:
    return {
        "host": host.name, "boot": host.boot, "directory": host.directory,
        "nodes": [{"node": node.id, "address": node.address} for node in host.nodes],
        "devices": [state_json(state) for state in host.devices],
    }  # fmt: skip

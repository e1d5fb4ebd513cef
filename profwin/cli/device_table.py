"""Devices and who holds them, as ``profwin locks`` prints them."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from profwin.registry.survey import DeviceState

    Row = DeviceState | tuple[str, str, str, str]

__all__ = ["confirmation", "json_text", "row", "state_json", "table"]


def row(state: DeviceState) -> tuple[str, str, str, str]:
    """Return the cells of a device: its key, its state, since when, and who holds it."""
    from profwin.registry.holder import printable

    since = "" if state.since is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.since))
    return printable(state.key), state.state, since, _who(state)


def table(states: Sequence[tuple[str, Row]]) -> str:
    """Return a table of devices.

    Args:
        states: each with the node that it is on; all empty: without that column. A row that is no device's comes as
            its cells.
    """
    if not states:
        return "no device has been locked yet"
    rows = [("NODE", "DEVICE", "STATE", "SINCE", "HOLDER")]
    rows += [(node, *(state if isinstance(state, tuple) else row(state))) for node, state in states]
    first = 0 if any(node for node, _ in states) else 1
    widths = [max(len(cells[column]) for cells in rows) for column in range(4)]
    lines = (
        [*(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)), cells[4]][first:] for cells in rows
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def confirmation(device: str, state: DeviceState | None, *, done: bool) -> str:
    """Say what a confirmation has done, or why it has done nothing.

    Args:
        device: its key.
        state: the device before it.
        done: whether a mark was removed.
    """
    from profwin.registry.holder import printable

    shown = printable(device)
    if done:
        return f"{shown}: the mark is removed, the device is free"
    if state is None:
        return f"{shown}: there is no such device; `profwin locks` lists those there are"
    if state.state == "held":
        return f"{shown}: held by {_who(state)}; end that first"
    if state.state == "unusable":
        return f"{shown}: the lock file cannot be used: {state.problem}"
    return f"{shown}: there is no mark to remove, the device is free"


def state_json(state: DeviceState) -> dict[str, Any]:
    """Return a device as JSON has it."""
    import msgspec

    return {**msgspec.to_builtins(state), "who": _who(state) or None}


def json_text(document: dict[str, Any]) -> str:
    """Return a document as text, in ASCII: a record is written by any user, and may be printed on a terminal."""
    import json

    return json.dumps(document, indent=2, sort_keys=True)


def _who(state: DeviceState) -> str:
    if state.problem is not None:
        return state.problem
    if state.holder is not None:
        return state.holder.describe()
    if state.mark is not None:
        return state.mark.describe()
    return "an unknown holder" if state.state == "held" else ""

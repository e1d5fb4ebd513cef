"""A connection to a running cluster, for commands of a shell."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

from profwin.ray.nodes import line
from profwin.ray.presence import needs_ray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["connection"]

_REACHED = 5.0
"""Seconds that a connection to the cluster's address may take."""


@contextmanager
def connection(address: str | None = None) -> Iterator[str]:
    """Be a job of a cluster that runs, without a runtime environment and in silence; yield the cluster's address.

    Ray 2.60 tries an address where nothing listens for over 200 s (measured), so that is found out first.

    Args:
        address: as ``ray.init`` takes it; None or ``auto``: that of ``RAY_ADDRESS``, else of this host.

    Raises:
        ConnectionError: there is no cluster, or it cannot be reached.
        ProfwinError: Ray is not installed.
    """
    needs_ray()
    ray = import_module("ray")
    wanted = address or "auto"
    try:
        found = wanted if "://" in wanted else _found(wanted)
        try:
            ray.init(found, logging_level="ERROR", log_to_driver=False)
        except BaseException:
            ray.shutdown()  # Ctrl-C in the middle of it, too, leaves nothing behind
            raise
    except Exception as error:
        where = "on this host" if wanted == "auto" else f"at {wanted}"
        raise ConnectionError(f"no Ray cluster {where}: start one, or give --address ({line(error)})") from error
    try:
        yield found
    finally:
        ray.shutdown()


def _found(address: str) -> str:
    """Return an address as host and port, where something listens."""
    import socket

    services = import_module("ray._private.services")  # `ray.init` and the command `ray` look it up so
    found = str(services.canonicalize_bootstrap_address_or_die(address))
    host, _, port = found.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), _REACHED).close()
    return found

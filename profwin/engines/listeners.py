"""Which sockets of this machine listen where a URL leads."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys

from profwin.engines import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

__all__ = ["addresses", "holders", "inodes"]

_PORTS = {"http": 80, "https": 443}
_LISTEN = "0A"


def addresses(url: str) -> tuple[list[Address], int] | None:
    """Return the addresses that a URL leads to, and its port, where all of them are this machine's; else None.

    The name is looked up as a client would; nothing is sent to the addresses themselves.

    Args:
        url: with ``http`` or ``https``, and a host.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
        if not host or not port:
            return None
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return None
    there = [(family, place) for family, _, _, _, place in found]
    if not there or not all(_local(family, place) for family, place in there):
        return None
    return [_plain(str(place[0])) for _, place in there], port


def _plain(text: str) -> Address:
    found = ipaddress.ip_address(text.partition("%")[0])
    return getattr(found, "ipv4_mapped", None) or found


def _local(family: int, place: tuple[object, ...]) -> bool:
    """Say whether an address is one of this machine's: then, and only then, packets to it leave from itself."""
    address = _plain(str(place[0]))
    if address.is_loopback or address.is_unspecified:
        return True
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(place)  # of a datagram socket: this sends nothing
            return _plain(probe.getsockname()[0]) == address
    except OSError:
        return False


def inodes(wanted: Iterable[Address], port: int) -> set[str]:
    """Return the inodes of the sockets that accept connections to addresses: those bound to one, else those to all.

    Args:
        wanted: addresses of this machine; an unspecified one (``0.0.0.0``) stands for any.
        port: their port.
    """
    wanted = set(wanted)
    exact: set[str] = set()
    others: set[str] = set()
    for table in ("tcp", "tcp6"):
        for address, inode in _listening(f"{procfs.PROC}/self/net/{table}", port):
            if address in wanted:
                exact.add(inode)
            elif any(_accepts(address, each) for each in wanted):
                others.add(inode)
    return exact or others


def _accepts(address: Address, wanted: Address) -> bool:
    """Say whether a socket bound to an address takes connections to another; that of IPv6 to all takes both kinds."""
    if wanted.is_unspecified:
        return True
    return address.is_unspecified and (address.version == 6 or wanted.version == 4)


def _listening(path: str, port: int) -> list[tuple[Address, str]]:
    found = []
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 ...
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTEN:
                    address, _, number = fields[1].partition(":")
                    if int(number, 16) == port:
                        found.append((_decoded(address), fields[9]))
    except (OSError, ValueError):
        return []
    return found


def _decoded(text: str) -> Address:
    """Decode an address as the kernel shows it: words of four bytes, each in this machine's order."""
    words = [bytes.fromhex(text[i : i + 8]) for i in range(0, len(text), 8)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return _plain(str(ipaddress.ip_address(b"".join(words))))


def holders(sockets: set[str]) -> dict[int, tuple[str, str]]:
    """Return which processes hold sockets: the process, and one of its links to one, with where that leads.

    Args:
        sockets: their inodes.

    Processes whose open files this user may not see are left out.
    """
    wanted = {f"socket:[{inode}]" for inode in sockets}
    found: dict[int, tuple[str, str]] = {}
    for pid in procfs.numbers() if wanted else ():
        for path, target in procfs.links(pid):
            if target in wanted:
                found[pid] = (path, target)
                break
    return found


def holds(link: tuple[str, str]) -> bool:
    """Say whether a process still holds what :func:`holders` found."""
    try:
        return os.readlink(link[0]) == link[1]
    except OSError:
        return False

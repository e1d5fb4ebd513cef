"""Where a URL leads, and the kernel's lists of what listens there."""

from __future__ import annotations

import ipaddress
import socket
import sys

import pytest

from profwin.engines import listeners, procfs

ONE, SIX = ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def word(data):
    """Return four bytes as this machine's kernel shows them."""
    return (data[::-1] if sys.byteorder == "little" else data).hex().upper()


def row(address, port, inode, state="0A"):
    """Return a line of such a list."""
    packed = ipaddress.ip_address(address).packed
    shown = "".join(word(packed[i : i + 4]) for i in range(0, len(packed), 4))
    return f"   0: {shown}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 ff\n"


@pytest.fixture
def net(tmp_path, monkeypatch):
    """Return a function that writes both lists, in a ``/proc`` of the test's own."""
    monkeypatch.setattr(procfs, "PROC", str(tmp_path))
    folder = tmp_path / "self" / "net"
    folder.mkdir(parents=True)

    def write(tcp, tcp6=None):
        (folder / "tcp").write_text(HEAD + "".join(tcp))
        if tcp6 is not None:
            (folder / "tcp6").write_text(HEAD + "".join(tcp6))

    return write


def test_only_what_listens_on_the_port_counts(net):
    """Connections and other ports do not; a list that is missing is empty."""
    net([row("127.0.0.1", 8000, 1), row("127.0.0.1", 8000, 2, "01"), row("127.0.0.1", 8001, 3), "torn\n"])
    assert listeners.inodes([ONE], 8000) == {"1"}
    assert listeners.inodes([ONE], 8002) == set()


def test_the_exact_address_goes_before_all(net):
    """As in the kernel: who is bound to all takes what nobody is bound to."""
    net([row("0.0.0.0", 8000, 1), row("127.0.0.1", 8000, 2), row("10.0.0.1", 8000, 3)])
    assert listeners.inodes([ONE], 8000) == {"2"}
    assert listeners.inodes([ipaddress.ip_address("10.0.0.2")], 8000) == {"1"}
    assert listeners.inodes([ipaddress.ip_address("0.0.0.0")], 8000) == {"1"}
    net([row("127.0.0.1", 8000, 2)])
    assert listeners.inodes([ipaddress.ip_address("0.0.0.0")], 8000) == {"2"}


def test_sixth_version_to_all_takes_the_fourth(net):
    """A socket bound to ``::`` takes both, one bound to ``0.0.0.0`` the fourth alone; a mapped address is one of it."""
    net([], [row("::", 8000, 1)])
    assert listeners.inodes([ONE], 8000) == listeners.inodes([SIX], 8000) == {"1"}
    net([row("0.0.0.0", 8000, 1)], [])
    assert (listeners.inodes([ONE], 8000), listeners.inodes([SIX], 8000)) == ({"1"}, set())
    net([], [row("::ffff:127.0.0.1", 8000, 4)])
    assert listeners.inodes([ONE], 8000) == {"4"}


@pytest.mark.parametrize("damage", ["0: ZZ:1F40 x 0A a b c d e f\n", "0: 01:1F40 0 0A 0 0 0 0 0 9\n"])
def test_damaged_lists_are_empty(net, damage):
    """What cannot be understood is nothing, and does not raise."""
    net([damage])
    assert listeners.inodes([ONE], 8000) == set()


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://127.0.0.1:8000", 8000),
        ("http://user:secret@127.1.2.3:8000/v1?x", 8000),
        ("https://[::1]", 443),
        ("http://localhost", 80),
    ],
)
def test_urls_of_this_machine(url, port):
    """With a port or the scheme's own, with whatever else a URL may hold."""
    found, number = listeners.addresses(url)
    assert number == port
    assert all(address.is_loopback for address in found)


def test_a_name_with_another_machine_among_its_addresses_is_elsewhere(monkeypatch):
    """Of a name with several addresses it is not known which one a client takes."""
    here, there = [(socket.AF_INET, 1, 6, "", (address, 80)) for address in ("127.0.0.1", "192.0.2.7")]
    for given, expected in (([here], ([ONE], 80)), ([here, there], None), ([], None)):
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, found=given, **__: found)
        assert listeners.addresses("http://name") == expected


def test_an_address_is_ours_if_packets_to_it_come_from_it():
    """That of an interface is, where there is one; one for documentation is not."""
    assert not listeners._local(socket.AF_INET, ("192.0.2.7", 80))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but its own")
        assert listeners._local(socket.AF_INET, (probe.getsockname()[0], 80))


def test_a_link_counts_while_it_is_there(tmp_path):
    """A process still holds its socket while the same link leads to it."""
    link = tmp_path / "3"
    link.symlink_to("socket:[7]")
    assert listeners.holds((str(link), "socket:[7]"))
    assert not listeners.holds((str(link), "socket:[8]"))
    link.unlink()
    assert not listeners.holds((str(link), "socket:[7]"))

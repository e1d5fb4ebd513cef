"""Which processes a server is, with real ones: their trees, their ends, and what only stands in front of a server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from server_support import stand, until

from profwin.engines import listeners, processes
from profwin.engines.processes import environment_of, server_arguments, server_processes
from profwin.registry.process import ProcessIdentity, identities, identity

TREE = ("listen", "core", "worker")


def test_the_whole_tree_is_the_server(tmp_path):
    """What listens, its children and theirs, parents first; by each address that leads to it; and it is found again."""
    with stand(tmp_path, *TREE) as server:
        expected = (*server.pids["listen"], *server.pids["core"], *server.pids["worker"])
        for host in ("127.0.0.1", "localhost", "0.0.0.0"):
            for _ in range(2):
                assert server_processes(f"http://{host}:{server.port}/v1") == expected
        assert server_arguments(expected)[0][1].endswith("server.py")
        assert environment_of(expected[2])["PATH"] == os.environ["PATH"]


def test_an_address_of_an_interface_is_this_machine(tmp_path):
    """A server that listens everywhere is found under the address that others use, where this machine has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of a datagram socket: nothing is sent
        except OSError:
            pytest.skip("this machine has no address but its own")
        address = probe.getsockname()[0]
    with stand(tmp_path, *TREE, host="0.0.0.0") as server:
        assert set(server_processes(f"http://{address}:{server.port}")) == set(server.all)


def test_a_server_of_the_sixth_version(tmp_path):
    """One that listens at ``::1`` is found there, and not under the address of the fourth version."""
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine does not speak IPv6")
    with stand(tmp_path, *TREE, host="::1") as server:
        assert set(server_processes(f"http://[::1]:{server.port}")) == set(server.all)
        assert server_processes(server.url) is None


def test_each_look_is_a_new_one(tmp_path):
    """A worker that has ended is gone from the next answer, and one that is new is in it."""
    with stand(tmp_path, "listen", "core,core", expected=3) as server:
        assert set(server_processes(server.url)) == set(server.all)
        first = server.pids["core"][0]
        os.kill(first, signal.SIGKILL)
        until(lambda: set(server_processes(server.url)) == set(server.all) - {first})
        os.kill(server.process.pid, signal.SIGUSR1)
        until(lambda: len(server_processes(server.url)) == 3)
        assert set(server_processes(server.url)) > set(server.all) - {first}


def test_helpers_are_left_out(tmp_path):
    """They record nothing, and may be there for a moment after the server's end."""
    tracker = "from multiprocessing.resource_tracker import main;main(3)"
    roles = f"core,/lib/torch/_inductor/compile_worker/__main__.py,{tracker}"
    with stand(tmp_path, "listen", roles, expected=4) as server:
        assert set(server_processes(server.url)) == {*server.pids["listen"], *server.pids["core"]}


def test_another_server_on_the_port_is_another(tmp_path):
    """When the server is killed nobody is there; the next one on the port is not taken for it."""
    with stand(tmp_path, *TREE) as server:
        assert server_processes(server.url)
        server.process.kill()
        server.process.wait()
        assert server_processes(server.url) is None
        with stand(tmp_path, "listen", "core", port=server.port) as other:
            assert set(server_processes(server.url)) == set(other.all)


def test_a_number_given_out_anew_is_not_the_server(tmp_path, monkeypatch):
    """What was found before counts only while it is the same process that holds the same socket."""
    with stand(tmp_path, *TREE) as server:
        found = server_processes(server.url)
        known = processes._known[server.url]
        own = identity()
        earlier = ProcessIdentity(own.pid, own.start - 1, own.boot, own.namespace)
        for forged in ([(earlier, known[0][1])], [(own, ("/proc/self/fd/0", "socket:[1]"))]):
            monkeypatch.setitem(processes._known, server.url, forged)
            assert server_processes(server.url) == found


@pytest.mark.parametrize(
    "url",
    ["http://192.0.2.1:8000", "http://no-such-host.invalid:80", "no url", "http://", "http://[::1", "http://a:99999"],
)  # fmt: skip
def test_elsewhere_and_nowhere_are_unknown(url):
    """Another machine's address, a name that leads nowhere, and what is no URL."""
    assert server_processes(url) is None


def test_nobody_listens():
    """A port of this machine where nobody listens; an answer of none is not kept."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert server_processes(f"http://127.0.0.1:{free.getsockname()[1]}") is None


def test_servers_of_one_port_are_the_tree_above_them(tmp_path):
    """Of API servers that share a port it is the tree of their starter, which also holds what works."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind(("127.0.0.1", 0))
        port = keeper.getsockname()[1]
        with stand(tmp_path, "starter", "reuse,reuse,core", port=port, expected=4) as server:
            found = server_processes(f"http://127.0.0.1:{port}")
            assert found[0] == server.process.pid
            assert set(found) == set(server.all)


def test_who_inherits_the_socket_is_below_the_server(monkeypatch):
    """A child that holds its parent's socket is no server of its own, whatever its number and whatever both run."""
    for interpreter in (True, False):
        monkeypatch.setattr(processes, "_interpreter", lambda pid, given=interpreter: given)
        assert processes._roots([-3, -5, -4], {-5: 1, -3: -5, -4: -3}) == [-5]


def test_servers_that_only_we_have_started_are_their_own_trees(tmp_path):
    """Where the process above them is the one that asks, this process is no part of a server."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind(("127.0.0.1", 0))
        port = keeper.getsockname()[1]
        with stand(tmp_path, "reuse", "core", port=port) as one, stand(tmp_path, "reuse", port=port) as other:
            assert set(server_processes(f"http://127.0.0.1:{port}")) == {*one.all, *other.all}


def test_a_scheduler_that_listens_is_not_the_server(tmp_path):
    """SGLang's own front end in Rust listens in its first scheduler: the server is what has started that."""
    roles = ("starter", "sglang::scheduler_TP0+listen,sglang::scheduler_TP1")
    with stand(tmp_path, *roles, expected=3) as server:
        found = server_processes(server.url)
        assert found[0] == server.process.pid
        assert set(found) == set(server.all)
    with stand(tmp_path, "listen", port=server.port), pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_SCHEDULER", "")  # all above are schedulers: so nobody is the server
        assert server_processes(server.url) is None


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["serve", "--distributed-executor-backend", "ray"], "server.py"),
        (["serve", "--distributed_executor_backend=ray"], "server.py"),
        (["--use-ray"], "server.py"),
        ([], "sglang_router/launch.py"),
        ([], "vllm-router"),
    ],
)
def test_workers_that_are_elsewhere_make_it_unknown(tmp_path, options, name):
    """A router, and a server whose workers are Ray's: the end of what listens proves nothing."""
    with stand(tmp_path, *TREE, options=options, name=name) as server:
        assert server_processes(server.url) is None


def test_other_backends_do_not(tmp_path):
    """The same option with another value is no reason."""
    with stand(tmp_path, *TREE, options=["--distributed-executor-backend", "mp", "ray"]) as server:
        assert set(server_processes(server.url)) == set(server.all)


@pytest.mark.skipif(shutil.which("perl") is None, reason="there is no perl, which plays the forwarder")
def test_a_forwarder_is_not_the_server():
    """What listens without a Python process below it is a tunnel or a web server."""
    program = (
        "use IO::Socket::INET; $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1');"
        "$| = 1; print $s->sockport, qq(\\n); <STDIN>;"
    )
    with subprocess.Popen(["perl", "-e", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forwarder:
        url = f"http://127.0.0.1:{int(forwarder.stdout.readline())}"
        assert listeners.holders(listeners.inodes(*listeners.addresses(url))).keys() == {forwarder.pid}
        assert server_processes(url) is None
        forwarder.stdin.close()


def test_an_actor_alone_is_not_the_server(tmp_path):
    """A Ray actor that listens and has started nothing hands requests on."""
    with stand(tmp_path, "starter", "ray::ProxyActor+listen") as server:
        assert server_processes(server.url) is None
    with stand(tmp_path, "starter", "ray::Server+listen", "core") as server:
        assert set(server_processes(server.url)) == {*server.pids["ray::Server+listen"], *server.pids["core"]}


def test_processes_that_have_ended_meanwhile_are_no_obstacle():
    """Between the listing and the identifying one may end; only if none is left is that an error."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert identities([process.pid, os.getpid()]) == [identity()]
    assert identities([]) == []
    with pytest.raises(ProcessLookupError, match=str(process.pid)):
        identities([process.pid])

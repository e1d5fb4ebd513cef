"""The adapters of HTTP servers: what they are made with, and what of it is shown and travels."""

from __future__ import annotations

import pickle

import pytest

import profwin.engines
from profwin.engines import SGLangServer, VLLMServer, adapt
from profwin.errors import EngineRefusedError, SettingError

KINDS = pytest.mark.parametrize("kind", [VLLMServer, SGLangServer])
URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    "url",
    [
        "", "127.0.0.1:8000", "ftp://host", "http://", "http://user:hidden@host", "http://hidden@host", "http://h/?a=1",
        "http://h/#a", "http://h:0", "http://h:99999", "http://h:x", "http://h x", "http://h\n", "http://h/\x1b[2J", "http://ü",
        None, 7, b"http://h",
    ],
)  # fmt: skip
@KINDS
def test_wrong_urls(kind, url):
    """What is no plain address of a server is refused at once, and a password in it is not shown."""
    with pytest.raises(SettingError, match="url=") as caught:
        kind(url)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://h", "http://127.0.0.1:8000/", "https://h.example/v/engine/", "http://[::1]:8000", "HTTP://h"]
)
@KINDS
def test_urls(kind, url):
    """Addresses with a port, a path and IPv6 are taken; the name of the server has it without the slash at its end."""
    server = kind(url)
    assert server.url == url.rstrip("/")
    assert server.name.endswith(f" at {server.url}")
    assert repr(server) == f"{kind.__name__}({server.url!r})"


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ü", 7, b"a", "a\x7f"])
@KINDS
def test_wrong_tokens_are_not_shown(kind, token):
    """A token that cannot stand in a header is refused, and not shown."""
    with pytest.raises(SettingError, match="not shown") as caught:
        kind(URL, token=token)
    assert not token or repr(token) not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        *[(kind, "start_timeout", value) for kind in (VLLMServer, SGLangServer) for value in (0, -1, None, "1", True)],
        *[(kind, "stop_timeout", value) for kind in (VLLMServer, SGLangServer) for value in (0, float("nan"), "1")],
        *[(kind, "ranks", value) for kind in (VLLMServer, SGLangServer) for value in ([-1], ["0"], [True])],
        *[(VLLMServer, name, value) for name in ("delay_iterations", "max_iterations") for value in (-1, 1.5, True)],
        *[(VLLMServer, "profiler_kwargs", value) for value in ([], {1: 2}, {"a": object()}, {"a": float("nan")})],
        *[(SGLangServer, name, value) for name in ("start_step", "num_steps") for value in (0, "5", False)],
        *[(SGLangServer, "activities", value) for value in ("CPU", [], [1], [""], 7)],
        (SGLangServer, "profile_by_stage", True),
    ],
)
def test_wrong_settings(kind, setting, value):
    """A value that is not allowed is refused at once, by the name of the setting."""
    with pytest.raises(SettingError, match=f"^{setting}="):
        kind(URL, **{setting: value})


@KINDS
def test_a_server_is_an_engine(kind):
    """A window takes it as it is; it can be stopped from any thread unless its user says otherwise."""
    server = kind(URL, devices="cuda:0", ranks=[2, 3])
    assert adapt(server) is server
    assert (server.devices, server.ranks) == (("cuda:0",), (2, 3))
    assert (server.revocable, server.detached, server.in_process) == (True, True, False)
    assert (kind(URL, revocable=False).revocable, kind(URL, revocable=False).detached) == (False, True)
    assert server.obstacle() is None
    assert not server.needs(1)


@KINDS
def test_it_travels(kind):
    """It can be sent to another process, which has the token too; its errors carry none."""
    server = kind(URL, token="secret-0815", devices=["a"], start_timeout=5)
    with pytest.raises(EngineRefusedError, match="no connection") as caught:
        server.start("/nowhere", "x", {"step": 1})
    assert b"secret-0815" not in pickle.dumps(caught.value)
    copy = pickle.loads(pickle.dumps(server))
    assert (copy.name, copy.devices) == (server.name, server.devices)
    with pytest.raises(EngineRefusedError, match="no connection"):
        copy.start("/nowhere", "x", {"step": 1})
    assert "secret-0815" not in repr(server) + str(server)


@KINDS
def test_what_was_never_started_has_no_files(kind):
    """Exporting what was refused, or never asked for, is an error and not a silent engine."""
    with pytest.raises(RuntimeError, match="nothing was started"):
        kind(URL).export("/nowhere", "x")


def test_the_names_are_found_when_asked_for():
    """The two servers are names of the package, loaded when they are first used; others are not."""
    assert profwin.engines.VLLMServer is VLLMServer
    with pytest.raises(AttributeError, match="NoServer"):
        profwin.engines.NoServer  # noqa: B018  # it is asked for, which is the point


def test_without_its_packages(monkeypatch):
    """Where httpx is missing, asking for a server says what to install."""
    import sys

    for name in ("http", "checks", "server", "vllm"):
        monkeypatch.delitem(sys.modules, f"profwin.engines.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ImportError, match=r"pip install 'profwin\[engines\]'"):
        profwin.engines.VLLMServer  # noqa: B018  # it is asked for, which is the point

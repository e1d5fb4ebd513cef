"""What doctor says of a server, from real ones over loopback that answer as vLLM and SGLang do, or badly."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from doctor_support import by_name

from profwin.doctor import Host, servers
from profwin.doctor.servers import server

VLLM = {"paths": {"/version": {}, "/health": {}, "/v1/completions": {}}}
WITH_PROFILER = {"paths": {**VLLM["paths"], "/start_profile": {}}}
SGLANG = {"paths": {"/server_info": {}, "/start_profile": {}, "/health": {}}}


@pytest.fixture
def serve():
    """Return a function that starts a server with answers by path, which notes what it is asked."""
    started = []

    def start(**answers):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            """Gives the answers: a status, a JSON value, or bytes that never end."""

            def do_GET(self):
                asked.append(f"GET {self.path}")
                answer = answers.get(self.path[1:].partition(".")[0].replace("/", "_"), 404)
                self.send_response(answer if isinstance(answer, int) else 200)
                self.send_header("Location", "/version")
                self.end_headers()
                if answer == b"":
                    while True:
                        self.wfile.write(b"x" * 65536)
                elif not isinstance(answer, int):
                    self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            def do_POST(self):
                asked.append(f"POST {self.path}")

            def log_message(self, *_):
                """Say nothing."""

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.handle_error = lambda *_: None  # a client that leaves in the middle is meant to
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        started.append((http, thread))
        return f"http://127.0.0.1:{http.server_port}", asked

    yield start
    for http, thread in started:
        http.shutdown()
        thread.join()
        http.server_close()


def look(url):
    """Look at a server."""
    return by_name(server(Host(environment={}), url))


def test_a_vllm_server_with_its_profiler(serve):
    """Its kind, version, health and profiler; only looked at, without a start."""
    url, asked = serve(openapi=WITH_PROFILER, version={"version": "0.32.0"}, health=200)
    found = look(url)
    assert found["server"].data == {"url": url, "kind": "vLLM", "version": "0.32.0"}
    assert {name: found[name].state for name in ("server", "health", "profiler")} == {
        "server": "ok", "health": "ok", "profiler": "ok",
    }  # fmt: skip
    assert asked == ["GET /openapi.json", "GET /version", "GET /health"]


def test_a_vllm_server_without_its_profiler(serve):
    """The route is not there, so the option that it wants is said."""
    url, _ = serve(openapi=VLLM, version={"version": "0.32.0"}, health=503)
    found = look(url)
    assert (found["profiler"].state, found["health"].state) == ("no", "warning")
    assert "--profiler-config" in found["profiler"].remedy


def test_an_sglang_server_is_not_asked_for_its_health(serve):
    """It would generate a token for that."""
    url, asked = serve(openapi=SGLANG)
    found = look(url)
    assert found["server"].data["kind"] == "SGLang"
    assert found["profiler"].state == "ok"
    assert "health" not in found
    assert asked == ["GET /openapi.json"]


def test_a_server_that_does_not_list_its_routes(serve):
    """Its version makes it vLLM; whether it can profile only a start would tell, which is not sent."""
    url, asked = serve(version={"version": "0.9"}, health=200)
    found = look(url)
    assert found["server"].data["kind"] == "vLLM"
    assert found["profiler"].state == "unknown"
    assert not [each for each in asked if "start" in each or "POST" in each]
    url, _ = serve(openapi=[1], version=["?"], health=401)
    found = look(url)
    assert (found["server"].state, found["health"].state) == ("warning", "warning")


@pytest.mark.parametrize("answer", [500, 302, b""], ids=str)
def test_what_answers_badly_is_said(serve, answer, monkeypatch):
    """An error, a redirect, which is not followed, and an answer without end."""
    monkeypatch.setattr(servers, "_MOST", 1 << 20)
    url, asked = serve(openapi=answer, version={"version": "1"})
    assert look(url)["server"].state == "no"
    assert asked == ["GET /openapi.json"]


def test_what_is_no_json_lists_nothing(serve):
    """Of whatever depth; the version is still asked for."""
    for text in (b"<html>", b"[" * 100_000):
        url, _ = serve(openapi=text, version={"version": "1"}, health=200)
        assert look(url)["profiler"].state == "unknown"


def test_its_processes_are_seen(serve, monkeypatch):
    """Those that listen here: this process; its devices by its variables, and by NVML where that is there."""
    url, _ = serve(openapi=VLLM)
    found = look(url)
    assert os.getpid() in found["processes"].data["pids"]
    for devices, state, word in ((None, "warning", "not known"), ((), "ok", "none"), (("GPU-a",), "ok", "GPU-a")):
        monkeypatch.setattr("profwin.engines.processes.devices_of", lambda pids, given=devices: given)
        line = look(url)["devices"]
        assert (line.state, word in line.detail) == (state, True)


def test_nobody_and_nothing():
    """An address where nobody answers, and what is no address; a password is not repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "_seen", lambda url: [])
        assert look("http://127.0.0.1:1")["server"].state == "no"
    line = look("http://user:secret@127.0.0.1:1")["server"]
    assert (line.state, "secret" in line.detail) == ("no", False)


def test_without_httpx(monkeypatch):
    """The package is optional, and named."""
    monkeypatch.setitem(__import__("sys").modules, "profwin.engines.checks", None)
    assert "profwin[engines]" in look("http://127.0.0.1:1")["server"].remedy

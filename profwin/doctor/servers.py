"""What a server says of itself: which one it is, whether it can be told to record, its processes and devices.

It is only looked at: no request of these starts or stops anything, and none is sent to an address that was not given.
"""

from __future__ import annotations

import json
import time

from profwin.doctor.line import NO, OK, UNKNOWN, WARNING, Line
from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from profwin.doctor.host import Host

__all__ = ["server"]

_SECONDS = 5.0
"""For each request."""
_MOST = 8 << 20
_START = "/start_profile"
_VLLM, _SGLANG = "vLLM", "SGLang"
_REMEDY = {
    _VLLM: 'start it with --profiler-config \'{"profiler":"torch","torch_profiler_dir":"DIR"}\'',
    None: "see the page on engines for the option that its version wants",
}
_MOST_SHOWN = 8


def server(host: Host, url: str) -> Iterator[Line]:
    """Look at one server.

    Args:
        host: told what is going on.
        url: as for ``VLLMServer`` or ``SGLangServer``.
    """
    try:
        from profwin.engines.checks import checked_url
    except ImportError:
        yield Line("server", NO, "no package 'httpx' here, which requests need", "pip install 'profwin[engines]'")
        return
    try:
        url = checked_url(url)
    except SettingError as error:
        yield Line("server", NO, str(error))
        return
    host.say(f"the server at {url}")
    yield from _asked(url)
    yield from _seen(url)


def _asked(url: str) -> Iterator[Line]:
    """Ask it what it is; a server without its list of routes is asked for its version alone."""
    listing, problem = _get(url, "/openapi.json")
    if listing is None and problem is not None:
        yield Line("server", NO, f"{url}: {problem}", "is it up, and is this its address?", {"url": url})
        return
    routes = list(listing["paths"]) if isinstance(listing, dict) and isinstance(listing.get("paths"), dict) else None
    kind = None
    if routes is not None:
        kind = _SGLANG if {"/server_info", "/get_server_info"} & {*routes} else _VLLM if "/version" in routes else None
    answer, _ = _get(url, "/version") if routes is None or "/version" in routes else (None, None)
    version = answer.get("version") if isinstance(answer, dict) else None
    if version is not None:
        kind = kind or _VLLM
    version = str(version)[:40] if version is not None else None
    shown = f"{kind or 'a server of an unknown kind'}{f' {version}' if version else ''} at {url}"
    data = {"url": url, "kind": kind, "version": version}
    yield Line("server", OK if kind else WARNING, shown, data=data)
    # SGLang generates a token when it is asked for its health; that it lists its routes is answer enough.
    if kind != _SGLANG:
        _, problem = _get(url, "/health")
        yield Line("health", WARNING if problem else OK, problem or "it says that it is well")
    if routes is None:
        yield Line("profiler", UNKNOWN, "it does not list its routes, so only a start can tell", data={"routes": None})
    elif _START in routes:
        what = "its profiler is configured" if kind == _VLLM else "it has a profiler"
        yield Line("profiler", OK, f"{what}: POST {_START} is there", data={"routes": True})
    else:
        detail = f"its profiler is not configured: POST {_START} is not there"
        yield Line("profiler", NO, detail, _REMEDY.get(kind, _REMEDY[None]), {"routes": False})


def _seen(url: str) -> Iterator[Line]:
    """Look at its processes, and at what they use."""
    from profwin.engines.processes import devices_of, server_processes

    found = server_processes(url)
    if found is None:
        detail = "not to be seen from here: on another machine, in another container, behind a proxy, or Ray's actors"
        remedy = "if it dies while it records, `profwin locks --confirm` frees its devices"
        yield Line("processes", UNKNOWN, detail, remedy)
        yield Line("devices", UNKNOWN, "not known, so nothing is locked for it", "pass devices=", {"devices": None})
        return
    pids = ", ".join(map(str, found[:_MOST_SHOWN])) + (", ..." if len(found) > _MOST_SHOWN else "")
    yield Line("processes", OK, f"{len(found)}: {pids}", data={"pids": list(found)})
    devices = devices_of(found)
    if devices is None:
        yield Line("devices", WARNING, "not known, so nothing is locked for it", "pass devices=", {"devices": None})
    else:
        shown = ", ".join(devices) or "none: its variables forbid it all"
        yield Line("devices", OK, shown, data={"devices": list(devices)})


def _get(url: str, path: str) -> tuple[Any, str | None]:
    """Return the JSON of an answer, and what is wrong; of a success without JSON neither, of a refusal the latter.

    What answers at all is there: a missing path, or one that wants a token, is no problem of the first request.
    """
    import httpx

    end = time.monotonic() + _SECONDS
    body = b""
    try:
        # Neither a proxy of the environment nor a redirect: what is asked is the user's address.
        with (
            httpx.Client(timeout=_SECONDS, trust_env=False, follow_redirects=False) as client,
            client.stream("GET", url + path) as response,
        ):
            for piece in response.iter_bytes():
                body += piece
                if len(body) > _MOST or time.monotonic() > end:
                    return None, f"its answer to GET {path} has no end"
    except (httpx.HTTPError, httpx.StreamError, OSError, ValueError) as error:
        return None, f"no answer to GET {path} ({type(error).__name__}: {error})"
    if not response.is_success:
        refused = response.status_code in (401, 403, 404, 405) and path != "/health"
        return None, None if refused else f"it answers {response.status_code} to GET {path}"
    try:
        return json.loads(body), None
    except (ValueError, RecursionError):
        return None, None

"""Requests to an HTTP server that starts and stops its profiler when it is told to.

One request has a connection of its own: one that is kept could have been closed by the server, and then nobody knows
whether a start was read. Proxies of the environment are never used: what stands between must not give up on a stop that
takes minutes. Redirects are not followed.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
import threading
import time
from dataclasses import dataclass

import httpx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Answer", "Channel", "Silence"]

CONNECT = 5.0
"""Seconds that a connection may take."""
MOST_TEXT = 1 << 16
"""Bytes of an answer that are read."""
SHOWN = 300
"""Characters of an answer that are shown."""
FIRST_NOTICE, NOTICES = 1.0, 10.0
"""Seconds after which it is logged that an answer is late, and between two such notices."""

# A machine that is gone says nothing: found out within a minute, however long an answer may take.
_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]
_SENDING = "http11.send_request_headers.started"
_CONNECTED = ("connection.connect_tcp.complete", "connection.start_tls.complete")


@dataclass(frozen=True)
class Answer:
    """What a server answered.

    Attributes:
        status: of HTTP.
        text: what it said, one line, safe to print; of a JSON answer the message in it.
        body: the first bytes as they came, stripped.
    """

    status: int
    text: str
    body: str

    def __str__(self) -> str:
        return f"{self.status}" + (f" ({self.text})" if self.text else "")


@dataclass(frozen=True)
class Silence:
    """Why there is no answer.

    Attributes:
        problem: in words.
        sent: whether the server may have read the request.
        late: whether it was given up because its time was over.
    """

    problem: str
    sent: bool
    late: bool = False

    def __str__(self) -> str:
        return self.problem


class Channel:
    """Sends requests to one server, from any thread, each with a connection of its own.

    It never raises for what a server or the network does. Where it can be copied to another process it takes no
    connection along.

    Args:
        url: of the server, checked.
        token: sent as ``Authorization: Bearer``; shown nowhere, and cut out of what the server says.
        name: of the server, for notices.
    """

    def __init__(self, url: str, token: str | None, name: str) -> None:
        self._url, self._token, self._name = url, token, name
        self._client: httpx.Client | None = None
        self._pid = 0

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_client": None, "_pid": 0}

    def post(self, path: str, body: dict[str, Any] | None, timeout: float | None) -> Answer | Silence:
        """Send a POST request and wait for the answer.

        Args:
            path: below the server's URL, with its slash.
            body: sent as JSON; None: nothing is.
            timeout: seconds until it is given up, however the server trickles; None: as long as it takes.
        """
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        patience = httpx.Timeout(CONNECT if timeout is None else min(CONNECT, timeout))
        patience.read = timeout
        with _Watch(f"{self._name} has not answered {path[1:]}", timeout) as watch:
            try:
                request = self._connections().build_request(
                    "POST", self._url + path, json=body, headers=headers, timeout=patience,
                    extensions={"trace": watch.trace},
                )  # fmt: skip
                response = self._connections().send(request, stream=True)
                try:
                    return self._answer(response)
                finally:
                    response.close()
            except (httpx.HTTPError, httpx.StreamError, OSError, ValueError) as error:
                late = watch.late or isinstance(error, httpx.TimeoutException)
                given_up = late and watch.sent and timeout is not None
                problem = f"no answer within {timeout:.3g} s" if given_up else _words(error)
                return Silence(self._clean(problem), watch.sent, late)

    def _connections(self) -> httpx.Client:
        # After a fork the child's own: its parent's connections are not to be used by two.
        if self._client is None or self._pid != os.getpid():
            secure = ssl.create_default_context() if self._url.startswith("https:") else False
            transport = httpx.HTTPTransport(
                verify=secure, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0), socket_options=_ALIVE
            )
            self._client = httpx.Client(transport=transport, trust_env=False, follow_redirects=False)
            self._pid = os.getpid()
        return self._client

    def _answer(self, response: httpx.Response) -> Answer:
        body = b""
        try:
            for piece in response.iter_bytes(1 << 12):
                body += piece
                if len(body) >= MOST_TEXT:
                    break
        except (httpx.HTTPError, httpx.StreamError):
            # The status says what was done; only of a success must all have come, for it may be a proxy's.
            if response.is_success:
                raise
        text = body[:MOST_TEXT].decode("utf-8", "replace").strip()
        said = _message(text)
        if response.is_redirect:
            said = f"it leads to {response.headers.get('location', 'another address')}"
        return Answer(response.status_code, self._clean(said), text)

    def _clean(self, text: str) -> str:
        if self._token:
            text = text.replace(self._token, "(token)")
        text = " ".join(text.split())
        text = text if text.isprintable() else ascii(text)[1:-1]
        return text if len(text) <= SHOWN else text[: SHOWN - 4] + " ..."


class _Watch:
    """Watches one request: how far it has come, whether it is late, and that it ends when its time is over."""

    def __init__(self, words: str, timeout: float | None) -> None:
        self.sent = self.late = False
        self._words, self._timeout = words, timeout
        self._over = threading.Event()
        self._socket: Any = None
        self._began = time.monotonic()

    def __enter__(self) -> _Watch:
        try:
            threading.Thread(target=self._run, name="profwin-request", daemon=True).start()
        except RuntimeError:
            pass  # too many threads, or the interpreter is ending: it goes without notices
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Take note of what httpx does."""
        if event in _CONNECTED:
            self._socket = info["return_value"].get_extra_info("socket")
        elif event == _SENDING:
            self.sent = True

    def _run(self) -> None:
        notice = FIRST_NOTICE
        while True:
            waited = time.monotonic() - self._began
            left = notice - waited
            if self._timeout is not None:
                left = min(left, self._timeout - waited)
            if self._over.wait(max(0.0, left)):
                return
            waited = time.monotonic() - self._began
            if self._timeout is not None and waited >= self._timeout:
                self.late = True
                self._cut()
                return
            if waited >= notice:
                logging.getLogger("profwin").info("profwin: %s for %.0f s", self._words, waited)
                notice = waited + NOTICES

    def _cut(self) -> None:
        # httpx counts from byte to byte, so a server that trickles would be waited for without end.
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed already


def _message(text: str) -> str:
    """Return what an answer says: of JSON the message, wherever these servers put it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for _ in range(3):
        if not isinstance(value, dict):
            break
        value = next((value[key] for key in ("error", "message", "detail") if value.get(key)), None)
    return value if isinstance(value, str) else text


def _words(error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"no connection: {text}"
    return f"the connection broke: {text}"

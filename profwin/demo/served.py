"""A model that an inference server serves, as the demo's rollout uses it: plain requests over HTTP, no profiling.

The server has a model and weights of its own, so the trainer's new weights stay where they are: the answers are real,
and so is the time that they take, but rewards do not rise.
"""

from __future__ import annotations

import re

import httpx

from profwin.demo.task import END, LONGEST_ANSWER
from profwin.errors import ProfwinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.demo.options import ServerOptions

__all__ = ["ServedModel", "ServerError"]

TOKENS = 16
"""Longest answer, in the server's tokens."""
SLOWEST = 600.0
"""Seconds that the answers of one step may take."""
FIRST = 10.0
"""Seconds that a server may take to say what it serves."""
METHOD_NOT_ALLOWED = 405


class ServerError(ProfwinError, RuntimeError):
    """The server cannot be used for the demo.

    Attributes:
        url: of the server.
        problem: what is the matter, and what to do.
    """

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"the server at {url}: {problem}")
        self.url, self.problem = url, problem


class ServedModel:
    """The first model that a server with OpenAI's interface serves.

    Its methods are those of :class:`profwin.demo.rollout.RolloutEngine` that the sync loop calls.

    Args:
        server: which one.
        seed: of the sampling; each request gets one of its own.

    Raises:
        ServerError: it does not answer, or serves nothing.

    Attributes:
        name: of the model.
    """

    def __init__(self, server: ServerOptions, seed: int) -> None:
        self._url, self._seed = server.url.rstrip("/"), seed
        headers = {} if server.token is None else {"Authorization": f"Bearer {server.token}"}
        # A proxy of this shell does not lead to a server on this machine.
        self._client = httpx.Client(headers=headers, timeout=FIRST, trust_env=False)
        try:
            self.name = str(self._request("GET", "/v1/models")["data"][0]["id"])
        except (KeyError, IndexError, TypeError):
            raise ServerError(self._url, "it names no model under /v1/models") from None

    def check_profiler(self) -> None:
        """Make sure that the server has a profiler, without touching it.

        Raises:
            ServerError: it has none.
        """
        # Where the route exists, it takes POST alone.
        if self._send("GET", "/start_profile").status_code != METHOD_NOT_ALLOWED:
            option = """--profiler-config '{"profiler": "torch", "torch_profiler_dir": "DIRECTORY"}'"""
            raise ServerError(self._url, f"no profiler is configured: start vLLM with {option}")

    def generate(self, prompts: list[int], *, group: int, wanted: int) -> dict[str, Any]:
        """Return ``group`` answers to each prompt; ``wanted`` is their number, as all of them are waited for."""
        return {"groups": self._complete(prompts[:wanted], n=group, temperature=1.0), "decoding_steps": None}

    def evaluate(self, prompts: list[int]) -> list[dict[str, Any]]:
        """Return the likeliest answer to each prompt."""
        return self._complete(prompts, n=1, temperature=0.0)

    def sleep(self) -> None:
        """Do nothing: only servers in their development mode can be put to sleep."""

    def load_weights(self, weights: bytes, version: int) -> None:
        """Do nothing: the server keeps its own."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _complete(self, prompts: list[int], **sampling: Any) -> list[dict[str, Any]]:
        self._seed += 1
        texts = [f"Count down from {prompt} to 0 : {prompt}" for prompt in prompts]
        body = {"model": self.name, "prompt": texts, "max_tokens": TOKENS, "seed": self._seed, **sampling}
        groups: list[dict[str, Any]] = [{"prompt": prompt, "answers": [], "versions": {0}} for prompt in prompts]
        try:
            for choice in self._request("POST", "/v1/completions", body)["choices"]:
                groups[choice["index"] // sampling["n"]]["answers"].append(_tokens(choice["text"]))
        except (KeyError, IndexError, TypeError):
            raise ServerError(self._url, "its answer to /v1/completions is none") from None
        if any(len(group["answers"]) != sampling["n"] for group in groups):
            raise ServerError(self._url, f"it has not given {sampling['n']} answers to each prompt")
        return groups

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        response = self._send(method, path, body)
        if not response.is_success:
            raise ServerError(self._url, f"it answered {path} with {response.status_code}: {response.text[:300]}")
        try:
            return response.json()
        except ValueError:
            raise ServerError(self._url, f"its answer to {path} is no JSON") from None

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        patience = FIRST if body is None else SLOWEST
        try:
            return self._client.request(method, self._url + path, json=body, timeout=patience)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServerError(self._url, f"no answer to {path}: {str(error) or type(error).__name__}") from error


def _tokens(text: str) -> list[int]:
    """Return an answer as the demo's policy knows it: the digits in a text, and the end."""
    digits = [int(digit) for digit in re.findall("[0-9]", text)]
    return [*digits[: LONGEST_ANSWER - 1], END]

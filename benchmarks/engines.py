"""What a window adds to an engine's own start and stop, and what several engines cost together."""

from __future__ import annotations

import os
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.engine_server import Servers
from benchmarks.measure import Plan, estimate, in_fresh_process, paired, ratios, scratch
from benchmarks.report import Figure, Skipped, difference, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.engines import VLLMServer

__all__ = ["run"]

NAME = "engines"
ROUNDS, TOGETHER = 150, 40
DELAY = 0.05
MANY = 8


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure windows on servers of this machine, beside the same requests without profwin."""
    try:
        import httpx  # noqa: F401  # only whether it is there
    except ImportError:
        yield Skipped(NAME, "windows on HTTP servers", "httpx is not installed")
        return
    answer = in_fresh_process(windows, rounds=plan.count(ROUNDS, 5), seed=plan.seed)
    bare, window = (sorted(answer[name])[len(answer[name]) // 2] for name in ("bare", "window"))
    detail = f"{window:.2f} ms, the bare requests {bare:.2f} ms; locks, journal and moving its file included"
    added = [window - bare for window, bare in zip(answer["window"], answer["bare"], strict=True)]
    words = "window on a server that answers at once, added to its two requests"
    yield difference(NAME, words, estimate(added, plan.seed), "ms", 5.0, detail=detail)
    answer = in_fresh_process(together, rounds=plan.count(TOGETHER, 3), seed=plan.seed)
    over = estimate(ratios(answer["many"], answer["one"]), plan.seed)
    detail = f"each takes {DELAY * 1e3:.0f} ms to start and to stop"
    yield ratio(NAME, f"window on {MANY} servers / on one", over, 1.5, detail=detail)


def windows(rounds: int, seed: int) -> dict[str, list[float]]:
    """Return the milliseconds of a window, enter and exit, and of the two requests alone."""
    import httpx

    import profwin
    from profwin.engines import VLLMServer

    with scratch() as places:
        traces = places.output / "traces"
        traces.mkdir()
        with Servers(str(traces), 1, 0.0) as servers:
            (url,) = servers.urls
            profwin.configure(**places.settings(steps="every:1", backend="record", strict=True))
            engine = VLLMServer(url, devices="pretend:0", directory=traces)
            limits = httpx.Limits(max_keepalive_connections=0)
            with httpx.Client(trust_env=False, limits=limits) as client:
                measured = paired(
                    {"window": _Window([engine]), "bare": partial(_bare, client, url, str(traces))}, rounds, seed
                )
            profwin.shutdown()
    return measured


def together(rounds: int, seed: int) -> dict[str, list[float]]:
    """Return the milliseconds of a window on one server and of one on several."""
    import profwin
    from profwin.engines import VLLMServer

    with scratch() as places:
        traces = places.output / "traces"
        traces.mkdir()
        with Servers(str(traces), MANY, DELAY) as servers:
            profwin.configure(**places.settings(steps="every:1", backend="record", strict=True))
            engines = [
                VLLMServer(url, devices=f"pretend:{number}", directory=traces)
                for number, url in enumerate(servers.urls)
            ]
            measured = paired({"one": _Window(engines[:1]), "many": _Window(engines)}, rounds, seed)
            profwin.shutdown()
    return measured


class _Window:
    """Opens a window on engines, each time of another step, and leaves it."""

    step = 0

    def __init__(self, engines: list[VLLMServer]) -> None:
        self._engines = engines

    def __call__(self) -> float:
        import profwin

        type(self).step += 1
        engine = self._engines if len(self._engines) > 1 else self._engines[0]
        for each in self._engines:
            each._looked = None  # windows are seconds apart, and each looks for the server's processes
        time.sleep(0.002)
        began = time.perf_counter()
        with profwin.rollout_window(self.step, engine=engine) as window:
            if not window.recorded:
                raise RuntimeError("the window was not recorded")
        return (time.perf_counter() - began) * 1e3


def _bare(client: object, url: str, traces: str) -> float:
    post = client.post  # type: ignore[attr-defined]  # httpx is imported where it is needed
    prefix = f"bare_{secrets.token_hex(4)}"
    time.sleep(0.002)
    began = time.perf_counter()
    post(f"{url}/start_profile", json={"profile_prefix": prefix}).raise_for_status()
    post(f"{url}/stop_profile").raise_for_status()
    took = (time.perf_counter() - began) * 1e3
    for name in os.listdir(traces):
        os.unlink(os.path.join(traces, name))
    return took

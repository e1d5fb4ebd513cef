"""The benchmark of windows on HTTP servers, with tiny counts; never a timing."""

from __future__ import annotations

import json

import pytest

from benchmarks import engines
from benchmarks.__main__ import main

pytest.importorskip("httpx")


def test_windows_on_servers_are_measured(tmp_path, monkeypatch):
    """A window beside its two requests, and several servers beside one, have their targets and come to an end."""
    monkeypatch.setattr(engines, "MANY", 3)
    target = tmp_path / "figures.json"
    assert main(["--scale", "0.01", "--only", "engines", "--json", str(target)]) == 0
    added, together = json.loads(target.read_text())["figures"]
    assert (added["target"], added["unit"]) == (5.0, "ms")
    assert (together["target"], together["what"]) == (1.5, "window on 3 servers / on one")


def test_without_httpx_it_is_said(capsys, monkeypatch):
    """Where httpx is missing nothing is measured, and nothing fails."""
    import sys

    monkeypatch.setitem(sys.modules, "httpx", None)
    assert main(["--only", "engines"]) == 0
    assert "httpx is not installed" in capsys.readouterr().out

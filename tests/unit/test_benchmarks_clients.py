"""The benchmark of clients, where none is installed; ``tests/clients`` runs it with one."""

from __future__ import annotations

from benchmarks import clients
from benchmarks.__main__ import main


def test_an_environment_that_is_absent_is_said(capsys, monkeypatch):
    """Without the variable, or without TRL where it says, nothing is measured and nothing fails."""
    monkeypatch.delenv(clients.CLIENTS_PYTHON, raising=False)
    assert main(["--only", "trl"]) == 0
    assert "CLIENTS_PYTHON is not set" in capsys.readouterr().out
    monkeypatch.setenv(clients.CLIENTS_PYTHON, "/bin/false")
    assert main(["--only", "trl"]) == 0
    assert "is not installed where CLIENTS_PYTHON says" in capsys.readouterr().out


def test_each_block_has_both_ways_twice_and_warm_up_does_not_count():
    """Of a block the steps of each way are added up, whichever was first; the first blocks are left out."""
    timing = clients._Timing(blocks=3, seed=1)
    blocks = [timing.ways[at : at + 4] for at in range(0, len(timing.ways), 4)]
    assert len(blocks) == 3 + clients.WARM_UP
    assert all(
        first != second and block == [first, second, second, first] for block in blocks for first, second in [block[:2]]
    )
    timing._taken = [(1_000_000, 5_000_000) if way == "with" else (3_000_000, 7_000_000) for way in timing.ways]
    expected = {"with": [2.0] * 3, "without": [6.0] * 3}
    assert timing.times() == {"wall": expected, "cpu": {"with": [10.0] * 3, "without": [14.0] * 3}}

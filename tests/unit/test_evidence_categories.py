"""Categories of events: each is counted by its name, and told for what it is, however many there are."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from profwin.evidence.formats import categories
from profwin.evidence.formats.categories import CALL, NEITHER, SPAN, WORK, Categories

KINDS = {"kernel": WORK, "gpu_memcpy": WORK, "cuda_runtime": CALL, "Trace": SPAN, "cpu_op": NEITHER, "": NEITHER}


@pytest.mark.parametrize("many", [0, 249, 250, 255, 256, 600])
def test_all_are_counted_and_told(many):
    """The counts are those of a plain counter, and kinds are right also of what comes after very many others."""
    names = [f"x{number}" for number in range(many)]
    chance = random.Random(many)
    found, all_names = Categories(), list[str]()
    for _ in range(4):
        batch = [*names, *chance.choices([*names, *KINDS], k=2000)]
        assert found.take(batch) == bytes(KINDS.get(name, NEITHER) for name in batch)
        all_names += batch
        assert found.counts == Counter(all_names)
    assert found.take([]) == b""


def test_memory_has_a_limit(monkeypatch):
    """Beyond the limit categories are counted together, and of no kind."""
    monkeypatch.setattr(categories, "NAMES", 300)
    found = Categories()
    for number in range(1000):
        assert found.take([f"x{number}", "x0"]) == bytes(2)
    assert found.take(["kernel", "x299"]) == bytes(2)
    assert len(found.counts) == 301
    assert found.counts["(other)"] == 701
    assert found.counts["x0"] == 1001
    assert found.counts["x299"] == 2

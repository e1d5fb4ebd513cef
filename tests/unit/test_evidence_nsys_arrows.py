"""Arrows of an nsys export: from each call to what it began on the device."""

from __future__ import annotations

import pytest
from nsys_support import PROCESS, SECOND, WALL, whole, write

from profwin.evidence.formats import nsys

CALLS, KERNELS = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"
THREAD, STREAM = "pid 77 thread 78 CUDA", "GPU-554a6988-03dd stream 7"


@pytest.fixture
def arrows(tmp_path):
    """Return a function that writes an export with other rows, and returns time and row of both ends of each arrow."""

    def read(**changes):
        write(tmp_path / "a.sqlite", {**whole(), **changes})
        ends = {}
        for each in nsys.slices(str(tmp_path), "a.sqlite"):
            if each.kind != "slice":
                ends.setdefault(each.flow, {})[each.kind] = (each.start - WALL - SECOND, each.track)
        return sorted((each["flow-start"], each["flow-end"]) for each in ends.values())

    return read


def test_each_kernel_has_its_call(arrows):
    """An arrow begins where the call begins and ends where the kernel begins, each on the row of its slice."""
    assert arrows() == [((at, THREAD), (at + 10, STREAM)) for at in (0, SECOND, 2 * SECOND)]


def test_a_graph_s_launch_begins_many(arrows):
    """Each kernel of it has an arrow of its own."""
    kernels = [(SECOND + at, SECOND + at, 0, 7, 0, PROCESS, 1) for at in (10, 20, 30)]
    assert arrows(**{KERNELS: kernels}) == [((0, THREAD), (at, STREAM)) for at in (10, 20, 30)]


def test_processes_are_not_mixed_up(arrows):
    """Another process's call of the same number is none of its own."""
    other = PROCESS + (1 << 24)
    calls = [(SECOND, SECOND + 5, other | 78, 0, 2), (SECOND + 1, SECOND + 5, PROCESS | 78, 0, 2)]
    kernels = [(SECOND + 10, SECOND + 20, 0, 7, 0, PROCESS, 1)]
    assert arrows(**{CALLS: calls, KERNELS: kernels}) == [((1, THREAD), (10, STREAM))]


def test_calls_that_share_a_number(arrows):
    """The first has the arrow: there are never more than there are kernels."""
    calls = [(SECOND + at, SECOND + at, PROCESS | 78, 0, 2) for at in range(200)]
    kernels = [(SECOND + at, SECOND + at, 0, 7, 0, PROCESS, 1) for at in range(200)]
    assert arrows(**{CALLS: calls, KERNELS: kernels}) == [((0, THREAD), (at, STREAM)) for at in range(200)]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (CALLS, (SECOND, SECOND - 1, PROCESS | 78, 0, 2)),
        (CALLS, ("x", SECOND, PROCESS | 78, 0, 2)),
        (CALLS, (SECOND, SECOND + 5, PROCESS | 78, None, 2)),
        (CALLS, (SECOND, SECOND + 5, PROCESS | 78, 99, 2)),
        (KERNELS, (SECOND + 10, None, 0, 7, 0, PROCESS, 1)),
        (KERNELS, (-1, 20, 0, 7, 0, PROCESS, 1)),
    ],
)
def test_no_arrow_without_both_slices(arrows, table, row):
    """What is not drawn has no arrow."""
    near = {CALLS: [(SECOND, SECOND, PROCESS | 78, 0, 2)], KERNELS: [(SECOND + 9, SECOND + 9, 0, 7, 0, PROCESS, 1)]}
    assert len(arrows(**near)) == 1
    assert arrows(**{**near, table: [row]}) == []


@pytest.mark.parametrize("table", [CALLS, KERNELS])
def test_tables_that_are_missing(arrows, table):
    """An export without one of them has none."""
    rows = whole()
    del rows[table]
    assert arrows(**{table: []}) == []

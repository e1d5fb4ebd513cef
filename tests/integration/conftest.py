"""What the tests on Ray clusters share."""

from __future__ import annotations

import contextlib
import functools

import pytest
from ray_support import running


@pytest.fixture(scope="session")
def clusters():
    """Return a function that gives the address of a cluster that files share: of two nodes, on one host or on two."""
    with contextlib.ExitStack() as stack:
        started = functools.cache(lambda hosts: stack.enter_context(running(hosts=hosts)))
        yield started


@pytest.fixture(scope="module")
def cluster(request):
    """Return the address of the module's cluster.

    The module may say in ``HOSTS`` whether each raylet is as if on a host of its own; else all are on this host. It has
    a cluster to itself, with which it may do as it likes, if it says the names of the raylets in ``NODES``; else it
    shares one of two with other modules.
    """
    names, hosts = getattr(request.module, "NODES", ()), getattr(request.module, "HOSTS", False)
    if not names:
        yield request.getfixturevalue("clusters")(hosts)
        return
    with running(*names, hosts=hosts) as address:
        yield address


@pytest.fixture
def output(tmp_path):
    """Return where the runs of a test go."""
    return tmp_path / "out"

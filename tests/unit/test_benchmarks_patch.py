"""The benchmark of patched calls runs, with tiny counts; never a timing."""

from __future__ import annotations

import pytest

from benchmarks import patching
from profwin.patch import uninstall


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("kind", [*patching.KINDS, "C function"])
def test_every_kind_and_role_is_measured_beside_a_bare_wrapper(kind, on, monkeypatch):
    """Each role is measured in the same rounds as a wrapper that does nothing."""
    monkeypatch.setattr(patching, "load", lambda *, installed: ([], {}))
    try:
        answer = patching.one_process(kind=kind, on=on, calls=5, rounds=3, seed=1)
    finally:
        uninstall()
    rounds = {name: len(values) for name, values in answer["nanoseconds"].items()}
    native = kind == "C function"
    roles = ("stage", "window") if native else tuple(patching.ROLES)
    assert rounds == dict.fromkeys([*roles, patching.WRAPT if native else patching.CLOSURE], 3)

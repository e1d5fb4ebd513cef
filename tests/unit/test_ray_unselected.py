"""Windows over actors, without a cluster: in which steps Ray is called, and for how many actors."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be named")

import ray

import profwin
from profwin.errors import SettingError
from profwin.ray import actors


class Handle:
    """A handle that counts its calls and takes none."""

    class _Id:
        def hex(self):
            """Return its digits."""
            return "ab" * 16

    class _Method:
        calls = 0

        def remote(self, work):
            """Take no call."""
            self.calls += 1
            raise OSError("it is not there")

    def __init__(self):
        self.__ray_call__, self._actor_id = self._Method(), self._Id()


def test_a_step_that_is_not_selected_makes_no_call(tmp_path, monkeypatch):
    """In one that is, each actor is told; what cannot be told does not record, and training goes on."""
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    profwin.configure(steps="2", output=tmp_path, devices="pretend:a", backend="record")
    handles = [Handle() for _ in range(5)]
    engine = actors(handles)
    for step in (1, 2, 3):
        told = [handle.__ray_call__.calls for handle in handles]
        with profwin.rollout_window(step, engine=engine) as window:
            assert not window.recorded
        made = [handle.__ray_call__.calls - before for handle, before in zip(handles, told, strict=True)]
        assert made == [2 * (step == 2)] * 5  # a start, and a stop since it may have come


def test_handles_that_are_wrong():
    """Each is one of an actor, and is there once."""
    handle = Handle()
    for wrong in ([], object(), [object()], [handle, Handle(), handle]):
        with pytest.raises(SettingError):
            actors(wrong)

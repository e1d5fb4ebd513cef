"""Which keywords an engine object's ``start_profile`` gets, and which of its answers are paths."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from unittest.mock import MagicMock, call

import pytest

from profwin.engines.objects import ObjectEngine

TWO, PREFIX = {"directory", "metadata"}, {"profile_prefix"}
ALL = {"directory": "d", "profile_prefix": "p", "metadata": {}}


class Engine:
    """An engine whose start is given."""

    def __init__(self, start, answer=None):
        self.start_profile, self._answer = start, answer

    def stop_profile(self):
        """Return the answer."""
        return self._answer


def noting(calls, make):
    """Return a start of some signature that notes what it gets."""
    return make(lambda **given: calls.append(given))


class Callable:
    """A callable object that names one keyword."""

    def __init__(self, note):
        self._note = note

    def __call__(self, profile_prefix=None):
        """Note it."""
        self._note(profile_prefix=profile_prefix)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda note: lambda: note(), set()),
        (lambda note: lambda directory, metadata: note(directory=directory, metadata=metadata), TWO),
        (lambda note: lambda **others: note(**others), set()),
        (lambda note: lambda metadata=None, **others: note(metadata=metadata, **others), {"metadata"}),
        (lambda note: partial(lambda extra, profile_prefix: note(profile_prefix=profile_prefix), 1), PREFIX),
        (Callable, PREFIX),
    ],
    ids=["none", "two", "only **kwargs", "one and **kwargs", "partial", "object"],
)  # fmt: skip
def test_start_gets_the_keywords_that_it_names(make, names):
    """A start that would only hand keywords on, as verl's does, gets none."""
    calls = []
    ObjectEngine(Engine(noting(calls, make))).start(*ALL.values())
    assert calls == [{name: ALL[name] for name in names}]


def test_a_mock_is_called_once_and_not_asked():
    """An engine that notes all that is done to it sees a start and a stop, and nothing else."""
    engine = MagicMock()
    adapted = ObjectEngine(engine)
    adapted.start(*ALL.values())
    assert adapted.stop() == []
    assert engine.start_profile.mock_calls == engine.stop_profile.mock_calls == [call()]


@pytest.mark.parametrize(
    ("answer", "paths"), [(None, []), ("a", ["a"]), (Path("a"), ["a"]), (["a", Path("b"), 3], ["a", "b"]), (True, [])]
)
def test_paths_that_stop_returns_are_traces(answer, paths):
    """Texts and paths of pathlib, alone or in a list."""
    assert ObjectEngine(Engine(lambda: None, answer)).stop() == paths

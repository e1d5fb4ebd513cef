"""Names: which roles and stages a glob selection holds, and what is refused."""

from __future__ import annotations

import pytest

from profwin.errors import SettingError
from profwin.selection import names, steps


def test_names_match_globs_and_exclusions():
    """A name is selected by a glob, unless an excluding one matches; exclusions alone leave the rest."""
    selection = names("actor_*, ref_?", "! actor_init")
    offered = ("actor_update", "ref_1", "actor_init", "Actor_update", "ref_10", "")
    assert [name for name in offered if name in selection] == ["actor_update", "ref_1"]
    assert "critic" in names("!actor*")
    assert "actor" not in names("!actor*")
    assert None not in names("*")
    assert repr(selection) == "names('!actor_init,actor_*,ref_?')"
    assert names(selection.text()) == selection
    assert names("a") != steps(1)


@pytest.mark.parametrize("value", [(), ("",), ("a,,b",), ("!",), ([],), (3,), ([3],)])
def test_malformed_names_are_refused(value):
    """An empty pattern, none at all, or something that is no text raises SettingError."""
    with pytest.raises(SettingError, match="names"):
        names(*value)

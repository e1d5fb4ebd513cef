"""A run whose processes are on several hosts: what the driver's manifest cannot know it does not complain of."""

from __future__ import annotations

import json

import pytest

import profwin
from profwin.configuration import current


@pytest.mark.parametrize(("host", "found"), [("elsewhere", []), (None, ["no-stages"])])
def test_stages_may_lie_on_another_host(tmp_path, host, found):
    """Without a stage here, the finding is made only where there is no other host on which they may be."""
    profwin.configure(steps="1", output=tmp_path, run="run")
    with profwin.rollout_window(1):
        pass
    if host is not None:
        current().journal.write("clock", boot="b", host=host, at=1, offset=0, uncertainty=1)
    profwin.shutdown()
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert [each["code"] for each in manifest["findings"]] == found

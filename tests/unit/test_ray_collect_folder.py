"""The folder that is collected into: what lies there is not overwritten, and nothing is written outside of it."""

from __future__ import annotations

import os

import pytest
from ray_collect_support import Near, collected, tree, write

from profwin.errors import SettingError
from profwin.ray.collecting.destination import Destination


def test_two_files_of_one_name(tmp_path):
    """Different files of one name are all kept, journals where they are found, and manifests as the nodes' own."""
    for number, host in enumerate("abc"):
        run = write(tmp_path / host, journal__j_DOT_0_DOT_jsonl=host, manifest_DOT_json=host * 9)
        os.utime(run / "manifest.json", (number, number))
        os.utime(run / "journal/j.0.jsonl", ns=(9, 9_000_000 if host == "c" else 1_234_567))
    givers = [Near(tmp_path / host, host) for host in "abc"]
    result = collected(tmp_path / "all", *givers[:2])
    assert tree(tmp_path / "all/run") == {
        "journal/j.0.jsonl": b"a", "journal/j~b.0.jsonl": b"b", "manifest~own.json": b"b" * 9,
        "manifest~own~a.json": b"a" * 9,
    }  # fmt: skip
    assert result.whole
    assert sorted(result.renamed.values()) == ["j~b.0.jsonl", "manifest~own~a.json"]
    before = tree(tmp_path / "all")
    result = collected(tmp_path / "all", givers[2])
    new = {"run/manifest~own~c.json": b"c" * 9, "run/journal/j~c.0.jsonl": b"c"}
    assert tree(tmp_path / "all") == before | new
    assert collected(tmp_path / "all", *givers).files == 0


def test_what_is_there_is_never_overwritten(tmp_path):
    """A different file, a longer one and a link stay as they are; only one that is a beginning is continued."""
    write(tmp_path / "out", journal__j_DOT_jsonl="12", link="new", longer="12", same="12")
    write(tmp_path / "all", journal__j_DOT_jsonl="XY", longer="123", same="12")
    outside = tmp_path / "outside"
    outside.write_text("12")
    (tmp_path / "all/run/link").symlink_to(outside)
    result = collected(tmp_path / "all", Near(tmp_path / "out", "h"))
    assert tree(tmp_path / "all/run") == {
        "journal/j.jsonl": b"XY", "journal/j~h.jsonl": b"12", "link": os.fsencode(outside), "link~h": b"new",
        "longer": b"123", "same": b"12",
    }  # fmt: skip
    assert outside.read_text() == "12"
    assert result.whole
    assert sorted(result.renamed.values()) == ["j~h.jsonl", "link~h"]


def test_planted_links_lead_nowhere(tmp_path):
    """A folder or a part that is a link, or a part with a second name, is not written through; the rest is fetched."""
    write(tmp_path / "out", journal__j_DOT_jsonl="j", step_1__x="new", a="new", b="new", c="new")
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("file", "other"):
        (outside / name).write_text("old")
    (tmp_path / "all/run").mkdir(parents=True)
    (tmp_path / "all/run/step_1").symlink_to(outside)
    (tmp_path / "all/run/a.part").symlink_to(outside / "file")
    os.link(outside / "other", tmp_path / "all/run/b.part")
    os.mkfifo(tmp_path / "all/run/c.part")
    result = collected(tmp_path / "all", Near(tmp_path / "out", "h"))
    assert tree(outside) == {"file": b"old", "other": b"old"}
    assert sorted(result.missing) == ["run/a", "run/b", "run/c", "run/step_1/x"]
    assert (tmp_path / "all/run/journal/j.jsonl").read_text() == "j"


def test_the_folder_of_the_run_is_refused(tmp_path):
    """Nothing is collected into the folder that the run writes to, or into one in it."""
    write(tmp_path / "out", journal__j_DOT_jsonl="j")
    before = tree(tmp_path)
    (tmp_path / "here").symlink_to("out")
    for directory in ("out", "here"):
        with pytest.raises(SettingError, match="node-h writes the run there"):
            collected(tmp_path / directory, Near(tmp_path / "out", "h"))
    (tmp_path / "here").unlink()
    assert tree(tmp_path) == before


def test_one_at_a_time(tmp_path):
    """Two processes do not collect into one folder."""
    write(tmp_path / "out", journal__j_DOT_jsonl="j")
    with Destination(str(tmp_path / "all")), pytest.raises(SettingError, match="no other process"):
        collected(tmp_path / "all", Near(tmp_path / "out", "h"))
    assert collected(tmp_path / "all", Near(tmp_path / "out", "h")).whole


def test_a_name_that_is_taken_meanwhile(tmp_path, monkeypatch):
    """A file that somebody makes, or changes, while ours is fetched is not overwritten; ours comes the next time."""
    write(tmp_path / "out", journal__j_DOT_jsonl="0123", new="ours")
    write(tmp_path / "all", journal__j_DOT_jsonl="01")
    near = Near(tmp_path / "out", "h")
    wait = near.wait

    def take(reference, seconds):
        if reference[0] == "read":
            write(tmp_path / "all", journal__j_DOT_jsonl="01x", new="theirs")
        return wait(reference, seconds)

    monkeypatch.setattr(near, "wait", take)
    result = collected(tmp_path / "all", near)
    assert sorted(result.missing) == ["run/journal/j.jsonl", "run/new"]
    assert collected(tmp_path / "all", Near(tmp_path / "out", "h")).whole
    found = {name: data for name, data in tree(tmp_path / "all/run").items() if not name.endswith(".part")}
    assert found == {"journal/j.jsonl": b"01x", "journal/j~h.jsonl": b"0123", "new": b"theirs", "new~h": b"ours"}


@pytest.mark.parametrize("grown", [True, False])
def test_a_kill_right_after_the_name_was_given(tmp_path, grown):
    """Where a start was killed when a file had its name and was still a part, too, the next one puts that in order."""
    journal = write(tmp_path / "out", journal__j_DOT_jsonl="01") / "journal/j.jsonl"
    assert collected(tmp_path / "all", Near(tmp_path / "out", "h")).whole
    there = tmp_path / "all/run/journal/j.jsonl"
    os.link(there, f"{there}.part")
    if grown:
        journal.write_text("0123")
    assert collected(tmp_path / "all", Near(tmp_path / "out", "h")).whole
    assert tree(tmp_path / "all") == tree(tmp_path / "out")

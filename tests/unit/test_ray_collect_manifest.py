"""The manifest of a run that was collected: of all its journals, the same each time, and nothing that was is lost."""

from __future__ import annotations

import json
import os

import pytest
from journal_builder import JournalBuilder, make_run
from ray_collect_support import Near, collected, tree, write

from profwin import manifest as module
from profwin.evidence.check import check
from profwin.manifest import gather
from profwin.ray.collecting.manifest import OWN

BOOTS = {"first": "aaaa0000-0000-4000-8000-000000000000", "second": "bbbb0000-0000-4000-8000-000000000000"}


def manifest(directory):
    """Return the manifest of a run's folder."""
    return json.loads((directory / "manifest.json").read_text())


def driver_writes(root):
    """Write the manifest of what lies on the driver's node."""
    own = gather(str(root / "run"))
    (root / "run/manifest.json").write_text(json.dumps(own))
    return own


@pytest.fixture
def nodes(tmp_path):
    """Return the output directories of two nodes: the driver's, with a manifest, and one with the stages."""
    for number, host in enumerate(BOOTS):
        journal = JournalBuilder(
            tmp_path / host / "run", f"of_{host}", number, boot=BOOTS[host], host=host, run="run",
            fields={"root": host == "first"},
        )  # fmt: skip
        if host == "first":
            journal.write("clock", 0, boot=BOOTS["second"], host="second", at=1, offset=0, uncertainty=1)
            journal.window(2, 1, 2, devices=("a",))
        else:
            journal.stage(2, 3, 4, devices=("b",))
        journal.end()
        journal.save()
    driver_writes(tmp_path / "first")
    return [tmp_path / "first", tmp_path / "second"]


def stamps(directory):
    """Return of each file which one it is, and when it was last changed."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


def near(nodes):
    """Return sources for output directories."""
    return [Near(node, node.name) for node in nodes]


def test_it_is_of_all_journals(nodes, tmp_path):
    """The collected manifest is what all journals say; the driver's own is kept as it was."""
    own = (nodes[0] / "run/manifest.json").read_bytes()
    result = collected(tmp_path / "all", *near(nodes))
    assert result.whole
    run = tmp_path / "all/run"
    found = manifest(run)
    assert found == gather(str(run)) | {"collected": True}
    assert [each["role"] for each in found["processes"]] == ["of_first", "of_second"]
    assert {each["purpose"] for each in found["steps"]["2"]["collections"]} == {"rollout", "training"}
    assert (found["elsewhere"], found["settings"]["steps"], found["processes"][0]["ended"]) == ([], "2,4", "exit")
    assert (run / OWN).read_bytes() == own


def test_again_changes_nothing(nodes, tmp_path):
    """A second time nothing is read, nothing is written, and no file is added."""
    collected(tmp_path / "all", *near(nodes))
    before = stamps(tmp_path / "all")
    givers = near(nodes)
    assert collected(tmp_path / "all", *givers).files == 0
    assert all(not giver.read for giver in givers)
    assert stamps(tmp_path / "all") == before


def test_a_node_that_comes_later(nodes, tmp_path):
    """Until the second node is collected its host is said to be elsewhere; then its journal is in the manifest."""
    collected(tmp_path / "all", near(nodes)[0])
    assert manifest(tmp_path / "all/run")["elsewhere"] == ["second"]
    assert manifest(tmp_path / "all/run")["findings"] == []
    collected(tmp_path / "all", near(nodes)[1])
    collected(tmp_path / "once", *near(nodes))
    assert tree(tmp_path / "all") == tree(tmp_path / "once")


def test_a_kill_before_it_has_its_name(nodes, tmp_path, monkeypatch):
    """Where a start is killed when the manifest is half written, the next one writes it; what was there stays."""
    collected(tmp_path / "all", near(nodes)[0])
    before = (tmp_path / "all/run/manifest.json").read_bytes()

    def killed(*_names, **_more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            collected(tmp_path / "all", *near(nodes))
    assert (tmp_path / "all/run/manifest.json").read_bytes() == before
    collected(tmp_path / "all", *near(nodes))
    collected(tmp_path / "once", *near(nodes))
    assert tree(tmp_path / "all") == tree(tmp_path / "once")


def test_a_journal_that_is_lost_stays_named(nodes, tmp_path):
    """A journal that the driver's manifest names and no node has any more is missed by the check, as before."""
    (extra,) = (tmp_path / "first/run/journal").glob("*.jsonl")
    lost = extra.with_name("lost.jsonl")
    lost.write_bytes(extra.read_bytes())
    driver_writes(tmp_path / "first")
    lost.unlink()
    collected(tmp_path / "all", *near(nodes))
    found = [each for each in check(tmp_path / "all").findings if each.code.name == "journal-missing"]
    assert [each.file for each in found] == ["run/journal/lost.jsonl"]


@pytest.mark.parametrize("stages", [True, False])
def test_stages_are_judged_where_all_is_together(nodes, tmp_path, stages):
    """The driver cannot know of stages elsewhere; the collected manifest says whether there are any."""
    if not stages:
        (journal,) = (nodes[1] / "run/journal").glob("*.jsonl")
        journal.write_bytes(b"\n".join(journal.read_bytes().splitlines()[:1]) + b"\n")
    assert module.missing_stages(manifest(nodes[0] / "run")) is None
    collected(tmp_path / "all", *near(nodes))
    assert [each["code"] for each in manifest(tmp_path / "all/run")["findings"]] == ([] if stages else ["no-stages"])


def test_what_a_driver_said_too_early(nodes, tmp_path):
    """Where the driver took stages for missing that are on a host that it did not know of, the manifest does not."""
    (journal,) = (nodes[0] / "run/journal").glob("*.jsonl")
    with journal.open("ab") as file:
        file.write(b'{"kind":"finding","t":1,"code":"no-stages","detail":"none"}\n')
    collected(tmp_path / "all", *near(nodes))
    assert manifest(tmp_path / "all/run")["findings"] == []


def test_the_check_says_the_same_with_either(nodes, tmp_path):
    """With the driver's own manifest in its place the check finds the same."""
    collected(tmp_path / "all", *near(nodes))
    run = tmp_path / "all/run"
    said = check(tmp_path / "all").as_json("remark")["findings"]
    os.replace(run / OWN, run / "manifest.json")
    assert check(tmp_path / "all").as_json("remark")["findings"] == said


def test_a_folder_that_was_collected_before(nodes, tmp_path):
    """A manifest that is there and was not gathered gets a name beside it; later ones are replaced."""
    write(tmp_path / "all", manifest_DOT_json="mine")
    for _ in range(2):
        collected(tmp_path / "all", *near(nodes))
    run = tmp_path / "all/run"
    assert (run / "manifest~before.json").read_text() == "mine"
    assert sorted(path.name for path in run.glob("manifest*")) == ["manifest.json", "manifest~before.json", OWN]
    assert manifest(run)["collected"]


@pytest.mark.parametrize("planted", ["link", "fifo", "folder", "part"])
def test_what_is_no_file_stays(nodes, tmp_path, planted):
    """Through a link nothing is written, and nothing waits for a FIFO: it is said, and all else is there."""
    write(tmp_path / "all", x="")
    run, outside = tmp_path / "all/run", tmp_path / "outside"
    outside.write_text("theirs")
    place = run / ("manifest.json.part" if planted == "part" else "manifest.json")
    if planted == "fifo":
        os.mkfifo(place)
    elif planted == "folder":
        place.mkdir()
    else:
        place.symlink_to(outside)
    result = collected(tmp_path / "all", *near(nodes))
    assert list(result.missing) == ["run/manifest.json"]
    assert outside.read_text() == "theirs"
    assert not place.is_file() or place.is_symlink()
    assert len(list(run.glob("journal/*"))) == 2


def test_journals_that_are_no_files_are_not_read(nodes, tmp_path):
    """A FIFO or a link among the journals is left alone, as is what another node's journal holds."""
    write(tmp_path / "all", journal__x="")
    os.mkfifo(tmp_path / "all/run/journal/fifo.jsonl")
    (tmp_path / "all/run/journal/link.jsonl").symlink_to(tmp_path / "outside")
    for line in (b"nothing", b'{"kind":"process","t":1,"attempt":[],"host":{}}', b'{"kind":"step","side":1}'):
        (tmp_path / "second/run/journal/bad.jsonl").write_bytes(line + b"\n")
        result = collected(tmp_path / f"all{line[:3]!r}", *near(nodes))
        assert result.whole
    assert collected(tmp_path / "all", *near(nodes)).whole
    assert len(manifest(tmp_path / "all/run")["processes"]) == 2


def test_several_runs_and_none(tmp_path):
    """Each run that is collected has a manifest of its own; where nothing is known of a run there is none."""
    make_run(tmp_path / "out/a", ranks=1)
    write(tmp_path / "out", "b", journal__j_DOT_jsonl="x\n")
    collected(tmp_path / "all", Near(tmp_path / "out", "h"), every=True)
    assert manifest(tmp_path / "all/a")["run"] == "a-run"
    assert not (tmp_path / "all/b/manifest.json").exists()

"""The examination as a whole: no probe ends it, and it says what keeps the asked-for from recording."""

from __future__ import annotations

import json

import pytest
from doctor_support import make_host

from profwin.cli import doctor as command
from profwin.cli import main
from profwin.doctor import Examination, examination, examine
from profwin.doctor.line import NO, OK, UNKNOWN, WARNING, Line


@pytest.fixture
def sections(monkeypatch):
    """Return a function that makes sections the only ones, of lines or of what raises."""

    def make(**given):
        base = {"backends": [Line("record", OK)], "variables": [], "devices": [], "locks": []}
        probes = tuple((name, (_probe(lines),)) for name, lines in {**base, **given}.items())
        monkeypatch.setattr(examination, "PROBES", probes)

    return make


def _probe(lines):
    def probe(host):
        for line in lines:
            if isinstance(line, Exception):
                raise line
            yield line

    return probe


def test_a_probe_that_raises_is_a_line(sections, tmp_path):
    """What it said before stays, and the other sections are looked at."""
    sections(devices=[Line("a", OK), OSError("x\ny")], others=[Line("b", OK)])
    found = examine(make_host(tmp_path))
    assert [(line.name, line.state) for line in found.sections["devices"]] == [("a", OK), ("devices", UNKNOWN)]
    assert "OSError" in found.sections["devices"][1].detail
    assert found.sections["others"] == [Line("b", OK)]
    assert not found.problems


@pytest.mark.parametrize(
    ("asked", "given", "words"),
    [
        (["torch"], {"backends": [Line("torch", OK)]}, []),
        (["torch"], {"backends": [Line("torch", WARNING)]}, []),
        (["torch"], {"backends": [Line("torch", NO, "why")]}, ["backend 'torch': why"]),
        (["torch"], {"backends": [Line("torch", UNKNOWN, "why")]}, ["backend 'torch': why"]),
        (["other"], {"backends": [Line("torch", NO, "why")]}, ["backend 'other': there is none"]),
        ([], {"variables": [Line("PROFWIN_STEPS", NO, "wrong")]}, ["wrong"]),
        ([], {"devices": [Line("cuda:9", NO, "wrong")]}, ["wrong"]),
        ([], {"locks": [Line("lock folder", NO, "full")]}, []),
        (["a"], {"backends": [Line("a", OK, data={"exclusive": True})], "locks": [Line("lock folder", NO, "full")]},
         ["lock folder: full"]),
        (["a"], {"backends": [Line("a", OK, data={"exclusive": True})], "others": [Line("DCGM", NO)]}, []),
    ],
)  # fmt: skip
def test_only_what_keeps_the_asked_for_is_a_problem(sections, tmp_path, asked, given, words):
    """A backend that nobody asked for, and a folder that none of them needs, are not."""
    sections(**given)
    found = examine(make_host(tmp_path), asked)
    assert len(found.problems) == len(words)
    assert all(problem.startswith(word) for problem, word in zip(found.problems, words, strict=True))


def test_what_is_asked_for(sections, tmp_path):
    """Arguments go before the variable, that before the default."""
    sections()
    assert examine(make_host(tmp_path, {"PROFWIN_BACKEND": "torch,nvtx"}), ["x"]).asked == ("x",)
    assert examine(make_host(tmp_path, {"PROFWIN_BACKEND": "torch,nvtx"})).asked == ("torch", "nvtx")
    assert examine(make_host(tmp_path)).asked == ("record",)


def test_servers_are_sections(sections, tmp_path, monkeypatch):
    """One each, named without a password; one that cannot record is a problem, one that fails a line."""
    sections()
    given = {"http://a": [Line("server", OK)], "http://u:secret@b": [Line("server", NO, "down")], "c": [KeyError("k")]}
    monkeypatch.setattr(examination, "server", lambda host, url: _probe(given[url])(host))
    found = examine(make_host(tmp_path), [], given)
    assert [name for name in found.sections if name.startswith("server")] == ["server http://a", "server b", "server c"]
    assert found.sections["server c"][0].state == UNKNOWN
    assert found.problems == ["server b: down"]


LONG = Examination(
    {
        "some_things": [
            Line("n" * 40, OK, "word " * 40, "do " * 40),
            Line("x\x1b[2J", NO, "a\nb\x1b"),
            Line("path", WARNING, "/very" * 30),
            Line("none", OK),
        ]
    },
    ("torch",),
    ["because " * 20],
)


def test_a_listing_fits_the_screen(monkeypatch, capsys):
    """Lines of at most 80 columns, aligned, whatever stands in them; what cannot be parted stays whole."""
    monkeypatch.setattr("profwin.doctor.examine", lambda *_: LONG)
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines if "/very" not in line)
    assert "/very" * 30 in text
    assert "\x1b" not in text
    assert lines[0] == "some things"
    assert lines[1] == f"  ok       {'n' * 40}"
    assert {len(line) - len(line.lstrip()) for line in lines if line.lstrip().startswith("word")} == {35}
    assert any(line.startswith(" " * 35 + "-> do") for line in lines)
    assert lines[-3].startswith("- because")


def test_json_has_the_same(monkeypatch, capsys):
    """As documented: versions of itself, what was asked for, problems, sections of lines with all five fields."""
    monkeypatch.setattr("profwin.doctor.examine", lambda *_: LONG)
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"profwin", "schema", "asked", "problems", "sections"}
    assert found["schema"] == 1
    assert found["sections"]["some_things"][3] == {
        "name": "none", "state": "ok", "detail": "", "remedy": None, "data": {},
    }  # fmt: skip


def test_nothing_wrong_is_said(monkeypatch, capsys):
    """With the names of what was asked for; and the status is 0."""
    monkeypatch.setattr("profwin.doctor.examine", lambda *_: Examination({}, ("torch", "nvtx"), []))
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == "Nothing that can be seen keeps torch, nvtx from recording.\n"


def test_options_reach_the_examination(monkeypatch, capsys):
    """Backends and addresses, each as often as wanted; and what is looked at is said when it takes long."""
    seen = []

    def take(host, asked, urls):
        host.say("x")
        seen.append((asked, urls))
        return Examination({}, (), [])

    monkeypatch.setattr("profwin.doctor.examine", take)
    assert main(["doctor", "--backend", "a", "--backend", "b", "--url", "u"]) == 0
    assert seen == [(["a", "b"], ["u"])]
    assert command._WIDTH == 80
    capsys.readouterr()

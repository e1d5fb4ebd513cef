"""The codes of findings: each name is there once, means one thing, and is explained."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest

from profwin.evidence.codes import CODES, merge
from profwin.evidence.finding import SEVERITIES, Code

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "findings.md"


def _module(name: str, *codes: Code) -> ModuleType:
    module = ModuleType(name)
    for number, code in enumerate(codes):
        setattr(module, f"CODE_{number}", code)
    return module


def test_codes_of_all_modules_are_merged():
    """The table holds every constant of every module of codes, under its own name."""
    sources = sorted((ROOT / "profwin" / "evidence").rglob("codes_*.py"))
    assert sources
    defined = set()
    for source in sources:
        for node in ast.parse(source.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.func.id == "Code":
                defined.add(node.value.args[0].value)
    assert defined == set(CODES)


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.name)
def test_a_code_is_written_as_promised(code):
    """A code's name is lower case and hyphens, its severity known, its meaning and remedy sentences."""
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", code.name)
    assert code.severity in SEVERITIES
    for text in (code.meaning, code.remedy):
        assert re.fullmatch(r"[^\n|]+[.!?]", text), text


def test_two_codes_of_one_name_are_refused():
    """A second code of a name is a mistake of the program, found when it is imported; the same one twice is not."""
    one, other = Code("a-b", "error", "M.", "R."), Code("a-b", "remark", "M.", "R.")
    assert merge([_module("x", one), _module("y", one)]) == {"a-b": one}
    with pytest.raises(ValueError, match="y: a-b: there is another code"):
        merge([_module("x", one), _module("y", other)])


def test_an_unknown_severity_is_refused():
    """A severity that no threshold knows is a mistake of the program."""
    with pytest.raises(ValueError, match="'fatal' is unknown"):
        merge([_module("x", Code("a", "fatal", "M.", "R."))])


def test_every_code_is_documented():
    """The page on findings has each code with its severity, its meaning and its remedy, in alphabetical order."""
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in PAGE.read_text().partition("## Codes")[2].partition("## The JSON")[0].splitlines()
        if line.startswith("| `")
    ]
    expected = [[f"`{code.name}`", code.severity, code.meaning, code.remedy] for code in CODES.values()]
    assert rows == expected, "\n".join(["the table should be:", *(f"| {' | '.join(row)} |" for row in expected)])

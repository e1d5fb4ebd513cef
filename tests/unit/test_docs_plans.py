"""The pages on plans: each plan that they show is one, and they know every key, role and event that the code knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profwin.loop import EVENTS
from profwin.patch import parsing, plan
from profwin.patch.reading import read_text, shipped

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE = (DOCS / "reference/plans.md").read_text()
_BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    text
    for page in ("reference/plans.md", "how-to/write-a-plan.md", "how-to/profile-existing-code.md")
    for text in _BLOCK.findall((DOCS / page).read_text())
]


def _section(heading):
    found = re.split(rf"^#+ {re.escape(heading)}$", REFERENCE, maxsplit=1, flags=re.MULTILINE)[1]
    return re.split(r"^#+ ", found, maxsplit=1, flags=re.MULTILINE)[0]


def _cells(heading, column=0):
    """Return the names in the cells of a column, in all tables below a heading."""
    rows = [line.strip("|").split(" | ") for line in _section(heading).splitlines() if line.startswith("| `")]
    return {name for row in rows if len(row) > column for name in re.findall(r"`\[*(\w[\w-]*)\]*`", row[column])}


@pytest.mark.parametrize("text", BLOCKS)
def test_each_plan_that_is_shown_is_one(text):
    """A block is a plan, or becomes one with the two lines that every plan begins with."""
    head = "" if "format = " in text else 'format = 1\nname = "page"\n'
    assert read_text(head + text).name in ("mine", "my-trainer", "page")


def test_the_page_has_every_role_and_its_keys():
    """The table of roles names each with the keys that it alone takes, and every key is explained."""
    assert _cells("Roles") >= set(plan.ROLES)
    for role, keys in parsing._OF_ROLE.items():
        (row,) = [
            line
            for line in _section("Roles").splitlines()
            if line.startswith(f"| `{role}` | ") and line.count("|") == 4
        ]
        assert set(re.findall(r"`(\w+)`", row.split(" | ")[2])) == set(keys)
    explained = _cells("Roles") | _cells("Loops and events") | {"target", "role", "loop", "before", "after", "error"}
    assert explained >= set(parsing._KEYS)


def test_the_page_has_every_event_and_which_have_a_number():
    """The table of events names each, and those that need a number say which."""
    assert _cells("Loops and events") >= {*EVENTS, *plan.TRAINING_STEP, *parsing._LOOP_KEYS}
    numbered = {
        name
        for line in _section("Loops and events").splitlines()
        if re.match(r"\| `[^|]* \| the (step|version) \|", line)
        for name in re.findall(r"`(\w+)`", line.split(" | ")[0])
    }
    assert numbered == set(parsing.NUMBERED)


def test_the_page_has_every_shipped_plan():
    """The table of shipped plans says of each what was run and what was only read."""
    assert _cells("Shipped plans") >= set(shipped())

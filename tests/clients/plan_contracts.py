"""Contracts: what a shipped plan relies on in a framework that is read only, kept as JSON beside the tests.

Names alone are kept, nothing of the source. Written anew from checkouts called as in `FRAMEWORKS`::

    python tests/clients/plan_contracts.py FOLDER
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from source_tree import SourceTree

from profwin.patch.paths import of_patch
from profwin.patch.reading import read_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.patch.plan import Plan

FOLDER = Path(__file__).parent / "contracts"
FRAMEWORKS = {"slime": "slime", "openrlhf": "OpenRLHF", "nemo-rl": "NeMo-RL"}
"""For each plan, what its framework's checkout is called."""

REPOSITORIES = {"slime": "THUDM/slime", "openrlhf": "OpenRLHF/OpenRLHF", "nemo-rl": "NVIDIA-NeMo/RL"}


def relied_on(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield, for each path of a plan's patches, the target, the parameter it begins at, and what is read of that."""
    for patch in plan.patches:
        for _place, path in of_patch(plan, patch):
            first, *rest = path.parts
            yield patch.target, first, rest[0] if rest else ""


def contract(plan: Plan, tree: SourceTree) -> dict[str, Any]:
    """Return what a plan relies on, as a source tree has it.

    Raises:
        MissingError: the tree lacks a target.
    """
    targets = {
        patch.target: {
            name: {"home": found.home, "parameters": list(found.parameters), "decorators": list(found.decorators)}
            for name, found in sorted(tree.signatures(patch.target).items())
        }
        for patch in plan.patches
    }
    attributes: dict[str, list[str]] = {}
    for target, first, attribute in relied_on(plan):
        if first == "self" and attribute:
            known = attribute in tree.attributes(target)
            attributes.setdefault(target, []).extend([attribute] if known else [])
    return {"targets": targets, "attributes": attributes}


def kept(name: str) -> dict[str, Any]:
    """Return the contract that is kept for a plan, with the commit that it was read from."""
    value: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return value


def main(folder: Path) -> None:
    """Write the contracts of all plans from the checkouts in a folder."""
    FOLDER.mkdir(exist_ok=True)
    for name, checkout in FRAMEWORKS.items():
        root = folder / checkout
        commit = subprocess.run(
            ["git", "-C", root, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        ).stdout.strip()
        value = {"repository": REPOSITORIES[name], "commit": commit, **contract(read_plan(name), SourceTree(root))}
        (FOLDER / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

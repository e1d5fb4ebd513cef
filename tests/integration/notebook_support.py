"""Cells of a notebook, run one after the other in a process of their own, as a kernel of Jupyter runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_support import Child, Evidence

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = """
import ast
from core_support import descriptors
from profwin.configuration import current
from profwin.registry.lock import Held, Registry

def free(key):
    held = Registry().acquire([key], kind="rollout", run="t", name="t", step=1)
    if isinstance(held, Held):
        held.release()
    return isinstance(held, Held)

# Like a kernel of Jupyter: in a running event loop, with `await` in cells, and on to the next cell after an exception.
async def kernel(cells):
    for number, cell in enumerate(cells):
        try:
            code = compile(cell, f"cell {{number}}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, globals())
            if result is not None:
                await result
        except BaseException as error:
            say("cell", number, "raised", type(error).__name__)

async def main():
    # asyncio.run would cancel the task at Ctrl-C; a kernel lets it come up in the cell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    await kernel({cells!r})

asyncio.run(main())
"""

UPDATE = """
@training_stage
def update():
    pass
"""


def notebook(*cells: str, patience: float = 100) -> list[str]:
    """Run cells in a process that then ends without more ado; return what they said."""
    with Child(KERNEL.format(cells=cells)) as child:
        status, out, err = child.finish(patience)
    assert status == 0, err
    assert "profwin failed" not in err
    return out.splitlines()


def settings(output: Path, *, steps: str = "1", card: str = "card", more: str = "") -> str:
    """Return a cell that configures."""
    return f"profwin.configure(steps={steps!r}, output={str(output)!r}, devices='pretend:{card}' {more})\n"


def checked(output: Path, *cut: str) -> Evidence:
    """Return the evidence of a session, checked, but for the exits of the blocks of these names that outlived it."""
    evidence = Evidence(output)
    left = {(record["pid"], record["id"]) for record in evidence.of("exit")}
    outlived = [record for record in evidence.of("enter") if (record["pid"], record["id"]) not in left]
    assert [record["name"] for record in outlived] == list(cut)
    names = evidence.recorded()
    evidence.records = [record for record in evidence.records if record not in outlived]
    evidence.check()
    evidence.records = sorted([*evidence.records, *outlived], key=lambda record: record["t"])
    assert evidence.recorded() == names
    return evidence

"""Scripts that record with the backend ``torch_npu`` on a stand-in, in processes of their own, and what they leave."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from core_support import run

STAND_IN = os.environ.get("NPU_STAND_IN_PATH") or str(Path(__file__).parent / "npu_stand_in")
"""Where a torch_npu is; tests/clients/test_torch_npu_source.py puts the real source there, above replaced C++."""
WHERE = {"PYTHONPATH": os.pathsep.join([STAND_IN, *filter(None, [os.environ.get("PYTHONPATH")])])}
"""The environment that makes the stand-in importable, for one child process."""

PRELUDE = """
def configure(**more):
    given = dict(steps="1-3", backend="torch_npu", devices="pretend:card", run="r")
    profwin.configure(output=os.environ["OUT"], **{**given, **more})
"""


def record(output: Path, script: str, *, status: int = 0, **environment: str) -> tuple[str, str]:
    """Run a script with ``configure()`` at hand; return what it said on both outputs.

    Args:
        output: where the run, named ``r``, goes.
        script: Python statements.
        status: which the script must have.
        environment: further variables; ``NPU_STAND_IN`` says what goes wrong.
    """
    return run(PRELUDE + script, status=status, OUT=str(output), **{**WHERE, **environment})


def folders(output: Path) -> list[Path]:
    """Return the folders that torch_npu left, sorted."""
    return sorted(Path(output).rglob("*_ascend_pt"))


def metadata(folder: Path) -> dict[str, Any]:
    """Return what profwin said in a folder's metadata."""
    return dict(json.loads((folder / "profiler_metadata.json").read_text())["profwin"])

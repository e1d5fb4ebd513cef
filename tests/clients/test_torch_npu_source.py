"""The backend ``torch_npu`` on torch_npu's real Python source, out of its wheel; only the C++ below it is replaced.

The tests that the stand-in passes are run again, in a pytest of their own, but for those of imports that fail and of
the mask of devices, which are not the profiler's. Without ``TORCH_NPU_WHEELS``, a folder with the wheels, all is
skipped. It takes minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from torch_npu_contract import VERSIONS

HERE = Path(__file__).parent
TESTS = HERE.parent / "integration"
WHEELS = os.environ.get("TORCH_NPU_WHEELS", "")
NOT_HERE = (
    "forbids or tried_again or environment_alone or by_variable or by_daemon or transfer or this_machine"
    " or torch_asked_for_as_well"
)
"""Of the refusals: imports that fail, and what is no part of the profiler."""
CHOSEN = {
    "test_npu_session.py": "",
    "test_npu_threads.py": "",
    "test_npu_ends.py": "",
    "test_npu_refusals.py": f"not ({NOT_HERE})",
    "test_cases_npu.py": "case_1 or case_5_ or not_analysed or no_device",
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not WHEELS, reason="TORCH_NPU_WHEELS names no folder with torch_npu's wheels")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", CHOSEN)
def test_the_real_source(file, version):
    """What holds on the stand-in holds on the source that it imitates."""
    pytest.importorskip("torch")
    wheels = sorted(Path(WHEELS).resolve().glob(f"torch_npu-{version}-*.whl"))
    if not wheels:
        pytest.skip(f"no wheel of torch_npu {version} in {WHEELS}")
    where = {"NPU_STAND_IN_PATH": str(HERE / "npu_source"), "TORCH_NPU_SOURCE": str(wheels[0])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", str(TESTS / file)]
    chosen = ["-k", CHOSEN[file]] if CHOSEN[file] else []
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROFWIN_", "PYTEST_"))}
    done = subprocess.run([*command, *chosen], env={**kept, **where}, capture_output=True, text=True, timeout=880)
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout[-5000:] + done.stderr
    assert done.returncode == 0

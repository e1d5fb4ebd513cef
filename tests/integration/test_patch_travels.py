"""Patched functions fire in the process that they are sent to, by value or by reference, and each once."""

from __future__ import annotations

import shutil
import tempfile
import time

import pytest
from test_decorators_travel import processes_that_name, run_script
from travellers import recorded


@pytest.mark.slow
def test_ray_actors(tmp_path):
    """Classes of ``__main__``, decorated or not, fire in their actors; one that was sent before is named in a note."""
    pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")
    temporary = tempfile.mkdtemp(prefix="r", dir="/tmp")
    try:
        run_script("script_patch_ray.py", tmp_path, temporary)
        wanted = {("rollout", False): 2}
        for name in ("plain", "decorated"):
            wanted |= {(name, False): 2, (f"{name}_stream", False): 1}
        assert recorded(tmp_path) == wanted | {("asynchronous", False): 1}
        deadline = time.monotonic() + 20
        while (left := processes_that_name(temporary)) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert left == []
    finally:
        shutil.rmtree(temporary, ignore_errors=True)

"""What profwin's settings are for a configuration: ``python -m fully_async_driver.settings global_profiler.steps=[2]``.

The configuration is verl's own for fully async training, and gets to the function with which that begins.
"""

from __future__ import annotations

import importlib.resources
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout

from verl_driver.__main__ import quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def settings(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings; nothing where profwin is off."""
    from hydra import compose, initialize_config_dir

    import profwin
    from profwin.configuration import current
    from profwin.patch.installation import install, uninstall

    install("verl-fully-async", strict=True)
    from verl.experimental.fully_async_policy import fully_async_main

    folder = importlib.resources.files("verl") / "experimental" / "fully_async_policy" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("fully_async_ppo_trainer", overrides=list(overrides))
    try:
        fully_async_main.create_role_worker_mapping(config)
        session = current()
        return session.settings.describe() if session is not None else {}
    finally:
        uninstall()
        profwin.shutdown()


if __name__ == "__main__":
    quiet()
    with tempfile.TemporaryDirectory() as place, redirect_stdout(sys.stderr):
        os.chmod(place, 0o1777)
        os.environ["PROFWIN_LOCK_DIR"] = place
        os.chdir(place)
        found = settings(sys.argv[1:])
    print(json.dumps(found))

"""What profwin's settings are for verl's own configuration for fully async training, with some overrides.

It gets to the function with which fully async training begins.
"""

from __future__ import annotations

import importlib.resources
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["settings_of"]


def settings_of(overrides: Sequence[str], directory: str) -> dict[str, Any]:
    """Return the settings; nothing where profwin is off.

    Args:
        overrides: of the configuration.
        directory: where locks are, and what profwin writes.
    """
    from hydra import compose, initialize_config_dir
    from verl.experimental.separation import utils

    import profwin
    from profwin.configuration import current
    from profwin.patch.installation import install, uninstall

    folder = importlib.resources.files("verl") / "experimental" / "fully_async_policy" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        save = f"global_profiler.save_path={directory}"
        config = compose("fully_async_ppo_trainer", overrides=[save, *overrides])
    os.chmod(directory, 0o1777)
    os.environ["PROFWIN_LOCK_DIR"] = directory
    install("verl-fully-async", strict=True)
    try:
        utils.create_role_worker_mapping(config)
        session = current()
        return session.settings.describe() if session is not None else {}
    finally:
        uninstall()
        profwin.shutdown()
        del os.environ["PROFWIN_LOCK_DIR"]

"""What profwin's settings are for verl configurations: ``python -m verl_driver.settings OVERRIDE… [-- OVERRIDE…]…``.

Each configuration is verl's own, made as ``verl.trainer.main_ppo`` makes it, and its real trainer's ``__init__`` gets
it. An override that begins with ``PROFWIN_`` is a variable of the environment.
"""

from __future__ import annotations

import importlib.resources
import json
import logging
import os
import sys
import tempfile
import warnings
from contextlib import redirect_stdout
from unittest.mock import MagicMock, patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["configuration", "settings_of"]


class _Said(logging.Handler):
    """What profwin logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def settings_of(overrides: Sequence[str]) -> dict[str, Any]:
    """Return whether profwin is on for a configuration, its settings, what it exports to children, and what it says."""
    import profwin
    from profwin.configuration import current
    from profwin.patch.installation import install, uninstall
    from profwin.switch import SWITCH

    variables = dict(each.split("=", 1) for each in overrides if each.startswith("PROFWIN_"))
    config = configuration([each for each in overrides if not each.startswith("PROFWIN_")])
    said = _Said()
    logging.getLogger("profwin").addHandler(said)
    with patch.dict(os.environ, variables):
        install("verl")
        try:
            _make_trainer(config)
            session, on = current(), SWITCH.on
            settings = session.settings.describe() if session is not None and on else None
            exported = {name: text for name, text in os.environ.items() if name.startswith("PROFWIN_")}
        finally:
            uninstall()
            profwin.shutdown()
            logging.getLogger("profwin").removeHandler(said)
    return {"on": on, "settings": settings, "exported": exported, "said": said.messages}


def configuration(overrides: list[str]) -> Any:
    """Return verl's own configuration with overrides."""
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(importlib.resources.files("verl") / "trainer" / "config"), version_base=None):
        return compose("ppo_trainer", overrides=overrides)


def _make_trainer(config: Any) -> None:
    from verl.trainer.ppo.v1 import get_trainer_cls, trainer_base

    # These two are not under test, and look for a model.
    with (
        patch.object(trainer_base, "build_checkpoint_callback", MagicMock()),
        patch.object(trainer_base, "RolloutMoELoadBalanceMetricsAccumulator", MagicMock()),
    ):
        get_trainer_cls(config.trainer.v1.trainer_mode)(config)


def _groups(arguments: Sequence[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for argument in arguments:
        if argument == "--":
            yield group
            group = []
        else:
            group.append(argument)
    yield group


def main(arguments: Sequence[str]) -> None:
    """Print them as a JSON list."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as locks:
        os.chmod(locks, 0o1777)
        os.environ["PROFWIN_LOCK_DIR"] = locks
        with redirect_stdout(sys.stderr):
            found = [settings_of(group) for group in _groups(arguments)]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])

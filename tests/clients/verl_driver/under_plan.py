"""A plugin for pytest that runs tests of others with the plan installed: ``pytest -p verl_driver.under_plan``.

Each test has a session of its own. ``VERL_DRIVER_STEPS`` says which steps are selected; without it profwin is off.
"""

from __future__ import annotations

import os

import pytest

import profwin
from profwin.patch.installation import install, uninstall
from verl_driver.planned import shipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.config import Config


def pytest_configure(config: Config) -> None:
    """Install the plan before any test is imported."""
    install(shipped())


def pytest_unconfigure(config: Config) -> None:
    """Take it back."""
    uninstall()


@pytest.fixture(autouse=True)
def profwin_is_there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the test a session, if steps are selected."""
    steps = os.environ.get("VERL_DRIVER_STEPS")
    if steps is not None:
        directory = tmp_path_factory.mktemp("profwin")
        locks = directory / "locks"
        locks.mkdir()
        locks.chmod(0o1777)
        profwin.configure(
            steps=steps, backend="testing", devices="pretend:hybrid", output=str(directory), lock_dir=str(locks)
        )
    yield
    profwin.shutdown()

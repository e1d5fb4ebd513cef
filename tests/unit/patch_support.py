"""What tests of profwin.patch share: a fresh module to patch, plans as text, and what a run's journal says."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from pathlib import Path

import profwin
from profwin.patch import install, uninstall
from profwin.patch.reading import read_text

TARGET = (Path(__file__).parent / "patch_target.py").read_text()


def plan_of(text, name="tests"):
    """Return the plan that a TOML text is, without its first two lines."""
    return read_text(f'format = 1\nname = "{name}"\n{text}')


def patch(target, role, **others):
    """Return the TOML text of one patch."""
    lines = [f"{key} = {value}" for key, value in others.items()]
    return "\n".join(["[[patch]]", f'target = "{target}"', f'role = "{role}"', *lines, ""])


class Stand:
    """A directory on sys.path with modules to patch.

    Args:
        directory: where their files are.
    """

    def __init__(self, directory):
        self.directory = directory

    def write(self, name, text=TARGET):
        """Write a module; it is not imported yet."""
        path = self.directory / f"{name}.py"
        path.write_text(text)
        importlib.invalidate_caches()

    def load(self, name, text=TARGET):
        """Write a module and import it."""
        self.write(name, text)
        return importlib.import_module(name)

    def configure(self, **settings):
        """Set profwin up: step 2, one pretend device."""
        profwin.configure(**{"steps": "2", "output": str(self.directory / "out"), "devices": "pretend:0", **settings})

    def records(self, kind=None):
        """Return what the journals hold, of a kind."""
        return [
            record
            for path in sorted(self.directory.glob("out/*/journal/*.jsonl"))
            for record in map(json.loads, path.read_text().splitlines())
            if kind in (None, record["kind"])
        ]

    def entered(self):
        """Return what was recorded, in order, as pairs of what and name."""
        return [(record["what"], record["name"]) for record in self.records("enter") if "collection" in record]


@contextlib.contextmanager
def standing(directory):
    """Give a stand, and take its modules, plans and session away afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(directory))
    try:
        yield Stand(directory)
    finally:
        uninstall()
        profwin.shutdown()
        sys.path.remove(str(directory))
        for name in set(sys.modules) - before:
            if str(directory) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


@contextlib.contextmanager
def installed(*texts, strict=False):
    """Install plans for a block."""
    for index, text in enumerate(texts):
        install(plan_of(text, f"tests{index}"), strict=strict)
    try:
        yield
    finally:
        uninstall()

"""Plans for frameworks that are read only fit their source: slime, OpenRLHF and NeMo-RL cannot be installed here.

What the plans rely on is kept in ``contracts/``, without any of the source, and each plan is held against that. With
``PROFWIN_FRAMEWORK_SOURCES``, a folder with checkouts ``slime``, ``OpenRLHF`` and ``NeMo-RL``, what is kept is held
against them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from plan_contracts import FRAMEWORKS, contract, kept, relied_on
from source_tree import MissingError, Signature, SourceTree

from profwin.patch.reading import read_plan, read_text

SOURCES = os.environ.get("PROFWIN_FRAMEWORK_SOURCES", "")
every_plan = pytest.mark.parametrize("name", FRAMEWORKS)


@every_plan
def test_targets_of_a_plan_are_kept(name):
    """What is kept has each target of the plan, and no other."""
    assert list(kept(name)["targets"]) == [patch.target for patch in read_plan(name).patches]
    assert all(kept(name)["targets"].values())


@every_plan
def test_paths_of_a_plan_begin_at_parameters(name):
    """Each path begins at a parameter of all that its target names, or after the call at its result."""
    targets = kept(name)["targets"]
    for target, first, _attribute in relied_on(read_plan(name)):
        for concrete, found in targets[target].items():
            assert first == "return" or first in found["parameters"], f"{concrete}: {first}"


@every_plan
def test_paths_of_a_plan_go_on_at_attributes(name):
    """What is read of ``self`` is set on it somewhere in its class."""
    attributes = kept(name)["attributes"]
    for target, first, attribute in relied_on(read_plan(name)):
        assert first != "self" or not attribute or attribute in attributes[target], f"{target}: {attribute}"


@every_plan
def test_parameters_that_are_read_are_not_hidden(name):
    """A target with paths has no decorator but those known to keep the parameters of what they decorate."""
    keeping = {"torch.no_grad", "timer", "staticmethod", "classmethod"}
    for target in {target for target, _first, _attribute in relied_on(read_plan(name))}:
        for concrete, found in kept(name)["targets"][target].items():
            assert set(found["decorators"]) <= keeping, concrete


@every_plan
@pytest.mark.skipif(not SOURCES, reason="PROFWIN_FRAMEWORK_SOURCES names no folder with the frameworks' sources")
def test_what_is_kept_is_current(name):
    """The framework's real source has what is kept; if not, python tests/clients/plan_contracts.py writes it anew."""
    found = contract(read_plan(name), SourceTree(Path(SOURCES) / FRAMEWORKS[name]))
    assert found == {key: value for key, value in kept(name).items() if key in found}


FILES = {
    "pkg/__init__.py": "from .tools import helper as exported\n",
    "pkg/tools.py": "def helper(step, *rest, flag=False, **more): ...\n",
    "pkg/base.py": """
from other import Foreign
class Base(Foreign):
    kind: str
    def __init__(self, config): self.config = config
    def run(self, step): ...
    async def stop(self): ...
""",
    "pkg/deep/__init__.py": "",
    "pkg/deep/worker.py": """
from ..base import Base
from ..tools import helper as renamed
from pkg import exported
if True:
    from pkg import tools
@remote(cpus=1)
class Worker(Base[int]):
    @wrapped("x")
    def start(self, *, size): self.size = size
    def start_late(self): ...
""",
}


@pytest.fixture
def tree(tmp_path):
    """Return a small source tree."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SourceTree(tmp_path)


def test_source_is_found_where_it_is_defined(tree):
    """Names that are imported, also relatively and under another name, and methods of bases lead to their source."""
    worker = "pkg.deep.worker"
    helper = Signature("pkg.tools:helper", ("step", "flag", "rest", "more"), ())
    for name in ("pkg:exported", f"{worker}:renamed", f"{worker}:exported", "pkg.tools:helper"):
        assert tree.signatures(name) == {name: helper}
    run = f"{worker}:Worker.run"
    assert tree.signatures(run) == {run: Signature("pkg.base:Base.run", ("self", "step"), ())}
    assert list(tree.signatures(f"{worker}:Worker.st*")) == [
        f"{worker}:Worker.{name}" for name in ("start", "start_late", "stop")
    ]
    start = tree.signatures(f"{worker}:Worker.start")[f"{worker}:Worker.start"]
    assert (start.parameters, start.decorators) == (("self", "size"), ("wrapped",))
    assert {"config", "size", "kind", "run"} <= tree.attributes(run)


@pytest.mark.parametrize(
    "target", ["pkg.none:f", "pkg.tools:gone", "pkg.base:Base.gone", "pkg.base:Base", "pkg.tools:helper.x", "pkg:tools"]
)
def test_source_that_is_missing_is_said(tree, target):
    """A module, function, class or method that is not there is an error, and so is a class for a function."""
    with pytest.raises(MissingError):
        tree.signatures(target)


def test_a_contract_notices_what_changed(tree):
    """A plan's contract has what its paths read, and says nothing of an attribute that is nowhere set."""
    plan = read_text(
        'format = 1\nname = "p"\n[[patch]]\ntarget = "pkg.deep.worker:Worker.run"\nrole = "step"\nstep = "step"\n'
        'when = "self.config.on"\nunless = "self.absent"\n'
    )
    found = contract(plan, tree)
    target = "pkg.deep.worker:Worker.run"
    assert found["attributes"] == {target: ["config"]}
    assert found["targets"][target][target]["parameters"] == ["self", "step"]
    assert [first for _target, first, _attribute in relied_on(plan)] == ["step", "self", "self"]

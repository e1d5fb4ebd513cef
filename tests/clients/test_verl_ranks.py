"""Which replicas of verl's record when only some device ranks are selected: the same as by verl's own settings."""

from __future__ import annotations

import json
import subprocess

from clients_support import PYTHON, needs

from profwin.engines import of_ranks

pytestmark = needs("verl")

_VERL = """
import json, sys
from verl.utils.profiler import ProfilerConfig
from verl.utils.profiler.profile import build_rollout_dist_profiler
from verl.utils.profiler.config import TorchProfilerToolConfig
def records(replica, size, ranks):
    config = ProfilerConfig(tool="torch", enable=True, ranks=ranks)
    profiler = build_rollout_dist_profiler(replica, size, config=config, tool_config=TorchProfilerToolConfig())
    return bool(profiler.check_this_rank())
print(json.dumps([records(*case) for case in json.load(sys.stdin)]))
"""


class Replica:
    """What a replica of verl's says of itself."""

    def __init__(self, replica_rank, world_size):
        self.replica_rank, self.world_size = replica_rank, world_size


def test_ranks_are_mapped_as_verl_maps_them():
    """For replicas of one to eight devices, and several selections."""
    cases = [
        (replica, size, ranks)
        for size in (1, 2, 3, 8)
        for replica in range(4)
        for ranks in ([0], [7], [8], [0, 8], [2, 3, 5], [31], [100])
    ]
    done = subprocess.run(
        [PYTHON, "-c", _VERL], input=json.dumps(cases), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    expected = json.loads(done.stdout.splitlines()[-1])
    assert True in expected
    assert False in expected
    for case, records in zip(cases, expected, strict=True):
        replica, size, ranks = case
        engine = Replica(replica, size)
        assert of_ranks(engine, ranks) == (engine if records else None, True), case
        assert of_ranks([engine], ranks) == ([engine] if records else None, True), case

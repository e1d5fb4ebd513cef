"""Reported failures, on windows of HTTP servers: each shown bad, and the right behaviour.

The numbers are those under which the failures were collected, as in other tests.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))
import ascend_support as ascend
from check_support import codes
from core_support import Evidence
from stand_in_support import DEVICE, Server, configure

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.engines import SGLangServer
from profwin.errors import SettingError
from profwin.registry.device import npu_key

SLICES = ("PROF_000001_2026_A/device_4/data/a.slice_0", "PROF_000001_2026_A/device_4/data/a.slice_0.done")
KINDS = pytest.mark.parametrize("kind", ["vllm", "sglang"])


@KINDS
def test_case_6_one_stop_for_many_callers(tmp_path, kind):
    """Case 6: eight threads that end a window stop the server once; ending one that never began tells it nothing."""
    with Server(kind, tmp_path / "traces") as server:
        configure(tmp_path / "out", wait_budget=60.0)
        window = rollout_window(1, engine=server.engine())
        window.open()
        server.faults(stop_delay=0.3)
        threads = [threading.Thread(target=window.close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
            assert not server.recording  # whoever has ended it finds it ended
        rollout_window(2, engine=server.engine()).close()
        assert server.told == ["start", "stop"]
        profwin.shutdown()
        assert server.told == ["start", "stop"]
    evidence = Evidence(tmp_path / "out")
    assert len(evidence.of("close")) == len(evidence.of("export")) == 1


@KINDS
def test_case_6_a_stop_of_nothing_is_harmless(tmp_path, kind):
    """Case 6: a server that somebody else has stopped meanwhile is stopped again without harm."""
    with Server(kind, tmp_path / "traces") as server:
        configure(tmp_path / "out")
        with rollout_window(1, engine=server.engine()) as window:
            assert window.recorded
            server.post("/stop_profile")
        assert not server.recording
        profwin.shutdown()
    evidence = Evidence(tmp_path / "out")
    assert len(evidence.of("confirmed")) == 1
    assert "error" not in evidence.of("close")[0]


def test_case_10_rollouts_and_updates_count_differently(tmp_path):
    """Case 10: a rollout thread and a trainer thread with steps of their own never overlap on the device."""
    with Server("vllm", tmp_path / "traces") as server:
        configure(tmp_path / "out", steps="every:1", wait_budget=60.0)
        engine, failed = server.engine(), []

        def guarded(work):
            try:
                work()
            except BaseException as error:
                failed.append(error)

        def roll():
            for number in range(400, 406):
                with rollout_window(number, engine=engine, weight_version=number // 2):
                    server.generate()

        def train():
            for step in (3, 3, 4, 4):
                with training_step(step), training_stage("update", devices=DEVICE):
                    pass

        threads = [threading.Thread(target=guarded, args=(work,)) for work in (roll, train)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not failed
        assert not server.recording
        profwin.shutdown()
    evidence = Evidence(tmp_path / "out")
    evidence.check()
    versions = {record["step"]: record["version"] for record in evidence.of("open", purpose="rollout")}
    assert versions == {step: step // 2 for step in versions}
    assert versions


@pytest.mark.parametrize(("results", "expected"), [(None, "ascend-not-analysed"), (ascend.text_files(), None)])
def test_case_54_folders_of_an_npu(tmp_path, monkeypatch, results, expected):
    """Case 54: an SGLang server on an NPU leaves folders, which are named where they are, and judged there."""
    real = SGLangServer.stop

    def stop(engine):
        """Leave what torch_npu would, since the stand-in has no NPU."""
        place = Path(engine._open.directory)
        found = real(engine)
        for file in place.glob("*.json.gz"):
            file.unlink()
        ascend.make(place, ascend.info(), results, SLICES)
        return found

    monkeypatch.setattr(SGLangServer, "stop", stop)
    with Server("sglang", tmp_path / "traces") as server:
        configure(tmp_path / "out", steps="1")
        with rollout_window(1, engine=server.engine()):
            server.generate()
        with training_step(1), training_stage("update", devices=DEVICE):
            pass
        profwin.shutdown()
    (export,) = Evidence(tmp_path / "out").of("export", backend="engine")
    assert export["path"].startswith("step_000001/rollout/")
    assert export["path"].endswith("_ascend_pt")
    found = codes(tmp_path / "out" / "mine")
    assert not {"trace-missing", "trace-not-in-journal"} & found
    assert ("ascend-not-analysed" in found) is bool(expected)


@KINDS
def test_case_54_half_a_trace_is_no_trace(tmp_path, kind, monkeypatch):
    """Case 54: a trace that its server has not finished is never passed, and one that it has is clean."""
    monkeypatch.setattr("profwin.engines.traces.COMPLETE", 0.3)
    with Server(kind, tmp_path / "traces") as server:
        configure(tmp_path / "out", steps="1-2")
        for step in (1, 2):
            server.faults(truncated=step == 1)
            with rollout_window(step, engine=server.engine()):
                server.generate()
            with training_step(step), training_stage("update", devices=DEVICE):
                pass
        profwin.shutdown()
    assert "truncated" in codes(tmp_path / "out" / "mine" / "step_000001")
    assert not {"truncated", "empty-file"} & codes(tmp_path / "out" / "mine" / "step_000002")


def test_case_58_devices_of_a_masked_npu(tmp_path, monkeypatch):
    """Case 58: a server's devices are named as this process sees them, and locked by their physical numbers."""
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5,6,7")
    with Server("vllm", tmp_path / "traces") as server:
        configure(tmp_path / "out", devices=["npu:0"])
        with rollout_window(1, engine=server.engine(devices=["npu:1", "npu-physical:7"])):
            server.generate()
        with pytest.raises(SettingError, match="npu:9"):
            rollout_window(2, engine=server.engine(devices="npu:9")).open()
        profwin.shutdown()
    evidence = Evidence(tmp_path / "out")
    assert [set(record["devices"]) for record in evidence.of("open")] == [{npu_key(5), npu_key(7)}]

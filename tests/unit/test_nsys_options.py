"""How a program is started under nsys, and by which signs one that was is known."""

from __future__ import annotations

import json

import pytest

from profwin.backends.nsys_launch import launched
from profwin.backends.nsys_options import command, environment, options
from profwin.cli import main
from profwin.errors import SettingError

LIBRARY = "/usr/share/nsys/target-linux-x64/libToolsInjection64.so"


@pytest.mark.parametrize(
    ("variables", "sign"),
    [
        ({"NSYS_PROFILING_SESSION_ID": "7"}, "NSYS_PROFILING_SESSION_ID is set"),
        ({"NSYS_PROFILING_SESSION_ID": ""}, None),
        ({"CUDA_INJECTION64_PATH": LIBRARY}, "CUDA_INJECTION64_PATH names a library of nsys"),
        ({"LD_PRELOAD": "/x.so:/usr/share/nsys/libToolsInjectionProxy64.so"}, "LD_PRELOAD names a library of nsys"),
        ({"NVTX_INJECTION64_PATH": "/another/tool.so", "LD_PRELOAD": "/x.so"}, None),
        ({}, None),
    ],
)
def test_signs_in_the_environment(tmp_path, variables, sign):
    """The session's variable, or an injection of nsys's library, is a sign; the injection of another tool is none."""
    assert launched(variables, str(tmp_path / "none")) == sign


def test_a_library_that_is_loaded(tmp_path):
    """A process whose environment was cleaned is known by what is loaded in it."""
    maps = tmp_path / "maps"
    maps.write_text(f"7f00-7f01 r-xp 00000000 08:01 1 {LIBRARY}\n")
    assert launched({}, str(maps)) == "a library of nsys is loaded"
    assert launched({}) is None


def test_options_of_a_run_of_any_length():
    """By default every capture range is recorded, and nsys leaves the program alone."""
    assert options() == {
        "trace": "cuda,nvtx",
        "capture-range": "cudaProfilerApi",
        "capture-range-end": "repeat",
        "kill": "none",
        "output": "profwin_%h_%p",
    }
    assert options()["capture-range-end"] != "stop-shutdown"


def test_options_that_are_asked_for():
    """The number of ranges, the time of the reports, the metrics and the name are passed on."""
    found = options(3, output="/data/x", gpu_metrics="all", mode="async")
    assert found["capture-range-end"] == "repeat-shutdown:3:async"
    assert (found["gpu-metrics-devices"], found["output"]) == ("all", "/data/x")
    assert options(mode="sync")["capture-range-end"] == "repeat:sync"
    assert command({"kill": "none"}) == ["nsys", "profile", "--kill=none"]


@pytest.mark.parametrize("wrong", [{"windows": 0}, {"mode": "later"}])
def test_wrong_options(wrong):
    """What nsys would misunderstand is refused."""
    with pytest.raises(SettingError):
        options(**wrong)


def test_the_environment_for_ray():
    """Ray takes the report's name alone, as one letter, and gets a dictionary that it may change."""
    given = options(2, output="/data/report_%p")
    found = environment(given)
    assert found["nsight"]["o"] == "report_%p"
    assert "output" not in found["nsight"]
    assert found["nsight"] is not environment(given)["nsight"]


def test_ray_accepts_the_environment():
    """Ray's own code takes the dictionary, and makes the command line that is meant."""
    nsight = pytest.importorskip("ray._private.runtime_env.nsight")
    from ray.runtime_env import RuntimeEnv

    asked = environment(options(2, gpu_metrics="cuda-visible"))
    words = nsight.parse_nsight_config(RuntimeEnv(**asked).nsight())
    assert words[:2] == ["nsys", "profile"]
    assert {"--capture-range-end=repeat-shutdown:2", "--kill=none", "--gpu-metrics-devices=cuda-visible"} <= set(words)
    assert words[words.index("-o") + 1] == "profwin_%h_%p"


def test_the_command_prints_them(capsys):
    """The command prints a command line, the options as JSON, or Ray's environment."""
    assert main(["nsys-options", "--windows", "2", "-o", "a b"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("nsys profile --trace=cuda,nvtx --capture-range=cudaProfilerApi ")
    assert "--capture-range-end=repeat-shutdown:2 --kill=none '--output=a b'" in printed
    assert main(["nsys-options", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == options()
    assert main(["nsys-options", "--ray", "--gpu-metrics", "all", "--mode", "sync"]) == 0
    assert json.loads(capsys.readouterr().out) == environment(options(gpu_metrics="all", mode="sync"))


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_wrong_numbers(capsys, number):
    """A number of ranges below 1, or none, is wrong usage."""
    with pytest.raises(SystemExit) as ended:
        main(["nsys-options", f"--windows={number}"])
    assert ended.value.code == 2
    assert "no whole number from 1" in capsys.readouterr().err

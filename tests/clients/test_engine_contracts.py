"""The adapters of HTTP servers agree with the servers' source: fields, routes, messages, statuses, names of files.

The kept contracts are compared with the real source where it is at hand: vLLM's of the interpreter that the variable
``VLLM_PYTHON`` names, SGLang's of the wheel that ``SGLANG_WHEEL`` names.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from engine_contracts import READ, Source, kept
from hypothesis import given, settings
from hypothesis import strategies as st

from profwin.engines import SGLangServer, VLLMServer
from profwin.engines.http import Answer

URL = "http://127.0.0.1:9"
SERVER = VLLMServer(URL, devices="a")
VLLM, SGLANG = os.environ.get("VLLM_PYTHON"), os.environ.get("SGLANG_WHEEL")


def _request(server):
    asked = server._ask({"step": 3, "name": "rollout"})
    return server._start_request(asked, "/nowhere", "x")


@pytest.mark.environment("VLLM_PYTHON", "vllm")
def test_the_installed_vllm_is_as_kept():
    """What is kept of vLLM is what its installed source says."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = subprocess.run([VLLM, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert READ["vllm"](Source(Path(place))) == kept("vllm")


@pytest.mark.skipif(not SGLANG, reason="SGLANG_WHEEL names no wheel of SGLang")
def test_the_wheel_of_sglang_is_as_kept():
    """What is kept of SGLang is what its wheel's source says."""
    assert READ["sglang"](Source(Path(SGLANG))) == kept("sglang")


def test_requests_have_the_fields_of_the_servers():
    """Every field that is sent is one that the server knows; vLLM ignores one that is newer than it."""
    every = VLLMServer(URL, delay_iterations=1, max_iterations=1, profiler_kwargs={"with_stack": False})
    assert set(_request(every)) - {"profiler_kwargs"} == set(kept("vllm")["fields"])
    assert "extra='ignore'" in kept("vllm")["unknown fields"]
    every = SGLangServer(
        URL, start_step=1, num_steps=1, activities=["CPU"], profile_by_stage=True, with_stack=False,
        record_shapes=False, directory="/x",
    )  # fmt: skip
    assert set(_request(every)) <= set(kept("sglang")["fields"])
    assert len(_request(every)) == 9


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_routes(kind):
    """The two requests that are sent are served, with this method."""
    found = kept(kind)["routes"]
    assert set(found) == {"/start_profile", "/stop_profile"}
    assert all("post" in str(route).lower() for route in found.values())


@settings(deadline=None)
@given(st.text(), st.integers(0, 10**9))
def test_vllm_takes_every_prefix(name, step):
    """Whatever a window is called, the prefix is one that vLLM's own rule lets pass."""
    (rule,) = kept("vllm")["prefix"]
    token = SERVER._ask({"step": step, "name": name}).token
    assert not eval(rule, {"prefix": token})  # vLLM's own condition for refusing one


def test_messages():
    """What the servers say is understood as what it means."""
    vllm, sglang = VLLMServer(URL, devices="a"), SGLangServer(URL, devices="a")
    busy, idle = kept("sglang")["messages"]
    assert vllm._taken(Answer(409, "", kept("vllm")["conflict"]))
    assert vllm._taken(Answer(500, "", kept("vllm")["conflict"]))
    assert kept("vllm")["conflict's status"] == "HTTPStatus.CONFLICT"
    assert sglang._taken(Answer(500, "", busy))
    assert not sglang._taken(Answer(500, "", idle))
    assert sglang._stopped([Answer(500, "", idle)])
    assert not sglang._stopped([Answer(500, "", busy)])
    assert "not enabled" in kept("vllm")["not enabled"][0]


def test_what_sglang_does_not_say():
    """Its server has no handler for what its scheduler says, so only what Starlette makes of it arrives."""
    assert not {"Exception", "RuntimeError"} & set(kept("sglang")["handlers"])
    assert "raise RuntimeError" in kept("sglang")["failure"]
    assert {"Exception"} < set(kept("vllm")["handlers"])
    opaque = Answer(500, "", "Internal Server Error")
    assert kept("sglang")["refused starts"] == "recv_req.profile_by_stage or recv_req.start_step"
    assert kept("sglang")["plain start"]
    assert SGLangServer(URL, start_step=1)._taken(opaque)
    assert SGLangServer(URL, profile_by_stage=True, num_steps=1)._taken(opaque)
    assert not SGLangServer(URL, num_steps=1)._taken(opaque)
    assert not SGLangServer(URL)._stopped([opaque])
    assert SGLangServer(URL)._stopped([opaque, opaque])


def test_what_sglang_does_not_forget():
    """What is armed is forgotten by a recording that ends alone, and counting by stage needs a number of steps."""
    contract = kept("sglang")
    assert contract["a stop forgets what is armed"]
    assert not contract["a stop of nothing forgets what is armed"]
    assert contract["by stage counts to"]


def test_the_stand_in_speaks_as_the_servers_do():
    """The messages and answers of the stand-in are the servers' own."""
    text = (Path(__file__).parents[1] / "integration" / "engine_stand_in.py").read_text()
    said = [kept("vllm")["conflict"], *kept("sglang")["messages"], *kept("sglang")["answers"]]
    assert all(each.replace("\n", "\\n") in text for each in said)
    assert "stop of nothing" in kept("vllm")

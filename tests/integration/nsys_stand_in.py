"""Run as a script: stands for ``nsys`` where Ray starts it: ``profile [OPTION]... PROGRAM [ARGUMENT]...``.

It runs the program, which appends a byte to the file that ``STAND_IN_RANGES`` names at each end of a capture range, and
writes a report for each: at that end with the mode ``async``, after the last of N ranges, else when the program has
ended; after a moment, and in two parts, of which the second one must come well before a report counts as finished
(:data:`profwin.ray.reports.SETTLED`). ``STAND_IN`` may be ``empty``, ``never`` or ``late``, for what becomes of them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time


def main(words):
    """Do as nsys does; return the program's status."""
    output, end, at = "report1", "", 1
    while words[at].startswith("-"):
        end = words[at].partition("--capture-range-end=")[2] or end
        if words[at] == "-o":
            output = words[at + 1]
        at += 1 if words[at].startswith("--") else 2
    most, mode = (end.partition(":")[2] + "::").split(":")[:2] if "shutdown" in end else ("", end.partition(":")[2])
    with tempfile.NamedTemporaryFile() as ranges:
        variables = {"NSYS_PROFILING_SESSION_ID": "1", "STAND_IN_RANGES": ranges.name}
        with subprocess.Popen(words[at:], env={**os.environ, **variables}) as program:
            name = output.strip("'").replace("%h", socket.gethostname()).replace("%p", str(program.pid))
            written = 0
            while True:
                status = program.poll()
                made = os.stat(ranges.name).st_size
                due = made if status is not None or mode == "async" or (most and made >= int(most)) else 0
                writers = [
                    threading.Thread(target=write, args=(f"{name}.{n + 1}.nsys-rep",)) for n in range(written, due)
                ]
                for writer in writers:
                    writer.start()
                written = max(written, due)
                if status is not None:
                    return status
                time.sleep(0.02)


def write(report):
    """Write one report."""
    how = os.environ.get("STAND_IN", "")
    time.sleep(60 if how == "late" else 0.1)
    if how == "never":
        return
    with open(report, "wb") as file:
        if how != "empty":
            file.write(b"NSYS half")
            file.flush()
            time.sleep(0.3)
            file.write(b" and the other half")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What tests of ``profwin run`` share: programs, a plan for them, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "bare", "programs", "run"]

ROOT = Path(__file__).resolve().parents[2]
PLAN = """
format = 1
name = "ways"

[[patch]]
target = "subject:work"
role = "stage"
"""
SUBJECT = """
import os

def work():
    return "worked"

def say(who):
    os.write(1, f"{who} {'patched' if '__profwin_patch__' in vars(work) else 'bare'}\\n".encode())
"""
WAYS = '''
"""Starts another Python in one of many ways; every process says whether it is patched."""
import os, subprocess, sys
import subject

def child(who):
    subject.work()
    subject.say(who)

def main(way):
    subject.say("parent")
    python, here = sys.executable, os.environ
    code = "import os, sys; sys.path.insert(0, os.getcwd()); import subject; subject.say('child')"
    if way in ("fork", "spawn", "forkserver"):
        import multiprocessing
        process = multiprocessing.get_context(way).Process(target=child, args=("child",))
        process.start()
        process.join()
        assert process.exitcode == 0
    elif way == "os.fork":
        if os.fork() == 0:
            child("child")
            os._exit(0)
        os.wait()
    elif way == "file":
        subprocess.run([python, "other.py"], check=True)
    elif way == "-c":
        subprocess.run([python, "-c", code], check=True)
    elif way == "-m":
        subprocess.run([python, "-m", "other"], check=True)
    elif way == "shell":
        subprocess.run(f'true && {python} -c "{code}"', shell=True, check=True)
    elif way == "posix_spawn":
        os.waitpid(os.posix_spawn(python, [python, "other.py"], here), 0)
    elif way == "execv":
        if len(sys.argv) == 2:
            os.execv(python, [python, *sys.argv, "again"])
        subject.say("child")
    elif way.startswith("-"):
        subprocess.run([python, way, "-c", code], check=True)
    elif way == "PATH":
        subprocess.run([python, "-c", code], check=True, env={"PATH": here["PATH"]})
    elif way == "PYTHONPATH":
        subprocess.run([python, "-c", code], check=True, env={**here, "PYTHONPATH": os.getcwd()})

if __name__ == "__main__":
    main(sys.argv[1])
'''


def programs(directory: Path) -> None:
    """Write the programs and their plan."""
    for name, text in {
        "subject.py": SUBJECT,
        "ways.py": WAYS,
        "other.py": "import subject\nsubject.say('child')\n",
        "plan.toml": PLAN,
    }.items():
        (directory / name).write_text(text)


def run(directory: Path, *command: str, options: tuple[str, ...] = (), plan: str | None = "plan.toml", **more):
    """Run ``profwin run OPTIONS -- COMMAND`` in a directory to its end; ``env`` adds to the environment."""
    plans = () if plan is None else ("--plan", plan)
    return bare(directory, sys.executable, "-m", "profwin", "run", *plans, *options, "--", *command, **more)


def bare(directory: Path, *command: str, env: dict[str, str] | None = None, **more):
    """Run a command in a directory to its end."""
    path = os.pathsep.join(filter(None, [(env or {}).get("PYTHONPATH"), str(ROOT)]))
    surroundings = {**os.environ, **(env or {}), "PYTHONPATH": path}
    more = {"capture_output": True, "stdin": subprocess.DEVNULL, **more}
    return subprocess.run(command, cwd=directory, text=True, timeout=250, check=False, env=surroundings, **more)

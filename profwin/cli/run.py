"""``profwin run``: run a command with plans applied, in it and in the Python programs that it starts."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from profwin.patch.plan import Plan
    from profwin.settings import Settings

__all__ = ["SETTINGS", "add_parser", "run"]

NOT_EXECUTABLE, NOT_FOUND, WRONG_USAGE = 126, 127, 2
"""Exit statuses where COMMAND does not run: the first two as a shell's."""

_DESCRIPTION = """
Run COMMAND with the targets of plans patched, in it and in the Python programs that it starts: multiprocessing,
torchrun, subprocesses, Ray's workers and actors on this host. No file of the program is changed, nothing is
imported earlier than the program does, and signals and the exit status are COMMAND's.
"""

_EPILOG = """
examples:
  profwin run --plan trl --steps 2-3 -- python train.py --model ...
  profwin run --plan verl --steps 2,4 --backend torch -- python -m verl.trainer.main_ppo ...
  profwin run --plan mine.toml --steps every:10 -- torchrun --nproc-per-node 2 train.py
  profwin run --plan verl --steps 2 --children '!sandbox*.py' -- bash train.sh

What it cannot reach: Python started with -I, -E or -S, or with an environment that lacks this one's PYTHONPATH; other
hosts; frozen programs; modules loaded from a path that is not searched; and, for targets in __main__, code from -c or
standard input and scripts that another program compiles itself, as pdb and `coverage run` do.

Exit status: COMMAND's; 2 wrong usage, or a plan or setting that cannot be used; 126 COMMAND cannot be executed; 127
there is no such COMMAND.
"""

SETTINGS: dict[str, tuple[str, str]] = {
    "steps": ("STEPS", "which steps are recorded: 2,4-6,every:100; without, profwin is off unless the plan sets them"),
    "backend": ("NAMES", "what records: record (default), torch, or several, separated by commas"),
    "output": ("DIR", "each run gets a directory below this one; default: outputs/profwin"),
    "collect": ("stage|step", "one recording a stage (default), or one of all stages of a step"),
    "continuous": ("", "with --collect step: join the recordings of consecutive steps"),
    "ranks": ("RANKS", "record only these ranks: 0,4-7"),
    "roles": ("GLOBS", "record only these roles"),
    "stages": ("GLOBS", "record only stages of these names"),
    "on_busy": ("wait|skip", "what a stage does while a rollout holds its device; default: wait"),
    "wait_budget": ("SECONDS", "how long one step may wait for one device; default: 30"),
    "finish_command": ("COMMAND", "a shell command, run once, after the last recorded step or at the end"),
    "strict": ("", "raise where a plan does not fit or something cannot be recorded; else the run goes on unprofiled"),
    "role": ("NAME", "the role of the processes; default: train, and rollout for windows"),
    "rank": ("NUMBER", "the rank of the processes; default: the variable RANK"),
    "devices": ("NAMES", "the devices to record on: cuda:1,cuda:2; default: those that a process uses"),
    "lock_dir": ("DIR", "directory of the device locks; default: the host's"),
    "run": ("NAME", "the run's name; default: torchrun's, else made of time and chance"),
    "trace_format": ("json|json.gz", "of traces; default: json.gz"),
    "torch_options": ("NAMES", "of the torch backend: record_shapes, profile_memory, with_stack, ..."),
    "npu_options": ("OPTIONS", "of the torch_npu backend: level=Level1,memory, ..."),
    "memory_options": ("OPTIONS", "of the memory backend: max_entries=20000,stacks=all, ..."),
}
"""What stands for each setting's value and its help; a switch has no value."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    import argparse

    parser = commands.add_parser(
        "run",
        help="run a command with plans applied, without a change to it",
        usage="profwin run [--plan NAME|FILE]... [--children all|none|GLOBS] [--strict] [SETTING]... -- COMMAND...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--plan",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="a shipped plan (`profwin plan list`) or a TOML file; may be given several times",
    )
    parser.add_argument(
        "--children",
        default="all",
        metavar="all|none|GLOBS",
        help="which Python children are patched: all (default), none, or those whose script, -m module or program name"
        " matches a pattern; '!GLOB' keeps children out, as sandboxes that run generated code",
    )
    parser.add_argument("--quiet", action="store_true", help="do not say on stderr what is patched")
    settings = parser.add_argument_group("settings", "those of profwin.configure; PROFWIN_* variables hold as well")
    for name, (metavar, words) in SETTINGS.items():
        option = f"--{name.replace('_', '-')}"
        if metavar:
            settings.add_argument(option, metavar=metavar, dest=f"setting_{name}", help=words)
        else:
            settings.add_argument(option, action="store_const", const="1", dest=f"setting_{name}", help=words)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the program and its arguments")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Become COMMAND.

    Returns:
        The exit status, only where COMMAND did not run.
    """
    from profwin.errors import ProfwinError
    from profwin.settings import Settings

    separator, *command = arguments.command or [""]
    if separator != "--" or not command:
        arguments.usage_error("COMMAND is missing: write it last, after `--`")
    given = {name: value for name in SETTINGS if (value := getattr(arguments, f"setting_{name}")) is not None}
    try:
        settings = Settings(given, os.environ)
        plans, added = _plans(arguments.plan, arguments.children)
    except ProfwinError as error:
        print(f"profwin run: {error}", file=sys.stderr)
        return WRONG_USAGE
    added.update({f"PROFWIN_{name.upper()}": value for name, value in given.items()})
    # Children have working directories of their own, but one run.
    if settings.lock_dir is not None:
        added["PROFWIN_LOCK_DIR"] = os.path.abspath(settings.lock_dir)
    if not ("output" in _configured(plans) and "output" not in given and not os.environ.get("PROFWIN_OUTPUT")):
        added["PROFWIN_OUTPUT"] = settings.output
    if not arguments.quiet:
        _say(plans, settings, added.get("PROFWIN_OUTPUT"), command)
    return _become(command, {**os.environ, **added})


def _plans(names: Sequence[str], children: str) -> tuple[Sequence[Plan], dict[str, str]]:
    """Return the plans of these names, and the variables that apply them.

    Raises:
        PlanError: one cannot be used.
        SettingError: the rule for children is none.
    """
    from profwin.patch.children import parse_children
    from profwin.patch.environment import patch_variables

    rule = parse_children(children)
    if not names:
        return (), {}
    from profwin.patch.reading import find

    plans = find(names)
    return plans, patch_variables(plans, rule, os.environ)


def _configured(plans: Sequence[Plan]) -> set[str]:
    """Return which settings the plans read from the program's own configuration, where nothing else gives them."""
    return {name for plan in plans if plan.configure is not None for name, _value in plan.configure.settings}


def _say(plans: Sequence[Plan], settings: Settings, output: str | None, command: Sequence[str]) -> None:
    from profwin.patch.command import remarks

    counts = [(plan.name, len(plan.patches)) for plan in plans]
    parts = [f"plan {name} ({count} target{'s' * (count != 1)})" for name, count in counts] or ["no plan"]
    own = "as the program's own configuration says"
    if settings.steps is not None or "steps" in _configured(plans):
        parts += [f"steps {settings.steps or own}", f"output {output or own}"]
    else:
        parts.append("no steps, so nothing is recorded: give --steps")
    print(f"profwin run: {', '.join(parts)}", file=sys.stderr)
    for remark in remarks(command, plans):
        print(f"profwin run: {remark}", file=sys.stderr)


def _become(command: Sequence[str], environment: Mapping[str, str]) -> int:
    import signal

    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays so after exec
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    program = command[0]
    try:
        os.execvpe(program, list(command), dict(environment))
    except FileNotFoundError:
        status, problem = NOT_FOUND, "there is no such program" + _where(program)
    except (OSError, ValueError) as error:
        reason = f"it cannot be executed: {getattr(error, 'strerror', None) or error}"
        status, problem = NOT_EXECUTABLE, "it is a directory" if os.path.isdir(program) else reason
    print(f"profwin run: {program}: {problem}", file=sys.stderr)
    return status


def _where(program: str) -> str:
    if os.sep in program:
        return "; a script's first line may name an interpreter that is not there" if os.path.exists(program) else ""
    return f" on PATH; a file in this directory is run as ./{program}" if os.path.exists(program) else " on PATH"

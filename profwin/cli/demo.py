"""``profwin demo``: a tiny reinforcement-learning loop, profiled on both sides, and its verification."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import NoReturn

    from profwin.demo.cluster.cluster import Cluster
    from profwin.demo.loop import StepResult
    from profwin.demo.options import Options, ServerOptions
    from profwin.demo.trial import Trial

__all__ = ["add_parser", "run"]

ALL = "all"
ENGINES = ("own", "vllm")
STEPS = 12
STEPS_OF_A_MISUSE = 5
NODES, MOST_NODES = 2, 8
SHORT_BUDGET = 1.5
LONG_BUDGET = 600.0
"""Seconds; a server's stop takes as long as its trace takes to be written."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from profwin.demo.options import LOOPS, MISUSE_NAMES

    parser = commands.add_parser(
        "demo",
        help="a tiny GRPO loop on the CPU, profiled without overlap",
        description=(
            "Run a tiny GRPO loop: an inference engine and a trainer in processes of their own, on pretend "
            "devices, both profiled by torch.profiler. Afterwards the journals and the traces' own times are "
            "checked: no overlap on a device, nothing missing. Needs torch; no accelerator."
        ),
        epilog=(
            "Loops: in sync and colocate, rollout and training take turns on one device; colocate keeps unfinished "
            "rollouts from step to step. In separate and fully_async each has a device of its own, and they run at "
            "the same time: in separate, rollout is one step ahead, and training lends its device to it in every "
            "third step; in fully_async both run freely, with a bounded queue and a weight sync a step. all runs "
            "the four one after the other. "
            "With --engine vllm the sync loop's answers come from a vLLM server that was started with "
            "--profiler-config, and whose traces this machine can see; its weights stay as they are. "
            "With --ray engines and trainers are actors on a Ray cluster, which is started for this and ended: its "
            "nodes are raylets on this machine, each as if on a host of its own. Needs Ray."
        ),
    )
    parser.add_argument(
        "--loop", choices=(*LOOPS, ALL), default="sync", help="which loop, or all four (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, metavar="N", help=f"how many steps to run (default: {STEPS})")
    parser.add_argument(
        "--profile", default="2,4", metavar="STEPS", help="steps to profile, or none (default: %(default)s)"
    )
    parser.add_argument(
        "--output", default=os.path.join("outputs", "profwin-demo"), metavar="DIR",
        help="each run gets a directory of its own in it (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=2, help="of weights, prompts and sampling (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument(
        "--misuse",
        choices=MISUSE_NAMES,
        help="make one of the four commonest mistakes, in the sync loop, and see",
    )
    parser.add_argument(
        "--engine", choices=ENGINES, default=ENGINES[0], help="what generates (default: %(default)s, the demo's own)"
    )
    parser.add_argument("--url", help="of the server, with --engine vllm: http://HOST:PORT")
    parser.add_argument("--token", help="what the server asks of whom it serves (default: the variable VLLM_API_KEY)")
    parser.add_argument(
        "--devices", metavar="NAMES", help="that server and trainer share, with --engine vllm (default: a pretend one)"
    )
    parser.add_argument(
        "--ray", action="store_true", help="run it on a Ray cluster of several raylets, started for it on this machine"
    )
    parser.add_argument(
        "--nodes", type=int, metavar="N", help=f"how many, with --ray: 1 to {MOST_NODES} (default: {NODES})"
    )
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; return 0 if the verification holds, else 1."""
    planned = _options(arguments)
    # What this shell is set up to profile is not the demo's business; where the device locks are is.
    for name in [name for name in os.environ if name.startswith("PROFWIN_") and name != "PROFWIN_LOCK_DIR"]:
        del os.environ[name]
    from importlib.util import find_spec

    needed = {"torch": "torch"} if arguments.engine == ENGINES[0] else {"torch": "torch", "httpx": "engines"}
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        extras = ",".join(needed.values())
        print(f"profwin: the demo needs {missing[0]}: pip install 'profwin[{extras}]'", file=sys.stderr)
        return 1
    if planned[0].server is not None:
        _check_server(planned[0].server, arguments.parser.error)
    from profwin.demo import report, trial

    def progress(result: StepResult) -> None:
        name = f"{each.loop} " if len(planned) > 1 else ""
        _say(name + report.progress_line(result, each.steps))

    trials = []
    with _cluster(planned[0].hosts) as cluster:
        for each in planned:
            done = trial.run(each, progress, cluster)
            trials.append(done)
            if not arguments.json:
                _show(done, heading=len(planned) > 1)
    passed = all(done.passed for done in trials)
    if arguments.json:
        import json

        objects = [report.as_json(done) for done in trials]
        whole = objects[0] if arguments.loop != ALL else {"passed": passed, "loops": objects}
        print(json.dumps(whole, indent=2))
    elif arguments.loop == ALL:
        print(f"\n{report.summary(trials)}")
    return 0 if passed else 1


def _options(arguments: argparse.Namespace) -> list[Options]:
    from profwin.demo.options import LOOPS

    return [_options_of(loop, arguments) for loop in (LOOPS if arguments.loop == ALL else [arguments.loop])]


def _options_of(loop: str, arguments: argparse.Namespace) -> Options:
    from profwin.demo.options import Options, new_run_name
    from profwin.errors import SettingError
    from profwin.selection import parse_steps

    usage: Callable[[str], NoReturn] = arguments.parser.error
    misuse = arguments.misuse
    steps = arguments.steps if arguments.steps is not None else STEPS if misuse is None else STEPS_OF_A_MISUSE
    if steps < 1:
        usage(f"--steps {steps}: at least 1 is needed")
    if misuse is not None and arguments.loop != "sync":
        usage("--misuse is shown in the sync loop only")
    server = _server(arguments, usage)
    nodes = _nodes(arguments, usage)
    try:
        off = arguments.profile.strip().lower() == "none"
        profile = None if off else parse_steps(arguments.profile, setting="--profile")
    except SettingError as error:
        usage(str(error))
    options = Options(
        loop=loop,
        steps=steps,
        profile=profile,
        output=arguments.output,
        seed=arguments.seed,
        misuse=misuse,
        # A real run waits longer; here the point is to see what happens when the wait is over.
        wait_budget=SHORT_BUDGET if misuse is not None else LONG_BUDGET if server is not None else 30.0,
        run=new_run_name(misuse or (loop if server is None else server.kind)),
        server=server,
        nodes=nodes,
    )
    if not options.profiled and (not off or misuse is not None):
        usage(f"--profile {arguments.profile}: none of these is among the steps 1 to {steps}")
    return options


def _nodes(arguments: argparse.Namespace, usage: Callable[[str], NoReturn]) -> int:
    if not arguments.ray:
        if arguments.nodes is not None:
            usage("--nodes is for a cluster: add --ray")
        return 0
    nodes: int = NODES if arguments.nodes is None else arguments.nodes
    if not 1 <= nodes <= MOST_NODES:
        usage(f"--nodes {nodes}: 1 to {MOST_NODES}")
    if arguments.misuse is not None or arguments.engine != ENGINES[0]:
        usage("--ray runs the four loops with the demo's own engine, and no misuse")
    return nodes


def _cluster(hosts: tuple[str, ...]) -> AbstractContextManager[Cluster | None]:
    if not hosts:
        return nullcontext()
    from profwin.demo.cluster.cluster import Cluster

    return Cluster(hosts, _say)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _server(arguments: argparse.Namespace, usage: Callable[[str], NoReturn]) -> ServerOptions | None:
    from profwin.demo.options import ServerOptions

    url, devices = arguments.url, arguments.devices
    if arguments.engine == ENGINES[0]:
        for option, value in (("--url", url), ("--token", arguments.token), ("--devices", devices)):
            if value is not None:
                usage(f"{option} is for a server: add --engine vllm")
        return None
    if url is None:
        usage(f"--engine {arguments.engine} needs --url http://HOST:PORT")
    if devices is not None and not all(name.strip() for name in devices.split(",")):
        usage(f"--devices {devices!r}: names are needed, separated by commas")
    if arguments.loop != "sync" or arguments.misuse is not None:
        usage(f"--engine {arguments.engine} runs the sync loop only, and no misuse")
    token = arguments.token or os.environ.get("VLLM_API_KEY") or None
    return ServerOptions(kind=arguments.engine, url=url, token=token, devices=devices)


def _check_server(server: ServerOptions, usage: Callable[[str], NoReturn]) -> None:
    """Find out what of a server's options cannot be used, which needs httpx."""
    from profwin.demo.serving import recorder
    from profwin.errors import SettingError

    try:
        recorder(server, "pretend:any")
    except SettingError as error:
        usage(str(error))


def _show(trial: Trial, *, heading: bool) -> None:
    from profwin.demo.report import narrative, table, verdict

    options, evidence = trial.options, trial.evidence
    print(f"\n{options.loop}\n{'=' * len(options.loop)}\n" if heading else "")
    if options.misuse is not None:
        from profwin.demo.misuse import MISUSES

        misuse = MISUSES[options.misuse]
        print(f"The mistake: {misuse.mistake}.\nWhat profwin does: {misuse.promise}.\n")
    print(table(trial))
    if told := [*trial.notes, *narrative(evidence)]:
        print("What the journals say beside the ordinary:")
        print("".join(f"  {line}\n" for line in told))
    print(f"Traces, for https://ui.perfetto.dev, in {os.path.relpath(options.directory)}:")
    print("".join(f"  {path}\n" for path in sorted(evidence.traces)))
    print("Verified from the journals, and from the traces' own times:")
    print(verdict(trial.checks))

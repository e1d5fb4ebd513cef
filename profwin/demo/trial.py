"""One loop of the demo, run and verified."""

from __future__ import annotations

import time
from dataclasses import dataclass

from profwin.demo import fully_async, loop, separate
from profwin.demo.options import OLDEST_SAMPLES
from profwin.demo.overlap import Overlap, measure, verify_overlap
from profwin.demo.processes import Processes
from profwin.demo.verify import verify, verify_second_profiler
from profwin.demo.versions import verify_age, verify_generation
from profwin.demo.witness import gather

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.demo.cluster.cluster import Cluster
    from profwin.demo.loop import Outcome, StepResult
    from profwin.demo.options import Options
    from profwin.demo.verify import Check
    from profwin.demo.witness import Evidence

__all__ = ["Trial", "run"]

RUNS = {"sync": loop.run, "colocate": loop.run, "separate": separate.run, "fully_async": fully_async.run}


@dataclass(frozen=True)
class Trial:
    """A loop that was run, and what its files say.

    Attributes:
        results: of its steps.
        evidence: what its directory holds.
        overlaps: rollout beside training on other devices, in the profiled steps of a pipelined loop.
        checks: the verification.
        notes: on what was done wrong on purpose.
        seconds: that it took.
    """

    options: Options
    results: list[StepResult]
    evidence: Evidence
    overlaps: list[Overlap]
    checks: list[Check]
    notes: list[str]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether the verification holds."""
        return all(check.passed for check in self.checks)


def run(options: Options, progress: Callable[[StepResult], None], cluster: Cluster | None = None) -> Trial:
    """Run a loop in processes of its own and verify it by its files.

    Args:
        options: what to run.
        progress: called after each step.
        cluster: where, if it has nodes.

    Raises:
        ChildError: one of its processes ended or failed; all of them are gone then.
        ServerError: the server that is to generate cannot be used.
    """
    began = time.monotonic()
    outcome = _run(options, progress) if cluster is None else _run_on(cluster, options, progress)
    evidence = gather(options.directory)
    # Elsewhere rollout and training take turns: that one node is a little ahead of another is nobody's aim.
    overlaps = measure(evidence, options.profiled) if options.pipelined else []
    checks = _checks(options, outcome.results, evidence, overlaps)
    return Trial(options, outcome.results, evidence, overlaps, checks, outcome.notes, time.monotonic() - began)


def _run(options: Options, progress: Callable[[StepResult], None]) -> Outcome:
    loop_run = _loop(options)
    with Processes(options) as processes:
        return loop_run(options, processes, progress)


def _run_on(cluster: Cluster, options: Options, progress: Callable[[StepResult], None]) -> Outcome:
    from profwin.demo.cluster import loops
    from profwin.demo.cluster.processes import ActorProcesses

    with ActorProcesses(options, cluster) as processes:
        outcome = loops.run(options, processes, progress)
    if options.profiled:
        cluster.collect(options.output, options.run)
    return outcome


def _loop(options: Options) -> Callable[[Options, Processes, Callable[[StepResult], None]], Outcome]:
    if options.server is None:
        return RUNS[options.loop]
    from profwin.demo import serving

    serving.check(options.server, options.seed, profiled=bool(options.profiled))
    return serving.run


def _checks(options: Options, results: list[StepResult], evidence: Evidence, overlaps: list[Overlap]) -> list[Check]:
    everything = {result.step: result.work for result in results}
    work = {step: everything[step] for step in options.profiled}
    checks = verify(evidence, work, misuse=options.misuse is not None)
    if options.misuse is None and options.server is None:
        # A server writes no versions into its traces, and keeps its weights.
        checks.append(verify_generation(evidence, work))
        checks.append(verify_age(evidence, everything, OLDEST_SAMPLES[options.loop]))
    if options.nodes and options.profiled:
        from profwin.demo.cluster.verify import verify_check, verify_handovers, verify_hosts

        checks += [verify_handovers(evidence, options), verify_hosts(evidence, options)]
        checks.append(verify_check(options.directory))
    if options.pipelined:
        checks.append(verify_overlap(overlaps, options.profiled))
    own = options.second_profiler_directory()
    if own is not None:
        checks.append(verify_second_profiler(own, options.steps))
    return checks

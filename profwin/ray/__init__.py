"""profwin.ray: the rule on a Ray cluster: workers that are configured, actors that record as engines, and node agents.

::

    import profwin
    import profwin.ray
    from profwin import rollout_window

    profwin.configure(steps="2,4-6", backend="torch", output="/shared/profile")
    ray.init(runtime_env=profwin.ray.environment())
    agents = profwin.ray.agents()  # on several nodes: every host knows the step
    engine = profwin.ray.actors(rollout_workers)

    with rollout_window(step, engine=engine):
        ray.get([worker.generate.remote(prompts) for worker in rollout_workers])

Importing this package imports neither Ray nor torch. Run with Ray 2.60.
"""

from __future__ import annotations

# At once, not when first used: two of the names are those of modules, which would take their places.
from profwin.ray.actors import ActorEngine, actors
from profwin.ray.agents import Agents, agents
from profwin.ray.collect import collect
from profwin.ray.environment import environment
from profwin.ray.nsight import nsight
from profwin.ray.reports import wait_for_reports

__all__ = ["ActorEngine", "Agents", "actors", "agents", "collect", "environment", "nsight", "wait_for_reports"]

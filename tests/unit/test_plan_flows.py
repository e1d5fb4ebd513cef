"""Plans for frameworks that cannot be installed here, on programs that call in the same order: steps, windows, stages.

Which names and parameters the frameworks have, ``tests/clients/test_plan_contracts.py`` holds against their source.
"""

from __future__ import annotations

import importlib

import pytest
from patch_support import standing

from profwin.patch import install

WORKER = """
class {name}:
    def execute_batch(self, method_name, all_data, start_idx, end_idx): return method_name
    def fit(self, kl_ctl=0): return {{}}
"""

OPENRLHF = {
    "openrlhf.trainer.ppo_trainer": """
class PPOTrainer:
    def __init__(self, generator, worker, done): self.generator, self.worker, self.done = generator, worker, done
    def restore_best_checkpoint_state(self, checkpoint_states): ...
    def fit(self, global_step=0):
        self.restore_best_checkpoint_state({"global_step": self.done})
        for _ in range(3):
            self.generator.generate_samples()
            _, self.done = self.train_step([], self.done)
            self.generator.generate_eval_samples()
    def train_step(self, rollout_samples, global_step):
        for method in ("append", "forward"):
            self.worker.execute_batch(method, {}, 0, 1)
        if self.worker.fit() is None:
            raise ValueError("training failed")
        return {}, global_step + 1
""",
    "openrlhf.trainer.ppo_utils.samples_generator": """
class SamplesGenerator:
    def generate_samples(self, **options): ...
    def generate_eval_samples(self, **options): ...
""",
    "openrlhf.trainer.ray.ppo_actor": WORKER.format(name="PolicyModelActor"),
}

NEMO = {
    "nemo_rl.utils.nsys": "def maybe_gpu_profile_step(policy, step): ...",
    "nemo_rl.experience.rollouts": """
def run_multi_turn_rollout(policy_generation): ...
def run_async_multi_turn_rollout(policy_generation): ...
def run_nemo_gym_rollout_sync(policy_generation): ...
""",
    "nemo_rl.algorithms.grpo": """
from nemo_rl.experience.rollouts import run_async_multi_turn_rollout, run_multi_turn_rollout
from nemo_rl.utils.nsys import maybe_gpu_profile_step
def validate(policy_generation, step): run_multi_turn_rollout(policy_generation)
def grpo_train(policy, generation, batches=1):
    validate(generation, 0)
    for step in (1, 2, 3):
        for _ in range(batches):
            maybe_gpu_profile_step(policy, step)
            maybe_gpu_profile_step(generation, step)
            run_async_multi_turn_rollout(generation)
        policy.get_logprobs()
        policy.train()
        validate(generation, step)
def async_grpo_train(): ...
""",
    "nemo_rl.models.policy.workers.dtensor_policy_worker_v2": """
class Impl:
    def train(self): ...
    def get_logprobs(self): ...
    def get_reference_policy_logprobs(self): return self.get_logprobs()
class DTensorPolicyWorkerV2(Impl): ...
""",
    "nemo_rl.models.policy.lm_policy": """
class Policy:
    started = False
    def start_gpu_profiling(self): self.started = True
    def stop_gpu_profiling(self): ...
""",
}

SLIME = {
    "slime.backends.megatron_utils.model": "def train(rollout_id): ...",
    "slime.ray.rollout": """
class RolloutManager:
    def generate(self, rollout_id): return rollout_id
    def eval(self, rollout_id): ...
""",
    "slime.backends.megatron_utils.actor": """
from types import SimpleNamespace
from slime.backends.megatron_utils.model import train
class MegatronTrainRayActor:
    role, args = "actor", SimpleNamespace(debug_rollout_only=False)
    def train(self, rollout_id, rollout_data_ref, external_data=None):
        (self.train_critic if self.role == "critic" else self.train_actor)(rollout_id, rollout_data_ref)
    def train_actor(self, rollout_id, rollout_data, external_data=None):
        self.compute_log_prob(None, 1, store_prefix="ref_")
        train(rollout_id)
    def train_critic(self, rollout_id, rollout_data): train(rollout_id)
    def compute_log_prob(self, data_iterator, num_microbatches, store_prefix=""): ...
""",
}


@pytest.fixture
def stand(tmp_path):
    """Give modules to patch."""
    with standing(tmp_path) as stand:
        yield stand


def loaded(stand, modules):
    """Write modules of packages and import them; return them."""
    for name, text in modules.items():
        path = stand.directory
        for part in name.split(".")[:-1]:
            path = path / part
            path.mkdir(exist_ok=True)
            (path / "__init__.py").touch()
        (path / f"{name.rpartition('.')[2]}.py").write_text(text)
    importlib.invalidate_caches()
    return [importlib.import_module(name) for name in modules]


def recorded(stand):
    """Return step, kind and name of all that was recorded or joined, and make sure that every path was found."""
    assert not [record for record in stand.records("finding") if record["code"] == "plan-path"]
    return [(each["step"], each["what"], each["name"]) for each in stand.records("enter") if "collection" in each]


def rounds(steps, *names):
    """Return what `recorded` gives where each step has these."""
    return [(step, "window" if name.startswith("rollout") else "stage", name) for step in steps for name in names]


@pytest.mark.parametrize("done", [0, 1])
def test_openrlhf_steps_are_those_of_its_log(stand, done):
    """Each step has its generation and then its stages, also in a run that goes on; evaluation is not recorded."""
    trainers, generators, workers = loaded(stand, OPENRLHF)
    install("openrlhf")
    stand.configure(steps="2-3")
    trainers.PPOTrainer(generators.SamplesGenerator(), workers.PolicyModelActor(), done).fit()
    assert recorded(stand) == rounds((2, 3), "rollout_hybrid", "compute_log_prob", "update_actor")


def test_openrlhf_leaves_nothing_open_where_training_fails(stand, monkeypatch):
    """What a worker raises passes unchanged, and after it no step is under way."""
    trainers, generators, workers = loaded(stand, OPENRLHF)
    install("openrlhf")
    stand.configure(steps="1-3")
    worker = workers.PolicyModelActor()
    monkeypatch.setattr(worker, "fit", lambda: None)
    with pytest.raises(ValueError, match="training failed"):
        trainers.PPOTrainer(generators.SamplesGenerator(), worker, 0).fit()
    generators.SamplesGenerator().generate_samples()
    assert recorded(stand) == rounds((1,), "rollout_hybrid", "compute_log_prob")


@pytest.mark.parametrize("batches", [1, 2])
def test_nemo_rl_steps_are_those_of_its_profiling(stand, batches):
    """Each generation of a step is a window, and validation, which generates by the same functions, is none."""
    install("nemo-rl")
    _nsys, _rollouts, grpo, workers, policies = loaded(stand, NEMO)
    stand.configure(steps="2-3")
    worker = workers.DTensorPolicyWorkerV2()
    grpo.grpo_train(worker, None, batches)
    names = ["rollout_hybrid"] * batches
    assert recorded(stand) == rounds((2, 3), *names, "compute_log_prob", "update_actor")
    policy = policies.Policy()
    policy.start_gpu_profiling()
    assert not policy.started


def test_nemo_rl_reference_log_probs_hold_others(stand):
    """The stage of the reference model is around that of the log-probs, which its base calls."""
    install("nemo-rl")
    nsys, _rollouts, _grpo, workers, _policies = loaded(stand, NEMO)
    stand.configure(steps="2")
    nsys.maybe_gpu_profile_step(None, 2)
    workers.DTensorPolicyWorkerV2().get_reference_policy_logprobs()
    assert recorded(stand) == rounds((2,), "compute_ref_log_prob", "compute_log_prob")


@pytest.mark.parametrize(
    ("role", "names"), [("actor", ("update_actor", "compute_log_prob")), ("critic", ("update_critic",))]
)
def test_slime_gives_both_sides_the_step(stand, monkeypatch, role, names):
    """Manager and workers have the step from their argument; evaluation is not recorded, and the update is a range."""
    install("slime")
    _model, rollout, actor = loaded(stand, SLIME)
    stand.configure(steps="0,2")
    monkeypatch.setattr(actor.MegatronTrainRayActor, "role", role)
    for step in range(3):
        assert rollout.RolloutManager().generate(step) == step
        actor.MegatronTrainRayActor().train(step, None)
        rollout.RolloutManager().eval(step)
    found = recorded(stand)
    assert [each for each in found if each[1] != "span"] == rounds((0, 2), "rollout", *names)
    assert [each for each in found if each[1] == "span"] == [(0, "span", "update"), (2, "span", "update")]

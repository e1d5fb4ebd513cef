"""A GRPO training by TRL, on the CPU, small and offline: ``python trl_train.py NAME...`` trains with these settings.

It knows nothing of profwin, but that several trainings are several runs. Each is done in a directory of its own, where
there are several by a fork of its own, and leaves there ``outcome.json``: what it computed, to the last bit, when TRL
did what, and its process.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import json
import os
import random
import sys
import time
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulate": {"gradient_accumulation_steps": 2},
    "two generations": {"gradient_accumulation_steps": 2, "steps_per_generation": 1},
    "every other step": {"steps_per_generation": 2},
    "iterations": {"num_iterations": 2},
    "accumulate, iterations": {"gradient_accumulation_steps": 2, "num_iterations": 2},
    "reference": {"beta": 0.04},
    "reference, old": {"beta": 0.04, "steps_per_generation": 2},
    "batching thread": {"use_transformers_continuous_batching": True},
    "evaluate": {"eval_strategy": "steps", "eval_steps": 1},
    "save": {"save_strategy": "steps", "save_steps": 1},
    "broken reward": {},
}
WORDS = ["<pad>", "<eos>", "<unk>", *(f"w{number}" for number in range(28))]


class Trainer(GRPOTrainer):
    """TRL's trainer, which notes when its methods run, as pairs of monotonic nanoseconds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ran: dict[str, list[tuple[int, int]]] = {}
        self.losses: list[str] = []

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """Train, and note the loss."""
        loss = self._noted("training_step", super().training_step, *args, **kwargs)
        self.losses.append(loss.item().hex())
        return loss

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        return self._noted("generate_and_score", super()._generate_and_score_completions, inputs)

    def prediction_step(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate one batch."""
        return self._noted("prediction_step", super().prediction_step, *args, **kwargs)

    def save_model(self, *args: Any, **kwargs: Any) -> None:
        """Save, as for a checkpoint."""
        self._noted("save_model", super().save_model, *args, **kwargs)

    def _noted(self, name: str, method: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.monotonic_ns()
        result = method(*args, **kwargs)
        self.ran.setdefault(name, []).append((began, time.monotonic_ns()))
        return result


def tokenizer() -> PreTrainedTokenizerFast:
    """Make a tokenizer of whole words."""
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def trainer(settings: dict[str, Any], reward: Any, kind: Any = Trainer) -> Any:
    """Make a trainer of a random model."""
    torch.manual_seed(0)
    new = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, pad_token_id=0, eos_token_id=1, bos_token_id=None,
        )
    )  # fmt: skip
    new.save_pretrained("model")  # from where TRL loads the reference model too
    model = LlamaForCausalLM.from_pretrained(os.path.abspath("model"))
    prompts = Dataset.from_dict({"prompt": [f"w{number} w{number + 1}" for number in range(16)]})
    given = {
        "output_dir": "checkpoints", "use_cpu": True, "report_to": [], "max_steps": 4, "learning_rate": 1e-2,
        "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "num_generations": 4,
        "max_completion_length": 8, "logging_steps": 1, "save_strategy": "no", "disable_tqdm": True, **settings,
    }  # fmt: skip
    return kind(
        model=model, reward_funcs=reward, args=GRPOConfig(**given), train_dataset=prompts,
        eval_dataset=prompts.select(range(4)), processing_class=tokenizer(),
    )  # fmt: skip


def train(settings: dict[str, Any]) -> dict[str, Any]:
    """Train, and give the losses, rewards, samples, weights and random states, and when TRL did what."""
    rewards: list[list[str]] = []
    samples = hashlib.sha256()

    def reward(completions: list[str], **_others: Any) -> list[float]:
        if settings is SETTINGS["broken reward"] and len(rewards) == 2:
            raise RuntimeError("the reward broke")
        samples.update(repr(completions).encode())
        found = [len(set(text.split())) / 8 for text in completions]
        rewards.append([each.hex() for each in found])
        return found

    made = trainer(settings, reward)
    made.train()
    weights = hashlib.sha256()
    for name, tensor in sorted(made.model.state_dict().items()):
        weights.update(name.encode() + tensor.float().numpy().tobytes())
    states = repr((torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()))
    computed = {
        "losses": made.losses, "rewards": rewards, "samples": samples.hexdigest(), "weights": weights.hexdigest(),
        "random": hashlib.sha256(states.encode()).hexdigest(), "steps": made.state.global_step,
    }  # fmt: skip
    return {"pid": os.getpid(), "computed": computed, "ran": made.ran}


def main(names: list[str]) -> None:
    """Train with each of these settings; the exit status is 1 if one of these trainings failed."""
    failed = False
    gc.freeze()  # else each child's first collection copies all that was imported: it takes as long as its training
    for name in names:
        if len(names) > 1:
            pid = os.fork()
            if pid:
                failed |= os.waitpid(pid, 0)[1] != 0
                continue
            os.environ["PROFWIN_RUN"] = name.replace(",", "").replace(" ", "-")
        os.makedirs(name)
        os.chdir(name)
        with open("outcome.json", "w", encoding="utf-8") as file:
            json.dump(train(SETTINGS[name]), file)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(0)  # taking down all that was imported would take as long, too
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1:])

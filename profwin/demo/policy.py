"""The policy of the demo, a transformer of two layers, and what GRPO computes with it.

Imports torch, so only the processes that generate or train import this module; the driver does not.
"""

from __future__ import annotations

import pickle

import torch
from torch import Tensor, nn
from torch.nn import functional

from profwin.demo.task import LONGEST_ANSWER, VOCABULARY

__all__ = ["Policy", "clipped_loss", "group_advantages", "packed", "token_log_probs", "unpack"]

LENGTH = 1 + LONGEST_ANSWER


class Layer(nn.Module):
    """One pre-norm transformer layer with causal attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, hidden: Tensor) -> Tensor:
        """Map ``[batch, length, width]`` to the same shape."""
        batch, length, width = hidden.shape
        parts = self.query_key_value(self.attention_norm(hidden))
        query, key, value = parts.view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        result: Tensor = hidden + self.feed_forward(hidden)
        return result


class Policy(nn.Module):
    """Next-token logits of a token sequence that begins with its prompt."""

    def __init__(self, width: int = 32, layers: int = 2, heads: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, VOCABULARY))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids ``[batch, length]`` to logits ``[batch, length, vocabulary]``."""
        hidden = self.tokens(tokens) + self.places[: tokens.shape[1]]
        logits: Tensor = self.head(self.layers(hidden))
        return logits


def packed(policy: nn.Module) -> bytes:
    """Return a policy's weights: a pickled dict of numpy arrays."""
    return pickle.dumps({name: tensor.numpy() for name, tensor in policy.state_dict().items()})


def unpack(policy: nn.Module, weights: bytes) -> None:
    """Give a policy the weights that :func:`packed` returned for another."""
    arrays = pickle.loads(weights)
    policy.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


def token_log_probs(policy: nn.Module, tokens: Tensor) -> Tensor:
    """Return the log-probability of each token after the prompt, ``[batch, length - 1]``."""
    log_probs = functional.log_softmax(policy(tokens[:, :-1]), dim=-1)
    return log_probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def group_advantages(rewards: Tensor, group: int) -> Tensor:
    """Return each sample's reward relative to its group (``group`` samples), in standard deviations."""
    grouped = rewards.view(-1, group)
    centred = grouped - grouped.mean(dim=1, keepdim=True)
    return (centred / (grouped.std(dim=1, keepdim=True) + 1e-4)).reshape(-1)


def clipped_loss(
    log_probs: Tensor,
    old: Tensor,
    reference: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip: float,
    kl_weight: float,
) -> Tensor:
    """Return GRPO's loss, a token's mean: PPO's clipped gain and the divergence from the reference."""
    ratio = (log_probs - old).exp()
    advantage = advantages[:, None]
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    gap = reference - log_probs
    divergence = gap.exp() - gap - 1
    loss = (kl_weight * divergence - gain) * mask
    return loss.sum() / mask.sum()

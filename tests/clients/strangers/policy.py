"""A policy that picks one of eight numbers; with torch if it is installed, else with plain floats."""

from __future__ import annotations

import math
import random

try:
    import torch
except ImportError:
    torch = None


class Policy:
    """Eight logits, and a generator of random numbers."""

    def __init__(self, seed=0, rate=0.5):
        self.random = random.Random(seed)
        self.rate = rate
        self.logits = [0.0] * 8 if torch is None else torch.zeros(8)

    def probabilities(self):
        """Return the probability of each number."""
        if torch is not None:
            return torch.softmax(self.logits, 0).tolist()
        exponentials = [math.exp(logit) for logit in self.logits]
        return [each / sum(exponentials) for each in exponentials]

    def sample(self, count):
        """Return numbers, drawn at random."""
        return self.random.choices(range(8), self.probabilities(), k=count)

    def log_probs(self, numbers):
        """Return the logarithms of the probabilities of numbers."""
        probabilities = self.probabilities()
        return [math.log(probabilities[number]) for number in numbers]

    def update(self, numbers, advantages):
        """Climb the gradient once; return the loss before it."""
        probabilities = self.probabilities()
        loss = -sum(a * math.log(probabilities[n]) for n, a in zip(numbers, advantages, strict=True)) / len(numbers)
        gradient = [
            sum(a * ((n == each) - probabilities[each]) for n, a in zip(numbers, advantages, strict=True))
            / len(numbers)
            for each in range(8)
        ]
        if torch is None:
            self.logits = [logit + self.rate * slope for logit, slope in zip(self.logits, gradient, strict=True)]
        else:
            self.logits = torch.add(self.logits, torch.tensor(gradient), alpha=self.rate)
        return loss


def advantages_of(rewards):
    """Return how much better than their mean rewards are."""
    mean = sum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]

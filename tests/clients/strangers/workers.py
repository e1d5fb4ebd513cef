"""A worker that trains its share of the samples."""

from policy import Policy


class Worker:
    def __init__(self, rank):
        self.rank = rank
        self.policy = Policy(seed=30 + rank)

    def update(self, samples, advantages):
        return self.policy.update(samples, advantages)

"""Two ranks or more, each with samples of its own and the same weights: an all-reduce in each stage."""

import os

import torch
import torch.distributed as distributed
from policy import Policy, advantages_of


class Worker:
    def __init__(self, rank):
        self.rank = rank
        self.policy = Policy(seed=10 + rank)
        self.value = torch.zeros(())

    def generate(self, iteration):
        return self.policy.sample(16)

    def share(self, samples):
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, samples)
        return [sample for samples in gathered for sample in samples]

    def update_critic(self, samples):
        self.value = torch.add(self.value, 0.5 * (sum(samples) / len(samples) - self.value))
        return float(self.average(self.value))

    def update_actor(self, samples, value):
        loss = self.policy.update(samples, advantages_of([sample - value for sample in samples]))
        self.policy.logits = self.average(self.policy.logits)
        return loss

    def average(self, tensor):
        distributed.all_reduce(tensor)
        return tensor / distributed.get_world_size()

    def run(self, iterations):
        for iteration in range(1, iterations + 1):
            samples = self.share(self.generate(iteration))
            loss = self.update_actor(samples, self.update_critic(samples))
            weights = [float(weight) for weight in self.policy.logits]
            print(f"rank {self.rank} iteration {iteration} loss {loss} weights {weights}\n", end="", flush=True)


def main():
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    Worker(int(os.environ["RANK"])).run(6)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()

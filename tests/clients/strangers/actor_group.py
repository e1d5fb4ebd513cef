"""A driver that draws, two actors of a class that a module has, and one of a class of the script's own."""

import ray
from policy import Policy, advantages_of
from workers import Worker


@ray.remote(num_cpus=0)
class Critic:
    def __init__(self):
        self.value = 0.0

    def learn(self, samples):
        self.value += 0.5 * (sum(samples) / len(samples) - self.value)
        return self.value


class Driver:
    def __init__(self):
        remote = ray.remote(num_cpus=0)(Worker)
        self.workers = [remote.remote(rank) for rank in range(2)]
        self.critic = Critic.remote()
        self.policy = Policy(seed=20)

    def rollout(self, step):
        return self.policy.sample(16)

    def train(self, step):
        samples = self.rollout(step)
        value = ray.get(self.critic.learn.remote(samples))
        advantages = advantages_of([sample - value for sample in samples])
        halves = [(samples[rank::2], advantages[rank::2]) for rank in range(2)]
        losses = ray.get([worker.update.remote(*half) for worker, half in zip(self.workers, halves, strict=True)])
        print("step", step, "value", value, "losses", losses)


def main():
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 * 2**20, logging_level="ERROR")
    try:
        driver = Driver()
        for step in range(1, 6):
            driver.train(step)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()

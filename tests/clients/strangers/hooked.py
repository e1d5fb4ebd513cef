"""A trainer that calls methods of its own at each turn, for subclasses to override."""

from policy import Policy, advantages_of


class Trainer:
    """Draws, trains, and now and then evaluates with the same method that draws."""

    def __init__(self, steps, seed=2):
        self.policy = Policy(seed)
        self.steps = steps
        self.global_step = 0
        self.training = True
        self.losses = []

    def fit(self):
        for _ in range(self.steps):
            self.on_step_begin()
            samples = self.generate(16)
            advantages = advantages_of([self.reward(sample) for sample in samples])
            self.losses.append(self.train_actor(samples, advantages))
            self.on_step_end()
        return self.losses

    def on_step_begin(self):
        self.global_step += 1

    def on_step_end(self):
        self.training = False
        print("step", self.global_step, "evaluated", sum(self.generate(8)))
        self.training = True

    def reward(self, sample):
        raise NotImplementedError

    def generate(self, count):
        return self.policy.sample(count)

    def train_actor(self, samples, advantages):
        return self.policy.update(samples, advantages)

"""Runs the trainer with a task of its own."""

from hooked import Trainer


class EvenTrainer(Trainer):
    def reward(self, sample):
        return float(sample % 2 == 0)

    def on_step_end(self):
        super().on_step_end()
        print("loss", self.losses[-1])


if __name__ == "__main__":
    trainer = EvenTrainer(steps=5)
    print("losses", trainer.fit())
    print("weights", list(map(float, trainer.policy.logits)))

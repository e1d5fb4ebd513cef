"""Teaches a policy to pick large numbers: one script, its state in globals."""

import sys

from policy import Policy, advantages_of

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
policy = Policy(seed=1)
losses = []


def rollout(step, count=16):
    samples = policy.sample(count)
    print("step", step, "drew", samples)
    return samples


def old_log_probs(samples):
    return policy.log_probs(samples)


def update(samples, advantages):
    losses.append(policy.update(samples, advantages))
    return losses[-1]


def evaluate():
    return sum(policy.sample(50)) / 50


for step in range(1, STEPS + 1):
    samples = rollout(step)
    before = old_log_probs(samples)
    advantages = advantages_of([float(sample) for sample in samples])
    for half in (samples[:8], advantages[:8]), (samples[8:], advantages[8:]):
        print("loss", update(*half), "after", sum(before))
    print("mean", evaluate())

print("losses", losses)
print("weights", list(map(float, policy.logits)))

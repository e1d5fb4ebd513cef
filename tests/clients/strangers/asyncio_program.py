"""Draws in the event loop, many requests at a time, and trains in a thread, so that the loop stays free."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from policy import Policy, advantages_of


class Program:
    def __init__(self, steps):
        self.policy = Policy(seed=3)
        self.steps = steps
        self.beats = 0
        self.losses = []

    async def request(self, count):
        await asyncio.sleep(0.001)
        return self.policy.sample(count)

    async def generate(self, step, *, requests=4):
        answers = await asyncio.gather(*(self.request(4) for _ in range(requests)))
        return [sample for answer in answers for sample in answer]

    def update(self, samples):
        advantages = advantages_of([float(-sample) for sample in samples])
        return self.policy.update(samples, advantages)

    async def heart(self):
        while True:
            self.beats += 1
            await asyncio.sleep(0.001)

    async def run(self):
        heart = asyncio.create_task(self.heart())
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(max_workers=2) as pool:
            for step in range(1, self.steps + 1):
                samples = await self.generate(step)
                loss = await loop.run_in_executor(pool, self.update, samples)
                self.losses.append(loss)
                print("step", step, "drew", samples, "loss", loss)
        heart.cancel()
        assert self.beats > self.steps


async def main():
    program = Program(5)
    await program.run()
    print("losses", program.losses)
    print("weights", list(map(float, program.policy.logits)))


if __name__ == "__main__":
    asyncio.run(main())

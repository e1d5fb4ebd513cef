"""A small trainer, written to a file of its own by each test that patches it: ``source()`` of its text."""

from __future__ import annotations

import functools


def noted(function):
    """Decorate as people do."""

    @functools.wraps(function)
    def around(*args, **kwargs):
        return function(*args, **kwargs)

    around.attrs_3141562937 = {"kept": True}
    return around


class Base:
    """What others inherit from."""

    def inherited(self, x):
        """Return it."""
        return ("inherited", x)


class Trainer(Base):
    """A trainer with one method of each kind."""

    def __init__(self, step=2):
        self.step = step
        self.config = {"steps": [2], "collect": "stage"}
        self.evaluating = False

    def generate(self, prompts, *, count=1):
        """Generate."""
        return prompts * count

    def update(self, batch):
        """Train."""
        return ("updated", batch)

    @noted
    def decorated(self, batch):
        """Train, decorated."""
        return ("decorated", batch)

    async def sync(self, version):
        """Bring weights."""
        return ("synced", version)

    def batches(self, n):
        """Yield."""
        yield from range(n)

    @staticmethod
    def loss(x):
        """Be static."""
        return ("loss", x)

    @classmethod
    def make(cls, step):
        """Be a class method."""
        return cls(step)

    def begin(self):
        """Begin a step."""

    def collected(self):
        """Have the samples; say how many."""
        return {"count": 4}

    def end(self):
        """End a step."""

    def fail(self, error):
        """Raise it."""
        raise error

    @property
    def size(self):
        """Be a property."""
        return 1


def free(batch, *, weight=1):
    """Be a function of the module."""
    return ("free", batch, weight)

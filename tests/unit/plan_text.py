"""A plan that has something in every part."""

from __future__ import annotations

PLAN = """
format = 1
name = "mine"
description = "A trainer: generation and update in one process"

[[package]]
name = "trainer-lib"
versions = ">=1.16,<2"

[configure]
target = "trainer.main:Trainer.fit"
[configure.settings]
steps = "self.config.steps"
roles = ["self.config.role", { path = "config.roles", default = "actor", unless = "config.all", prefix = "my-" }]
collect = { path = "self.config.discrete", map = { true = "stage", false = "step" } }

[[loop]]
name = "sync"
owner = "self"
mode = "separate"
engine = "self.llm"
devices = ["pretend:0"]
hybrid_devices = { path = "self.devices", prefix = "pretend:" }

[[patch]]
target = "trainer.main:Trainer._generate"
role = "window"
step = { path = "self.state.step", plus = 1 }
engine = "self.llm"
when = "self.model.training"
unless = [{ path = "mode", equals = "eval" }, { path = "self.kinds.0", among = [1, true] }]

[[patch]]
target = "trainer.main:*.update"
role = "stage"
every_step = false

[[patch]]
target = "trainer.main:Trainer.sync"
role = "weight_sync"
version = "self.version"
window = false
optional = true

[[patch]]
target = "trainer.main:Trainer.on_sample_end"
role = "events"
loop = "sync"
before = ["samples_in_hand"]
after = [{ event = "step_begins", number = "self.step", when = "return.ok" }]
error = ["loop_fails"]
"""

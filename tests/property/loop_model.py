"""What the property tests of loops share: what actions do to devices, and what events say of loops with two parts."""

from __future__ import annotations

from profwin.loop import BeginStep, CloseWindow, EndStep, OpenWindow, Pause

NUMBERED = ("step_begins", "weights_about_to_sync", "weights_synced")


class Recorder:
    """What the actions do: the windows of each part, step and pause in force, and every breach of the order."""

    def __init__(self):
        self.windows, self.step, self.paused = {}, None, False
        self.opened, self.reasons, self.breaches = 0, [], []
        self.next_failure = None

    @property
    def window(self):
        """The step of the window of the hybrid part, or None."""
        return self.windows.get("hybrid")

    @property
    def idle(self):
        """Whether nothing is open, begun or paused, and nothing went wrong."""
        return (self.windows, self.step, self.paused, self.breaches) == ({}, None, False, [])

    def __call__(self, action):
        """Perform one action."""
        if isinstance(action, OpenWindow):
            self.expect(action.part not in self.windows, "a second open", action)
            self.expect(self.step == action.step, "a window outside of its step", action)
            self.expect(not self.paused, "a window in a pause", action)
            self.windows[action.part] = action.step
            self.opened += 1
        elif isinstance(action, CloseWindow):
            self.expect(self.windows.pop(action.part, None) == action.step, "a close without its open", action)
            self.reasons.append(action.reason)
        elif isinstance(action, BeginStep):
            self.expect(self.step is None and not self.windows, "a step inside another", action)
            self.step = action.step
        elif isinstance(action, EndStep):
            self.expect(self.step == action.step and not self.windows, "the end of another step", action)
            self.step = None
        else:
            self.expect(self.paused is not isinstance(action, Pause), "a second pause or resume", action)
            self.paused = isinstance(action, Pause)
        failure, self.next_failure = self.next_failure, None
        if failure is not None:
            raise failure

    def expect(self, truth, breach, action):
        """Note a breach; raising it would not do, since the loop contains what actions raise."""
        if not truth:
            self.breaches.append(f"{breach}: {action} with windows {self.windows}, step {self.step}")


class Model:
    """What the events of a loop with standalone and hybrid devices have said so far.

    Attributes:
        step: the one under way, or None.
        lent: whether the hybrid devices generate.
        validating: whether a validation runs.
    """

    def __init__(self, mode):
        self.mode, self.step, self.lent, self.validating, self.newest = mode, None, False, False, -1

    def hear(self, event, number=None):
        """Take an event in."""
        if self.mode == "fully_async" and event in NUMBERED:
            step = number if event == "step_begins" else number + 1
            if step >= self.newest and event == "weights_about_to_sync":
                self.step = None
            elif step >= self.newest:
                self.step, self.newest, self.validating = step, step, False
        elif event == "step_begins":
            self.step, self.validating = number, False
        elif event == "step_ends":
            self.step = None
        elif event in ("loop_fails", "loop_ends"):
            self.step, self.lent, self.validating, self.newest = None, False, False, -1
        elif event in ("validation_begins", "validation_ends"):
            self.validating = event == "validation_begins"
        elif event in ("devices_to_training", "devices_to_generation"):
            self.lent = event == "devices_to_generation"

    def windows(self):
        """Return the windows that must be open."""
        if self.step is None or self.validating:
            return {}
        return {"standalone": self.step} | ({"hybrid": self.step} if self.lent else {})

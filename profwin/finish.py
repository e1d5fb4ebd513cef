"""The finish command: run once, when the last selected step is done or the run ends."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

    from profwin.session import Session

__all__ = ["FinishCommand"]

_PATIENCE = 60.0


class FinishCommand:
    """Run a shell command beside the training, its output in ``finish_command.log`` of the run's directory.

    Args:
        session: whose setting it is.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._process: subprocess.Popen[bytes] | None = None
        self._done = False

    def start(self) -> None:
        """Start the command, if there is one, this process began the run, and it did not run yet. Never raises."""
        session = self._session
        command = session.settings.finish_command
        if self._done or command is None or not session.run.root:
            return
        self._done = True
        import subprocess

        directory = session.run.directory
        try:
            os.makedirs(directory, exist_ok=True)
            with open(os.path.join(directory, "finish_command.log"), "ab") as log:
                self._process = subprocess.Popen(
                    command, shell=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env={**os.environ, "PROFWIN_RUN_DIRECTORY": directory},
                )  # fmt: skip
        except OSError as error:
            session.finding("finish-command", f"the finish command could not be started: {error}")

    def wait(self) -> None:
        """Wait for the command, for up to a minute, then end it; what went wrong becomes a finding."""
        process, self._process = self._process, None
        if process is None:
            return
        import subprocess

        try:
            status = process.wait(_PATIENCE)
            problem = None if status == 0 else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            problem = f"was ended after {_PATIENCE:.0f} s"
        if problem is not None:
            self._session.finding("finish-command", f"the finish command {problem}; see finish_command.log")

"""An actor of the demo, which a driver asks as it asks a child process."""

from __future__ import annotations

from importlib import import_module

from profwin.demo.child import ChildError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Member", "ask_all"]


class Member:
    """Ask an actor; the counterpart of :class:`profwin.demo.child.Child`.

    Args:
        name: in messages.
        handle: of the actor.
    """

    def __init__(self, name: str, handle: Any) -> None:
        self.name, self.handle = name, handle

    def call(self, request: str, **arguments: Any) -> Any:
        """Call a method and return what it returns.

        Raises:
            ChildError: it raised an error, or the actor is gone.
        """
        return self.receive(self.send(request, **arguments))

    def send(self, request: str, **arguments: Any) -> Any:
        """Call a method without waiting; return what to ask :meth:`receive` for its answer with."""
        return getattr(self.handle, request).remote(**arguments)

    def receive(self, sent: Any, seconds: float | None = None) -> Any:
        """Wait for an answer.

        Args:
            sent: what :meth:`send` returned.
            seconds: how long; None: as long as it takes.

        Raises:
            ChildError: the method raised an error, the actor is gone, or there is no answer in time.
        """
        ray: Any = import_module("ray")
        try:
            return ray.get(sent, timeout=seconds)
        except ray.exceptions.GetTimeoutError:
            raise ChildError(self.name, f"has not answered within {seconds:.0f} s") from None
        except ray.exceptions.RayTaskError as error:
            raise ChildError(self.name, f"{type(error.cause).__name__}: {error.cause}") from error
        except ray.exceptions.RayError as error:
            raise ChildError(self.name, f"has ended ({' '.join(str(error).split())[:200]})") from error


def ask_all(members: Sequence[Member], request: str, **arguments: Any) -> list[Any]:
    """Call a method of several actors at once and return their answers.

    Raises:
        ChildError: one of them raised an error, or is gone.
    """
    sent = [member.send(request, **arguments) for member in members]
    return [member.receive(each) for member, each in zip(members, sent, strict=True)]

"""Whether Ray is there."""

from __future__ import annotations

from profwin.errors import ProfwinError

__all__ = ["needs_ray"]


def needs_ray() -> None:
    """See to it that Ray can be imported, without importing it.

    Raises:
        ProfwinError: it is not installed.
    """
    import sys
    from importlib.util import find_spec

    if "ray" in sys.modules and sys.modules["ray"] is not None:
        return
    try:
        found = find_spec("ray")
    except ValueError:  # something stands in its place that is no module
        found = None
    if found is None:
        raise ProfwinError("profwin.ray needs Ray, which is not installed here: pip install ray")

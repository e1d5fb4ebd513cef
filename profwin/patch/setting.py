"""Settings of ``[configure]``: where each is found in a call."""

from __future__ import annotations

from profwin.patch.value import PathError, Reader, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.patch.plan import Value
    from profwin.patch.value import Arguments, Keywords, Parameters

__all__ = ["Setting"]

_LISTS = ("backend", "roles", "stages", "devices", "torch_options", "npu_options", "memory_options")
"""Settings that are lists of names."""


class Setting:
    """Reads one setting from a call.

    Args:
        name: of the setting.
        places: where it is found. Of several, those that lead nowhere give nothing; then the first that gives
            something counts or, where the setting is a list of names, all do.
        parameters: of the target.

    Raises:
        PathError: the target lacks a parameter at which a path begins.
    """

    def __init__(self, name: str, places: Value | tuple[Value, ...], parameters: Parameters) -> None:
        self.name = name
        self._several = isinstance(places, tuple)
        self._readers = [Reader(place, parameters) for place in (places if isinstance(places, tuple) else (places,))]

    def __call__(self, args: Arguments, kwargs: Keywords) -> Any:
        """Return the setting as ``profwin.configure`` takes it; None where it is not given.

        Raises:
            PathError: its only place leads nowhere.
        """
        found = [value for reader in self._readers if (value := self._read(reader, args, kwargs)) is not None]
        if not found:
            return None
        if self.name not in _LISTS:
            return found[0]
        names = [name for value in found for name in (value if isinstance(value, list | tuple) else (value,))]
        return ",".join(map(str, names))

    def _read(self, reader: Reader, args: Arguments, kwargs: Keywords) -> Any:
        try:
            value = plain(reader(args, kwargs))
        except PathError:
            if self._several:
                return None
            raise
        return None if isinstance(value, list | tuple | str) and not value else value

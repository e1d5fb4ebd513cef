"""Imitates ``npu/mstx.py``: errors are swallowed, a wrong message or domain warns and gives 0."""

import functools
import warnings

from torch_npu import _C


def _no_exception_func(default_ret=None):
    def decorator(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            try:
                return func(*args, **kwargs)
            except Exception as ex:
                print(f"[ERROR] Call {func.__name__} failed. Exception: {ex}", flush=True)
                return default_ret

        return wrapper

    return decorator


class mstx:
    """Ranges and marks."""

    @staticmethod
    @_no_exception_func()
    def range_start(message: str, stream=None, domain: str = "default") -> int:
        """Begin a range; 0 where that fails."""
        if not message or not isinstance(message, str):
            warnings.warn("Invalid message for mstx.range_start function.", stacklevel=2)
            return 0
        if not domain or not isinstance(domain, str):
            warnings.warn("Invalid domain for mstx.range_start func.", stacklevel=2)
            return 0
        return _C.range_start(message, domain)

    @staticmethod
    @_no_exception_func()
    def range_end(range_id: int, domain: str = "default"):
        """End a range."""
        if not isinstance(range_id, int):
            warnings.warn("Invalid message for mstx.range_end function.", stacklevel=2)
            return
        _C.range_end(range_id, domain)

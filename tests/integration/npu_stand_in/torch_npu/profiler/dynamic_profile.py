"""Imitates ``profiler/dynamic_profile.py``: its state, of which there is one in the process."""

from .analysis.prof_common_func._constant import Singleton


@Singleton
class _DynamicProfile:
    def __init__(self) -> None:
        self.prof = None
        self.repeat_init = False

    def init(self):
        """Begin to listen for what is to be recorded."""
        self.repeat_init = True


def init(path: str):
    """Begin to listen for what is to be recorded."""
    _DynamicProfile().init()

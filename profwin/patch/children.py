"""Which children of COMMAND are patched: the rule of ``--children``, checked by the launcher.

Each process decides for itself when it starts, from its own command line: :func:`profwin_boot.chosen`.
"""

from __future__ import annotations

from profwin.errors import SettingError

__all__ = ["parse_children"]


def parse_children(text: str) -> str:
    """Return the rule as the processes are told it.

    Args:
        text: ``all``; ``none``: only COMMAND itself, also if it executes itself anew; or patterns of ``*`` and ``?``,
            separated by commas, after ``!`` those that are not meant.

    Raises:
        SettingError: there is no pattern, or an empty one.
    """
    patterns = [pattern.strip() for pattern in text.split(",")]
    allowed = "'all', 'none', or patterns like 'train*.py,default_worker.py' or '!sandbox*', separated by commas"
    if not all(pattern.removeprefix("!").strip() for pattern in patterns):
        raise SettingError("children", text, allowed)
    if len(patterns) > 1 and {"all", "none"} & set(patterns):
        raise SettingError("children", text, f"{allowed}; 'all' and 'none' stand alone")
    return ",".join(patterns)

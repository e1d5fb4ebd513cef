"""Settings: parsed from arguments and ``PROFWIN_*`` variables, validated once, never changed."""

from __future__ import annotations

import os

from profwin.errors import SettingError
from profwin.options import memory_options, npu_options, options_text, torch_options
from profwin.selection import parse_names, parse_ranks, parse_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from profwin.selection import Selection

__all__ = ["Settings"]

_OFF = ("", "none", "off")


def _choice(*allowed: str) -> Callable[[str, Any], str]:
    def parse(setting: str, value: Any) -> str:
        if value not in allowed:
            raise SettingError(setting, value, " or ".join(repr(choice) for choice in allowed))
        return str(value)

    return parse


def _flag(setting: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        return value.lower() in ("1", "true", "yes", "on")
    raise SettingError(setting, value, "True or False (in the environment: 1 or 0)")


def _seconds(setting: str, value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < 86_400:
        raise SettingError(setting, value, "seconds, from 0 to 86400")
    return seconds


def _whole(setting: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(value, (bool, float)):
        raise SettingError(setting, value, "a whole number from 0")
    return number


def _text(setting: str, value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise SettingError(setting, value, "a non-empty string")
    return value


def _name(setting: str, value: Any) -> str:
    text = _text(setting, value)
    if "/" in text or text.startswith(".") or len(text) > 120 or not text.isprintable():
        raise SettingError(setting, value, "up to 120 printable characters without '/', not starting with '.'")
    return text


def _list(setting: str, value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    try:
        parts = tuple(item.strip() for item in items)
    except (TypeError, AttributeError):
        raise SettingError(setting, value, "names, separated by commas, or a list of them") from None
    if not parts or not all(parts):
        raise SettingError(setting, value, "names, separated by commas, or a list of them")
    return parts


def _steps(setting: str, value: Any) -> Selection | None:
    return None if isinstance(value, str) and value.lower() in _OFF else parse_steps(value, setting=setting)


# Name, parser, default. The variable is PROFWIN_ and the name in capitals.
_TABLE: tuple[tuple[str, Callable[[str, Any], Any], Any], ...] = (
    ("steps", _steps, None),
    ("backend", _list, ("record",)),
    ("output", _text, "outputs/profwin"),
    ("collect", _choice("stage", "step"), "stage"),
    ("continuous", _flag, False),
    ("ranks", lambda setting, value: parse_ranks(value, setting=setting), None),
    ("roles", lambda setting, value: parse_names(value, setting=setting), None),
    ("stages", lambda setting, value: parse_names(value, setting=setting), None),
    ("on_busy", _choice("wait", "skip"), "wait"),
    ("wait_budget", _seconds, 30.0),
    ("finish_command", _text, None),
    ("strict", _flag, False),
    ("role", _name, None),
    ("rank", _whole, None),
    ("devices", _list, None),
    ("lock_dir", _text, None),
    ("run", _name, None),
    ("trace_format", _choice("json", "json.gz"), "json.gz"),
    ("torch_options", torch_options, None),
    ("npu_options", npu_options, None),
    ("memory_options", memory_options, None),
)


class Settings:
    """All settings of a session; the attributes are the arguments of :func:`profwin.configure`.

    Args:
        arguments: settings by name; one that is None counts as not given.
        environment: where the ``PROFWIN_*`` variables of settings that are not given are looked up. A variable that is
            empty counts as not set.

    Raises:
        SettingError: naming the setting, the value and what is allowed.
    """

    steps: Selection | None
    backend: tuple[str, ...]
    output: str
    collect: str
    continuous: bool
    ranks: Selection | None
    roles: Selection | None
    stages: Selection | None
    on_busy: str
    wait_budget: float
    finish_command: str | None
    strict: bool
    role: str | None
    rank: int | None
    devices: tuple[str, ...] | None
    lock_dir: str | None
    run: str | None
    trace_format: str
    torch_options: dict[str, bool] | None
    npu_options: dict[str, Any] | None
    memory_options: dict[str, Any] | None

    def __init__(self, arguments: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        for name, parse, default in _TABLE:
            value = arguments.get(name)
            setting = name
            if value is None and environment.get(f"PROFWIN_{name.upper()}"):
                setting = f"PROFWIN_{name.upper()}"
                value = environment[setting]
            setattr(self, name, default if value is None else parse(setting, value))
        if self.rank is None and environment.get("RANK", "").isdigit():
            self.rank = int(environment["RANK"])
        self.output = os.path.abspath(self.output)
        if self.continuous and self.collect != "step":
            raise SettingError(
                "continuous", True, "it together with collect='step': stages are never joined across steps"
            )

    def variables(self) -> dict[str, str]:
        """Return the ``PROFWIN_*`` variables that give another process the same settings; not its role, rank or run.

        Raises:
            SettingError: a step selection that is a callable, which cannot travel in a variable.
        """
        found = {}
        for name, _parse, default in _TABLE:
            value = getattr(self, name)
            if name in ("role", "rank", "run") or value is None or value == default:
                continue
            if isinstance(value, bool):
                text = str(int(value))
            elif isinstance(value, tuple):
                text = ",".join(value)
            elif isinstance(value, dict):
                text = options_text(value)
            elif hasattr(value, "text"):
                try:
                    text = value.text()
                except ValueError as error:
                    raise SettingError(
                        name, value, "a selection in text form where other processes must know it"
                    ) from error
            else:
                text = str(value)
            found[f"PROFWIN_{name.upper()}"] = text
        return found

    def describe(self) -> dict[str, object]:
        """Return the settings as JSON values, for the journal and the manifest."""
        described: dict[str, object] = {}
        for name, _parse, _default in _TABLE:
            value = getattr(self, name)
            described[name] = value if isinstance(value, (bool, int, float, str, dict, type(None))) else str(value)
            if isinstance(value, tuple):
                described[name] = list(value)
        return described

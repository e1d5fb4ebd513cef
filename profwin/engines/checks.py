"""Checks of what an engine's adapter is made with."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from urllib.parse import urlsplit

import httpx

from profwin.errors import SettingError

__all__ = [
    "checked_json",
    "checked_names",
    "checked_number",
    "checked_optional",
    "checked_timeout",
    "checked_token",
    "checked_url",
]


def checked_url(url: object) -> str:
    """Return the URL of a server without a slash at its end.

    Raises:
        SettingError: it is not ``http://`` or ``https://`` with a host and perhaps a port and a path.
    """
    allowed = "http://HOST:PORT or https://HOST:PORT, without user, password, query and fragment"
    if not isinstance(url, str):
        raise SettingError("url", url, allowed)
    try:
        parts = urlsplit(url)
        httpx.URL(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx.InvalidURL):
        parts, good = None, False
    plain = url.isascii() and url.isprintable() and " " not in url and not {"?", "#", "@", "\\"} & set(url)
    if parts is None or not good or not plain:
        # What stands before an @ may be a password.
        raise SettingError("url", url.rpartition("@")[2] if "@" in url else url, allowed)
    return url.rstrip("/")


def checked_token(token: object) -> str | None:
    """Return a token, or None.

    Raises:
        SettingError: it cannot stand in a header. It is not shown.
    """
    if token is None:
        return None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token or " " in token:
        raise SettingError("token", "(not shown)", "a text of printable ASCII characters without spaces, or None")
    return token


def checked_number(name: str, value: object, least: int) -> int:
    """Return a whole number.

    Raises:
        SettingError: it is none, or too small.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SettingError(name, value, f"whole numbers from {least}")
    return value


def checked_optional(name: str, value: object, least: int) -> int | None:
    """Return a whole number, or None. Raises what :func:`checked_number` raises."""
    return None if value is None else checked_number(name, value, least)


def checked_timeout(name: str, value: object) -> float:
    """Return a number of seconds.

    Raises:
        SettingError: it is none, or not above 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise SettingError(name, value, "a number of seconds above 0")
    return float(value)


def checked_json(name: str, value: object) -> dict[str, object] | None:
    """Return a dict of JSON values, or None.

    Raises:
        SettingError: it is neither.
    """
    if value is None:
        return None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise SettingError(name, value, "a dict of JSON values") from None
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise SettingError(name, value, "a dict of JSON values")
    return value


def checked_names(name: str, value: object) -> list[str] | None:
    """Return a list of names, or None.

    Raises:
        SettingError: it is neither, or empty.
    """
    if value is None:
        return None
    names = list(value) if not isinstance(value, str) and isinstance(value, Iterable) else []
    if not names or not all(isinstance(each, str) and each for each in names):
        raise SettingError(name, value, "a list of names such as CPU and GPU")
    return names

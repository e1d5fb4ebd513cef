"""The fields of a plan's tables: each read once, checked, and named in full where it is wrong."""

from __future__ import annotations

import math
import re

from profwin.errors import PlanError
from profwin.patch.nearest import nearest
from profwin.patch.plan import Condition, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from profwin.patch.plan import Scalar

__all__ = ["Table"]

_NAME = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"[\w-]+")
_PATTERN = re.compile(r"[\w*?]+")
_LONGEST = 300
_PATH = "write parameter.attribute.key: names separated by dots, of which the first is a parameter of the target"


class Table:
    """One table of a plan.

    Args:
        plan: the plan's name, for errors.
        place: where the table stands: ``patch[0]``; empty: the whole plan.
        value: what stands there.
        keys: the keys that it may have.

    Raises:
        PlanError: it is no table, or has another key. All methods raise this, naming the field.
    """

    def __init__(self, plan: str, place: str, value: object, keys: Iterable[str]) -> None:
        self.plan, self.place = plan, place
        if not isinstance(value, dict):
            raise PlanError(plan, place, value, "is no table", "write key = value pairs")
        keys = tuple(keys)
        for key in value:
            if key not in keys:
                shown = key if isinstance(key, str) and key.isprintable() and len(key) < 60 else ascii(key)[:60]
                raise PlanError(plan, self.at(shown), value[key], "is no known key", nearest(key, keys))
        self._values: dict[str, Any] = {key: each for key, each in value.items() if each is not None}

    def at(self, key: str) -> str:
        """Return the full name of a field."""
        return f"{self.place}.{key}" if self.place else key

    def error(self, key: str, value: object, problem: str, remedy: str) -> PlanError:
        """Return an error about a field."""
        return PlanError(self.plan, self.at(key), value, problem, remedy)

    def given(self, key: str) -> bool:
        """Return whether a field is there."""
        return key in self._values

    def get(self, key: str) -> Any:
        """Return what stands in a field, unchecked; None where it is not there."""
        return self._values.get(key)

    def require(self, key: str, why: str) -> None:
        """Raise unless a field is there."""
        if key not in self._values:
            raise PlanError(self.plan, self.at(key), None, "is not given", why)

    def text(self, key: str) -> str | None:
        """Return a text of printable characters, or None where the field is not there."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > _LONGEST:
            raise self.error(key, value, "is no text", f"write up to {_LONGEST} printable characters in quotes")
        return value

    def choice(self, key: str, known: Iterable[str]) -> str:
        """Return one of the known names."""
        known = tuple(known)
        self.require(key, f"write one of {', '.join(known)}")
        value = self._values[key]
        if not isinstance(value, str) or value not in known:
            raise self.error(key, value, "is not known", nearest(value, known))
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, value, "is neither true nor false", "write true or false")
        return value

    def tables(self, key: str) -> list[object]:
        """Return the tables of a field that stands in double brackets; none where it is not there."""
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, value, "is no list of tables", f"write it as [[{key}]]")
        return value

    def target(self, key: str, *, wildcards: bool) -> str:
        """Return a ``module:qualname``."""
        self.require(key, "write module:qualname")
        value = self.text(key)
        module, colon, qualname = (value or "").partition(":")
        if not colon or not all(_NAME.fullmatch(part) for part in module.split(".")):
            raise self.error(key, value, "is no target", "write module:qualname, without wildcards in the module")
        part = _PATTERN if wildcards else _NAME
        if not all(part.fullmatch(name) for name in qualname.split(".")):
            allowed = "names separated by dots" + (
                ", with * and ? as wildcards" if wildcards else ", without wildcards"
            )
            raise self.error(key, value, "is no target", f"write {allowed} after the colon")
        return str(value)

    def path(self, key: str, value: object, *, result: bool = False) -> str:
        """Return a path that *value* holds.

        Args:
            key: the field that it stands in.
            value: what was written.
            result: whether ``return``, the call's result, may be its first part.
        """
        parts = value.split(".") if isinstance(value, str) and len(value) <= _LONGEST else []
        if not parts or not _NAME.fullmatch(parts[0]) or not all(_PART.fullmatch(part) for part in parts):
            raise self.error(key, value, "is no path", _PATH)
        if parts[0] == "return" and not result:
            raise self.error(key, value, "is the result, which is there after the call only", _PATH)
        return ".".join(parts)

    def setting(self, key: str) -> Value | tuple[Value, ...] | None:
        """Return where a setting is found, or the places; None where it is not there."""
        given = self._values.get(key)
        if not isinstance(given, list):
            return self.value(key, setting=True)
        if not given:
            raise self.error(key, given, "is empty", "write a path, a table with a path, or a list of these")
        listed = {f"{key}[{index}]": each for index, each in enumerate(given)}
        places = Table(self.plan, self.place, listed, listed)
        found = tuple(value for each in listed if (value := places.value(each, setting=True)) is not None)
        if len(found) < len(given):  # JSON has a null, which TOML has not
            raise self.error(key, given, "has an empty place", "write a path, or a table with a path")
        return found

    def value(self, key: str, *, result: bool = False, setting: bool = False) -> Value | None:
        """Return a `Value`: a path, or a table with a path and more; None where it is not there.

        Args:
            key: the field.
            result: whether the path may begin at ``return``.
            setting: whether it is a setting's: it may have conditions and a default then.
        """
        given = self._values.get(key)
        if given is None:
            return None
        if not isinstance(given, dict):
            return Value(self.path(key, given, result=result))
        more = ("default", "when", "unless") if setting else ()
        inner = Table(self.plan, self.at(key), given, ("path", "plus", "map", "prefix", *more))
        inner.require("path", _PATH)
        path = inner.path("path", inner.get("path"), result=result)
        plus, pairs = given.get("plus", 0), given.get("map", {})
        if not isinstance(plus, int) or isinstance(plus, bool) or abs(plus) > 10**9:
            raise inner.error("plus", plus, "is no whole number", "write a whole number")
        if not isinstance(pairs, dict) or ("map" in given and not pairs):
            raise inner.error("map", pairs, "is no table", "write { found = replacement, … }")
        if pairs and plus:
            raise inner.error("map", pairs, "stands beside plus", "use one of the two")
        for found, replacement in pairs.items():
            if not isinstance(found, str):
                raise inner.error("map", found, "is no text", "write what is found as a text")
            inner.scalar(f"map.{found}", replacement)
        prefix, default = given.get("prefix", ""), given.get("default")
        if not isinstance(prefix, str) or not prefix.isprintable() or len(prefix) > _LONGEST:
            raise inner.error("prefix", prefix, "is no text", f"write up to {_LONGEST} printable characters in quotes")
        if prefix and plus:
            raise inner.error("prefix", prefix, "stands beside plus", "use one of the two")
        if default is not None:
            inner.scalar("default", default)
        conditions = (inner.conditions("when"), inner.conditions("unless"))
        return Value(path, plus, tuple(pairs.items()), prefix, default, *conditions)

    def scalar(self, key: str, value: object) -> Scalar:
        """Return a text, number or boolean that *value* is."""
        if isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
            return value
        raise self.error(key, value, "is no simple value", "write a text, a number, true or false")

    def devices(self, key: str) -> tuple[str, ...] | Value | None:
        """Return names of devices, or the path of them; None where it is not there."""
        value = self._values.get(key)
        if not isinstance(value, list):
            return self.value(key)
        if not value or not all(isinstance(name, str) and name.strip() and name.isprintable() for name in value):
            raise self.error(key, value, "is no list of devices", 'write ["cuda:0", …], or one path in quotes')
        return tuple(value)

    def conditions(self, key: str, *, result: bool = False) -> tuple[Condition, ...]:
        """Return the conditions of a field: one, or a list of them; none where it is not there."""
        given = self._values.get(key, [])
        listed = isinstance(given, list)
        if listed and key in self._values and not given:
            raise self.error(key, given, "is empty", "write a path, a table with a path, or a list of these")
        return tuple(
            self._condition(f"{key}[{index}]" if listed else key, each, result)
            for index, each in enumerate(given if listed else [given])
        )

    def _condition(self, key: str, given: object, result: bool) -> Condition:
        if not isinstance(given, dict):
            return Condition(self.path(key, given, result=result))
        inner = Table(self.plan, self.at(key), given, ("path", "equals", "among"))
        inner.require("path", _PATH)
        path = inner.path("path", inner.get("path"), result=result)
        if "equals" in given and "among" in given:
            raise self.error(key, given, "has both equals and among", "use one of the two")
        if "equals" in given:
            return Condition(path, (inner.scalar("equals", given["equals"]),))
        if "among" not in given:
            return Condition(path)
        values = given["among"]
        if not isinstance(values, list) or not values:
            raise inner.error("among", values, "is no list of values", "write [value, …]")
        return Condition(path, tuple(inner.scalar(f"among[{index}]", each) for index, each in enumerate(values)))

"""Journals: a run put together from the records of its processes and from its manifest."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from profwin.evidence import codes_run as codes
from profwin.evidence.account import Account
from profwin.evidence.file import open_regular, why
from profwin.evidence.finding import Finding
from profwin.evidence.lines import read_records
from profwin.evidence.records import Process
from profwin.evidence.run import Run
from profwin.journal import SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.evidence.finding import Code

__all__ = ["Reader"]

MOST_FILES = 100_000
MOST_RECORDS = 2_000_000
"""Of one run, long lines counted more than once: bounds memory."""

LONG = 1000
"""Bytes of a line that counts as two records."""

LARGEST_MANIFEST = 128 << 20
DAMAGE = {
    "torn": codes.TORN_JOURNAL,
    "foreign": codes.FOREIGN_RECORD,
    "wrong": codes.FOREIGN_RECORD,
    "contradiction": codes.CONTRADICTING_JOURNAL,
    "kind": codes.NEWER_JOURNAL,
    "field": codes.NEWER_JOURNAL,
    "cut": codes.CUT_JOURNAL,
}
WORDS = {"kind": "a kind of record that is not known: ", "field": "fields that are not known, of "}
SAID = 3
"""Findings of one code that a journal may give; the rest is counted."""


class ManifestProcess(msgspec.Struct):
    """A process that the manifest names."""

    journal: str
    attempt: int | None = None
    role: str | None = None
    rank: int | None = None
    world: int | None = None
    ended: str | None = None


class Manifest(msgspec.Struct):
    """What of a manifest is used: what the journals cannot say is whether one of them is missing."""

    schema: int
    run: str
    settings: dict[str, Any] = {}
    processes: list[ManifestProcess] = []


class Reader:
    """Read one run.

    Args:
        directory, prefix, look: as for `profwin.evidence.run.load`.
    """

    def __init__(self, directory: str, prefix: str, *, look: bool) -> None:
        self.run = Run(directory, prefix)
        self._look = look
        self._left = MOST_RECORDS
        self._settings: dict[bytes, dict[str, Any]] = {}  # most processes of a run have the same

    def read(self) -> Run:
        """Read journals and manifest."""
        run = self.run
        self._read_manifest()
        names = self._names()
        for name in names:
            self._read_journal(os.path.join("journal", name))
            if self._left < 0:
                break
        if not names:
            self._find(codes.NO_JOURNALS, "journal/ holds no journal", "journal")
        run.attempts = sorted({process.attempt for process in run.processes})
        runs = sorted({process.run for process in run.processes})
        run.name = run.name or (runs[0] if runs else os.path.basename(os.path.abspath(run.directory)))
        if len(runs) > 1:
            self._find(codes.MIXED_RUNS, "journals of the runs " + ", ".join(map(repr, runs[:5])), "journal")
        for process in (run.manifest or {}).get("processes", ()):
            if process["journal"] not in names:
                self._find(codes.JOURNAL_MISSING, "the manifest names it", "journal/" + process["journal"])
        run.collections.sort(key=lambda each: each.open)
        run.intervals.sort(key=lambda each: each.enter)
        run.steps.sort(key=lambda each: each.at)
        return run

    def _names(self) -> list[str]:
        names = []
        try:
            with os.scandir(os.path.join(self.run.directory, "journal")) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl"):
                        names.append(entry.name)
                    if len(names) > MOST_FILES:
                        self._find(codes.LARGE_JOURNAL, f"more than {MOST_FILES} journals", "journal")
                        break
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._find(codes.UNREADABLE_JOURNAL, why(error), "journal")
        return sorted(names)

    def _read_manifest(self) -> None:
        path = os.path.join(self.run.directory, "manifest.json")
        try:
            with open_regular(path) as file:
                data = file.read(LARGEST_MANIFEST + 1)
            if len(data) > LARGEST_MANIFEST:
                raise ValueError(f"over {LARGEST_MANIFEST >> 20} MiB")  # noqa: TRY301  # said like other damage
            manifest = msgspec.json.decode(data, type=Manifest)
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            self._find(codes.BAD_MANIFEST, why(error), "manifest.json")
            return
        self.run.name = manifest.run
        self.run.manifest = {
            "settings": manifest.settings, "processes": [msgspec.to_builtins(each) for each in manifest.processes]
        }  # fmt: skip

    def _read_journal(self, name: str) -> None:
        said: dict[Code, int] = {}

        def report(word: str, number: int, detail: str) -> None:
            code = DAMAGE[word]
            said[code] = said.get(code, 0) + 1
            if said[code] <= SAID:
                self._find(code, WORDS.get(word, "") + detail[:300], name, f"line {number}")

        before = len(self.run.findings)
        account = None
        try:
            account = self._follow(name, report)
        except OSError as error:
            self._find(codes.UNREADABLE_JOURNAL, why(error), name)
        if account is not None:
            account.process.cut = codes.CUT_JOURNAL in said
        elif len(self.run.findings) == before:
            self._find(codes.EMPTY_JOURNAL, "no record", name)
        for code, count in said.items():
            if count > SAID:
                self._find(code, f"{count - SAID} more lines", name)

    def _follow(self, name: str, report: Callable[[str, int, str], None]) -> Account | None:
        account = None
        for number, length, record in read_records(os.path.join(self.run.directory, name), report):
            self._left -= 1 + length // LONG
            if self._left < 0:
                self._find(codes.LARGE_JOURNAL, f"more than {MOST_RECORDS} records", name, f"line {number}")
                break
            if account is not None:
                account.follow(record, number)
            elif isinstance(record, Process):
                account = Account(self.run, name, self._share(record), report, look=self._look)
                if record.schema > SCHEMA:
                    self._find(codes.NEWER_JOURNAL, f"schema {record.schema}; this version knows {SCHEMA}", name)
            else:
                self._find(codes.UNREADABLE_JOURNAL, "its first record is not its process's", name)
                break
        return account

    def _share(self, record: Process) -> Process:
        key = msgspec.json.encode(record.settings)
        record.settings = self._settings.setdefault(key, record.settings)
        return record

    def _find(self, code: Code, detail: str, file: str, place: str = "") -> None:
        self.run.findings.append(Finding(code, detail, self.run.path(file), place))

"""Databases of profilers: opened so that their folder stays as it was, their tables and columns looked up.

SQLite writes beside a file that it only reads: a database in write-ahead mode gets a ``-shm``, an interrupted one is
rolled back in place. So a file without a log is opened as immutable, and one whose log holds something is read from a
copy in the temporary directory.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from contextlib import contextmanager
from urllib.parse import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["MAGIC", "Database", "missing_bytes", "open_database"]

MAGIC = b"SQLite format 3\0"
_COPY_LIMIT = 1 << 30
"""Largest database and log, together, that are copied in order to read the log."""
_TEXT_LIMIT = 1 << 20
_CHECK_LIMIT = 64 << 20
"""Largest file that `Database.check` reads whole."""
_LOG_HEADER = 32
_ODD = (sqlite3.InterfaceError, UnicodeError, OverflowError, MemoryError)
"""What reading a damaged file raises beside ``DatabaseError``: for messages or numbers that are garbage themselves."""
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


class Database:
    """An open database. Its methods raise ``sqlite3.DatabaseError`` where the file is damaged.

    Attributes:
        tables: names of the columns of each ordinary table.
        log: what lay beside the file: empty, ``"read"`` or ``"unread"`` for rows of a write-ahead log,
            ``"interrupted"`` for the journal of a write that was cut off.
    """

    def __init__(self, connection: sqlite3.Connection, size: int, log: str) -> None:
        self._connection, self._size, self.log = connection, size, log
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "cache_size=-8192", "mmap_size=0", "query_only=ON"):
            connection.execute(f"PRAGMA {pragma}")
        if hasattr(connection, "setlimit"):  # from Python 3.11
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _TEXT_LIMIT)
        self.tables: dict[str, list[str]] = {}
        query = "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%' LIMIT 2000"
        for (name,) in connection.execute(query).fetchall():
            if isinstance(name, str):
                described = connection.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()
                self.tables[name] = [str(column[1]) for column in described]

    def find(self, name: str) -> str | None:
        """Return the table of that name, else its newest version: exporters rename ``X`` to ``X_V2``."""
        if name in self.tables:
            return name
        versions = [
            table for table in self.tables if table.startswith(name + "_V") and table[len(name) + 2 :].isdigit()
        ]
        return max(versions, key=lambda table: int(table[len(name) + 2 :]), default=None)

    def rows(self, name: str, *columns: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield those columns of a table's rows; None for a column that it does not have, nothing without the table."""
        table = self.find(name)
        if table is None:
            return
        known = self.tables[table]
        chosen = ", ".join(_quoted(column) if column in known else "NULL" for column in columns)
        yield from self._connection.execute(f"SELECT {chosen} FROM {_quoted(table)} {where}")

    def query(self, text: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query that the caller has made of looked-up names."""
        yield from self._connection.execute(text, values)

    def check(self) -> str:
        """Say what SQLite's own quick check finds first; empty where it finds nothing or the file is too large."""
        if self._size > _CHECK_LIMIT:
            return ""
        (answer,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        return "" if answer == "ok" else str(answer)


@contextmanager
def open_database(path: str) -> Iterator[Database]:
    """Open a database for reading and leave its folder as it is.

    Raises:
        sqlite3.DatabaseError: it is damaged, or no database.
        OSError: it cannot be read.
    """
    size = os.stat(path).st_size
    log, beside = _state(path)
    copy = ""
    try:
        if log and size + beside <= _COPY_LIMIT:
            copy = tempfile.mkdtemp(prefix="profwin-")
            inside = os.path.join(copy, "database")
            shutil.copyfile(path, inside)
            suffix = "-wal" if log == "read" else "-journal"
            shutil.copyfile(path + suffix, inside + suffix)
            address = f"file:{quote(inside)}"
        else:
            log = "unread" if log == "read" else log
            address = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
        try:
            yield Database(connection, size, log)
        except _ODD as error:
            raise sqlite3.DatabaseError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
    finally:
        if copy:
            shutil.rmtree(copy, ignore_errors=True)


def missing_bytes(path: str) -> int:
    """Return by how many bytes a database is shorter than its own header says; 0 where it is not."""
    with open(path, "rb") as file:
        header = file.read(100)
        size = os.fstat(file.fileno()).st_size
    if len(header) < 100:
        return 100 - len(header)
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    # The count is only valid where the last writer knew of it.
    pages = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
    return max(0, pages * page - size)


def _state(path: str) -> tuple[str, int]:
    """Say which log beside a database holds something, and its size. A log of a header alone holds nothing."""
    size = _regular_size(path + "-wal")
    if size > _LOG_HEADER:
        return "read", size
    size = _regular_size(path + "-journal")
    if size > len(_JOURNAL_MAGIC):
        with open(path + "-journal", "rb") as file:
            if file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC:
                return "interrupted", size
    return "", 0


def _regular_size(path: str) -> int:
    try:
        found = os.stat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""The text of a file, plain or compressed, piece by piece: what it is shows in its content, never in its name.

Memory stays the same however large the file is, and whatever it inflates to. What can be read of a damaged file is
read; the damage is noted with the byte at which it is.
"""

from __future__ import annotations

import struct
import zlib

from profwin.evidence import codes_files as codes
from profwin.evidence.file import open_regular
from profwin.evidence.formats.damage import Damage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

__all__ = ["Text", "head"]

PIECE = 1 << 18
"""Largest piece of text handed on."""
READ = 1 << 16
GZIP = b"\x1f\x8b"
HUGE, RATIO = 1 << 30, 300
"""A file that inflates to more than both is no trace: real ones shrink 5 to 40 times."""


class _Input:
    """Compressed bytes with their position."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.data = b""
        self.after = 0  # position after `data`

    @property
    def position(self) -> int:
        return self.after - len(self.data)

    def fill(self) -> bool:
        """Put more into an empty `data`; false at the end of the file."""
        if not self.data:
            self.data = self.file.read(READ)
            self.after += len(self.data)
        return bool(self.data)

    def take(self, count: int) -> bytes:
        """Return so many bytes, or fewer at the end of the file."""
        parts = []
        while count and self.fill():
            part = self.data[:count]
            self.data = self.data[len(part) :]
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def skip_text(self) -> bool:
        """Skip a text that a zero byte ends; false if it does not end."""
        while self.fill():
            _, zero, self.data = self.data.partition(b"\0")
            if zero:
                return True
        return False


class Text:
    """The text of one file.

    Args:
        path: the file.
        damage: takes what is wrong with its compression.

    Attributes:
        compressed: whether it is compressed; known once `pieces` has begun.
    """

    def __init__(self, path: str | Path, damage: Damage) -> None:
        self.path = path
        self.damage = damage
        self.compressed = False

    def place(self, position: int) -> str:
        """Say a position in the text as findings do."""
        return f"byte {position} of the inflated text" if self.compressed else f"byte {position}"

    def pieces(self) -> Iterator[bytes]:
        """Yield the text. Raises OSError as the file system does, and for nothing that is in the file."""
        with open_regular(self.path, buffering=0) as file:
            first = file.read(2)
            file.seek(0)
            self.compressed = first == GZIP
            if self.compressed:
                yield from self._members(_Input(file))
                return
            while piece := file.read(PIECE):
                yield piece

    def _members(self, source: _Input) -> Iterator[bytes]:
        inflated = [0]
        while True:
            if not _header(source):
                self._cut(source.position)
                return
            whole = False
            for piece in self._member(source, inflated):
                if piece is None:
                    whole = True
                else:
                    yield piece
            if not whole:
                return
            if self._rest(source):
                return

    def _member(self, source: _Input, inflated: list[int]) -> Iterator[bytes | None]:
        """Yield the text of a member, then None if another one may follow."""
        engine = zlib.decompressobj(-zlib.MAX_WBITS)
        checksum = size = 0
        ended = False
        while not ended:
            if not source.fill():
                self._cut(source.position)
                return
            before, data = engine.copy(), source.data
            try:
                piece = engine.decompress(data, PIECE)
            except zlib.error as error:
                yield from _salvage(before, data)
                self.damage.add(codes.BAD_COMPRESSION, str(error), f"byte {source.position}")
                return
            ended = engine.eof
            source.data = engine.unused_data if ended else engine.unconsumed_tail
            checksum = zlib.crc32(piece, checksum)
            size += len(piece)
            inflated[0] += len(piece)
            if piece:
                yield piece
            if inflated[0] > HUGE and inflated[0] > RATIO * source.position:
                self.damage.add(codes.INFLATES_TOO_FAR, f"{inflated[0]} bytes from {source.position}", "")
                return
        place = source.position
        trailer = source.take(8)
        if len(trailer) < 8:
            self._cut(place + len(trailer))
            return
        if trailer != struct.pack("<LL", checksum, size & 0xFFFFFFFF):
            self.damage.add(codes.BAD_CHECKSUM, f"of {size} inflated bytes", f"byte {place}")
        yield None

    def _rest(self, source: _Input) -> bool:
        """Look at what follows a member: say whether the file ends there. Zeros may fill it up to a block."""
        place = source.position
        while source.fill():
            if source.data[:1] == b"\0":
                source.data = source.data.lstrip(b"\0")
                continue
            following = source.take(2)
            if following == GZIP and source.position - 2 == place:
                source.data = following + source.data
                return False
            self.damage.add(codes.TRAILING_GARBAGE, "after the compressed data", f"byte {place}")
            return True
        return True

    def _cut(self, position: int) -> None:
        self.damage.add(codes.TRUNCATED, "the compressed data does not end", f"byte {position}")


def _header(source: _Input) -> bool:
    """Skip a gzip header; false if the file ends in it."""
    fixed = source.take(10)
    if len(fixed) < 10:
        return False
    flags = fixed[3]
    if flags & 4:
        size = source.take(2)
        if len(size) < 2 or len(source.take(int.from_bytes(size, "little"))) < int.from_bytes(size, "little"):
            return False
    for flag in (8, 16):
        if flags & flag and not source.skip_text():
            return False
    return not flags & 2 or len(source.take(2)) == 2


def _salvage(engine: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Yield what can be inflated before the damage, which a whole call would lose: byte by byte, up to the bad one."""
    parts, size = list[bytes](), 0
    try:
        for byte in data:
            piece = engine.decompress(bytes((byte,)))
            parts.append(piece)
            size += len(piece)
            if size >= PIECE:
                yield b"".join(parts)
                parts, size = [], 0
    except zlib.error:
        pass
    if size:
        yield b"".join(parts)


def head(path: str | Path, limit: int = 1 << 16) -> bytes:
    """Return the first bytes of the text of a file, at most `limit`, to tell its format by."""
    found = b""
    for piece in Text(path, Damage("")).pieces():
        found += piece
        if len(found) >= limit:
            break
    return found[:limit]

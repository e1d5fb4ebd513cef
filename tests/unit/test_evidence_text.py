"""Reading the text of files: plain or compressed by content, in fixed memory, with damage said by its byte."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib
from unittest import mock

import pytest

from profwin.evidence.formats import text as module
from profwin.evidence.formats.damage import Damage
from profwin.evidence.formats.text import Text, head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

CONTENT = b"".join(b"line %d of some text\n" % number for number in range(20_000))


def _read(folder: Path, content: bytes, name: str = "file") -> tuple[bytes, list[tuple[str, str]]]:
    (folder / name).write_bytes(content)
    damage = Damage(name)
    found = b"".join(Text(folder / name, damage).pieces())
    return found, [(finding.code.name, finding.place) for finding in damage.findings()]


def test_the_content_says_what_is_compressed(tmp_path: Path) -> None:
    """A plain file named .gz and a compressed one named .json are both read."""
    assert _read(tmp_path, CONTENT, "plain.gz") == (CONTENT, [])
    assert _read(tmp_path, gzip.compress(CONTENT), "packed.json") == (CONTENT, [])


def test_members_follow_one_another(tmp_path: Path) -> None:
    """A file of several gzip members is one text, and zeros after the last are padding."""
    packed = gzip.compress(CONTENT[:1000]) + gzip.compress(b"") + gzip.compress(CONTENT[1000:])
    assert _read(tmp_path, packed) == (CONTENT, [])
    assert _read(tmp_path, packed + bytes(512)) == (CONTENT, [])


def test_a_header_may_have_every_field(tmp_path: Path) -> None:
    """Extra field, name, comment and header checksum are skipped, and a cut inside any of them is a cut."""
    packed = gzip.compress(CONTENT)
    header = packed[:3] + bytes([4 | 8 | 16 | 2]) + packed[4:10] + b"\x03\x00abc" + b"name\0" + b"comment\0" + b"12"
    assert _read(tmp_path, header + packed[10:]) == (CONTENT, [])
    for size in range(2, len(header)):
        assert _read(tmp_path, header[:size]) == (b"", [("truncated", f"byte {size}")])


@pytest.mark.parametrize("lost", [1, 4, 8, 9, 1000])
def test_a_cut_keeps_what_comes_before(tmp_path: Path, lost: int) -> None:
    """Without its last bytes the file is truncated, and what can be inflated is."""
    packed = gzip.compress(CONTENT)
    found, findings = _read(tmp_path, packed[:-lost])
    assert findings == [("truncated", f"byte {len(packed) - lost}")]
    assert CONTENT.startswith(found)
    assert len(found) == len(CONTENT) or lost > 8


def test_a_wrong_checksum_is_told_though_all_inflates(tmp_path: Path) -> None:
    """Only the trailer tells that a bit of it, or of the content, has changed; the untouched file has no finding."""
    packed = bytearray(gzip.compress(CONTENT))
    packed[-6] ^= 1
    assert _read(tmp_path, bytes(packed)) == (CONTENT, [("bad-checksum", f"byte {len(packed) - 8}")])
    packed[-6] ^= 1
    packed[-1] ^= 1
    assert _read(tmp_path, bytes(packed))[1] == [("bad-checksum", f"byte {len(packed) - 8}")]


def test_damaged_compression_keeps_what_comes_before(tmp_path: Path) -> None:
    """Bytes in the middle that are no compressed data end the text there, and all before it is kept."""
    content = os.urandom(40_000).hex().encode()
    engine = zlib.compressobj(wbits=-15)
    packed = gzip.compress(b"")[:10] + engine.compress(content) + engine.flush(zlib.Z_FULL_FLUSH)
    found, findings = _read(tmp_path, packed + b"\x07" * 30)  # 7: a block of the kind that does not exist
    assert [code for code, _ in findings] == ["bad-compression"]
    assert found == content


def test_garbage_after_the_end_is_told(tmp_path: Path) -> None:
    """Text after the last member is told with its byte."""
    packed = gzip.compress(CONTENT)
    assert _read(tmp_path, packed + b"more") == (CONTENT, [("trailing-garbage", f"byte {len(packed)}")])


def test_what_inflates_without_end_is_given_up(tmp_path: Path) -> None:
    """A small file that inflates to very much more than any trace is not read to its end."""
    with mock.patch.object(module, "HUGE", 1 << 21):
        found, findings = _read(tmp_path, gzip.compress(bytes(1 << 24)))
    assert findings[0][0] == "inflates-too-far"
    assert len(found) < 1 << 23


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """A text of 200 MB passes through a few megabytes."""
    (tmp_path / "file").write_bytes(gzip.compress(bytes(200 << 20), compresslevel=1))
    tracemalloc.start()
    size = sum(map(len, Text(tmp_path / "file", Damage("file")).pieces()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == 200 << 20
    assert peak < 8 << 20


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """A FIFO that nobody writes to does not block, and a folder is an error of the system."""
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", ".", "missing", "/dev/zero"):
        with pytest.raises(OSError, match=r"."):
            next(Text(tmp_path / name, Damage(name)).pieces())


def test_the_head_is_inflated_and_short(tmp_path: Path) -> None:
    """The head is what tells a format, also of a file that is cut."""
    (tmp_path / "file").write_bytes(gzip.compress(CONTENT)[:-500])
    assert head(tmp_path / "file", 100) == CONTENT[:100]
    (tmp_path / "empty").write_bytes(b"")
    assert head(tmp_path / "empty") == b""

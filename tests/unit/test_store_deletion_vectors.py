"""Deletion vectors against bytes and names that others have published."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from cdc_views.errors import StoreError
from cdc_views.store.delta_log.deletion_vectors import Rows, VectorFile, file_of, read_rows

# PROTOCOL.md of Delta, "Deletion Vector Format": JSON examples 1 and 3, whose rows it says are these. The inline
# one is in an older layout with the same bitmap; delta-kernel-rs publishes it in the present one.
ROWS = [3, 4, 7, 11, 18, 29]
PROTOCOL_INLINE = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
KERNEL_INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
ON_DISK = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
# The golden table "table-with-dv-small" of delta-rs, kernel and others.
SMALL = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "offset": 1, "sizeInBytes": 36, "cardinality": 2}


def unz85(text: str) -> bytes:
    z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    b85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    return base64.b85decode(text.translate(str.maketrans(z85, b85)))


def written(rows: Rows) -> tuple[bytes, dict[str, Any]]:
    """The bytes of the only vector of a file, and its descriptor."""
    file = VectorFile()
    descriptor = file.add(rows)
    content = file.content
    assert content[0] == 1
    (size,) = struct.unpack(">I", content[1:5])
    data, checksum = content[5 : 5 + size], content[5 + size :]
    assert checksum == struct.pack(">I", zlib.crc32(data))
    return data, descriptor


def test_bytes_of_six_rows_are_the_published_ones() -> None:
    data, descriptor = written(Rows(ROWS))
    assert data == unz85(KERNEL_INLINE)
    bitmap = unz85(PROTOCOL_INLINE)[-28:]
    assert data.endswith(bitmap)
    assert (descriptor["sizeInBytes"], descriptor["cardinality"], descriptor["offset"]) == (44, 6, 1)


def test_descriptor_of_two_rows_is_that_of_the_golden_table() -> None:
    _, descriptor = written(Rows([0, 9]))
    assert {**descriptor, "pathOrInlineDv": ""} == {**SMALL, "pathOrInlineDv": ""}


@pytest.mark.parametrize(
    ("descriptor", "name"),
    [
        (ON_DISK, "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
        (SMALL, "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"),
    ],
)
def test_file_of_published_descriptors_is_the_published_one(descriptor: dict[str, Any], name: str) -> None:
    assert file_of(Path("table"), descriptor) == Path("table", name)


def test_bytes_of_one_row_are_those_of_the_format() -> None:
    # Magic, one bitmap, its high bits, cookie without runs, one container: key 0, one row; its offset; the row.
    wanted = "d1d339640100000000000000000000003a3000000100000000000000100000000500"
    assert written(Rows([5]))[0].hex() == wanted


def test_bytes_of_a_row_number_above_two_to_the_31_are_those_of_the_format() -> None:
    one = "0100000000000000000000003a3000000100000000800000100000000100"
    assert written(Rows([2**31 + 1]))[0].hex() == "d1d33964" + one
    above = "0200000000000000" + one[16:] + "030000003a3000000100000000000000100000000700"
    assert written(Rows([2**31 + 1, 3 * 2**32 + 7]))[0].hex() == "d1d33964" + above


def test_bytes_of_more_rows_than_one_container_holds_are_those_of_the_format() -> None:
    # 70,000 rows, every other one: three containers of 32,768, 32,768 and 4,464, all bitmaps of 8 KiB.
    data, _ = written(Rows(range(0, 140_000, 2)))
    containers = "0000ff7f0100ff7f02006f11200000002020000020400000"
    assert data[:48].hex() == "d1d339640100000000000000000000003a30000003000000" + containers
    assert data[48:] == b"\x55" * (2 * 8192 + 1116) + b"\x00" * 7076


def test_bytes_of_a_whole_file_are_one_run_in_the_format() -> None:
    # Cookie with the number of containers less one, which of them are runs, key 0 and 9 more rows, one run: 0 and 9.
    wanted = "d1d339640100000000000000000000003b3000000100000900010000000900"
    assert written(Rows(range(10)))[0].hex() == wanted


@pytest.mark.parametrize("rows", [[0], ROWS, range(10), range(0, 200_000, 2), [65_535, 65_536, 2**31, 2**32 + 5]])
def test_vectors_of_one_file_are_read_back_each_by_its_descriptor(tmp_path: Path, rows: list[int]) -> None:
    file = VectorFile()
    wanted = [Rows(rows), Rows([1, 2, 3]), Rows(rows)]
    descriptors = [file.add(each) for each in wanted]
    (tmp_path / file.name).write_bytes(file.content)
    assert [read_rows(tmp_path, descriptor) for descriptor in descriptors] == wanted


def test_vector_with_a_flipped_bit_is_damaged(tmp_path: Path) -> None:
    file = VectorFile()
    descriptor = file.add(Rows(ROWS))
    content = bytearray(file.content)
    content[-6] ^= 1
    (tmp_path / file.name).write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        read_rows(tmp_path, descriptor)


def test_inline_vector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match='storage "i"'):
        read_rows(tmp_path, {"storageType": "i", "pathOrInlineDv": KERNEL_INLINE, "sizeInBytes": 44})

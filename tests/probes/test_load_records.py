"""Records of load, and which objects they are of: what is computed, without any server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wanlat.bundle import tables
from wanlat.bundle.errors import BundleError
from wanlat.bundle.load_records import (
    MAGIC,
    RECORD,
    read_records,
    records_table,
)
from wanlat.probes.prefilled import body_seed_of, key_of


def rows_of(count: int, **fields: Any) -> np.ndarray[Any, Any]:
    rows = np.zeros(count, dtype=RECORD)
    for name in ("due_ns", "first_byte_ns", "total_ns", "grpc_status"):
        rows[name] = -1
    for name, value in fields.items():
        rows[name] = value
    return rows


def name_of(number: int, name: str, what: int = 255) -> bytes:
    line = bytearray(RECORD.itemsize)
    line[0], line[1] = what, len(name)
    line[4:6] = number.to_bytes(2, "little")
    line[8 : 8 + len(name)] = name.encode()
    return bytes(line)


def header() -> bytes:
    return (MAGIC + RECORD.itemsize.to_bytes(4, "little")).ljust(RECORD.itemsize, b"\0")


def test_keys_and_bodies_are_those_of_the_generator() -> None:
    # The same figures are in oneshot/src/load/objects.rs.
    assert key_of(7, "b1", 17, is_text=True) == "fill-00000017"
    assert key_of(7, "b1", 17, is_text=False) == "4d7153729859a30c"
    assert body_seed_of(7, "b1", 17) == 6_218_993_710_871_038


def test_names_of_errors_are_read_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "r"
    ok, slow, reset = rows_of(1), rows_of(1, error=1, outcome=2), rows_of(1, error=2, outcome=2)
    parts = [ok, name_of(1, "http 503 SlowDown"), slow, ok, name_of(2, "reset"), reset, slow]
    raw = [part if isinstance(part, bytes) else part.tobytes() for part in parts]
    path.write_bytes(header() + name_of(0, "Range", 254) + b"".join(raw))
    table = records_table(read_records(path), {"system": "minio"})
    assert table["endpoint"].to_pylist() == ["Range"] * 5
    slow_down = "http 503 SlowDown"
    assert table["error"].to_pylist() == [None, slow_down, None, "reset", slow_down]
    later = {"version", "network_error_ns", "late", "held_up_ns"}  # what the session adds
    assert list(table.schema) == [field for field in tables.LOAD if field.name not in later]


@pytest.mark.parametrize("content", [b"", header()[:7], header(), header() + b"\1" * 71])
def test_a_file_without_a_whole_record_has_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    assert len(read_records(tmp_path / "r").rows) == 0


@pytest.mark.parametrize("content", [b"PAR1", b"\0" * 200])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(BundleError, match="no records of load"):
        read_records(tmp_path / "r")


def test_a_record_of_no_endpoint_is_damage(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(header() + rows_of(1, endpoint=99).tobytes())
    with pytest.raises(BundleError, match="damaged"):
        read_records(tmp_path / "r")

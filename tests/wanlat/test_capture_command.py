"""Packet records from the command line, and their tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.command_line import here, ran

# Nobody listens: each is a packet there and a packet back.
THREE_CONNECTIONS = """
import socket
for _ in range(3):
    with socket.socket() as one:
        assert one.connect_ex(("10.2.0.1", 9)) != 0
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("record") / "new"
    options = ["--rtt", "10ms", "--jitter", "0ms", "--capture", str(directory)]
    command = [sys.executable, "-m", "wanlat", "lab", "exec", *options, "three-datacenters", "n1"]
    connect = ["--", sys.executable, "-c", THREE_CONNECTIONS]
    done = ran(*command, *connect)
    assert done.returncode == 0, done.stderr
    assert "6 packets" in done.stderr
    return directory


def test_lab_exec_leaves_packets_a_table_and_what_there_is_to_know(record: Path) -> None:
    document = json.loads((record / "capture.json").read_text())
    assert (document["packets"], document["rows"], document["missing"]) == (6, 6, 0)
    assert document["ended"] is None and document["table_error"] is None
    table = pq.read_table(record / "packets.parquet").to_pylist()
    assert [(row["source"], row["target"]) for row in table] == [("dc1", "dc2"), ("dc2", "dc1")] * 3
    assert all(row["departure_ns"] - row["entry_ns"] > 4_990_000 for row in table)


def test_the_table_is_made_again_from_a_record_that_was_cut_short(
    record: Path, tmp_path: Path
) -> None:
    whole = (record / "packets.rows").read_bytes()
    cut = tmp_path / "cut.rows"
    cut.write_bytes(whole[: len(whole) // 2])
    done = here("capture", "table", str(cut), "--out", str(tmp_path / "again.parquet"))
    assert done.returncode == 0 and "within a packet" in done.stderr
    again = pq.read_table(tmp_path / "again.parquet").to_pylist()
    assert 0 < len(again) < 6
    assert again == pq.read_table(record / "packets.parquet").to_pylist()[: len(again)]

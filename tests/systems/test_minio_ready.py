"""A MinIO cluster counts as ready when every node reaches every drive, not just a quorum."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import lab_of, needs
from wanlat.systems import registry


@pytest.mark.stores
@pytest.mark.parametrize("attempt", range(3))  # about half of all starts had a node that did not
def test_what_any_node_writes_first_lies_on_every_drive(tmp_path: Path, attempt: int) -> None:
    needs("minio")
    minio = registry.get("minio")
    with lab_of("one-site", storage="disk") as lab:
        cluster = minio.start(lab, minio.parse_options(), tmp_path, 90, print)
        first = next(iter(cluster.nodes))
        assert b"<Bucket>" not in cluster.ask_s3(first).body  # the readiness check cleans up
        assert cluster.ask_s3(first, "/fresh", method="PUT").ok
        drives = [node.host_directory / "minio" / "drive" for node in lab.nodes]
        for name in cluster.nodes:
            assert cluster.ask_s3(name, f"/fresh/{name}", method="PUT").ok
            held = [(drive / "fresh" / name / "xl.meta").exists() for drive in drives]
            assert held == [True] * len(drives), name

"""A short study on real stores: from the command line to the summary."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.late_network import command
from tests.needs import needs

pytestmark = pytest.mark.stores

RTT_MS = 20
TOPOLOGY = f"""
name: near
sites: [{{name: dc1, nodes: [n1]}}, {{name: dc2, nodes: [n2]}}, {{name: dc3, nodes: [n3]}}]
links: {{default: {{rtt: {RTT_MS}ms}}}}
"""

# Sequential round trips that no request to the store can do without; measured ones lie above.
LEAST_ROUND_TRIPS = {
    "garage": {"GetObject": 1, "PutObject": 1, "RemoveObject": 1},
    "minio": {"ListBuckets": 1, "GetObject": 2, "PutObject": 2, "RemoveObject": 2},
}


@pytest.mark.parametrize("system", ["garage", "minio"])
def test_a_short_study_measures_every_endpoint(system: str, tmp_path: Path) -> None:
    needs(system)
    (tmp_path / "near.yaml").write_text(TOPOLOGY)
    bundle = tmp_path / "bundle"
    done = subprocess.run(
        [
            *command("run", "endpoint-latency", "--json", "--systems", system),
            *("--topology", str(tmp_path / "near.yaml"), "--samples", "10", "--out", str(bundle)),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["endpoint"]: row for row in json.loads(done.stdout)["endpoints"]}
    assert len(rows) == 5
    for endpoint, row in rows.items():
        assert row["ok"] == 10, (endpoint, row)
        floor_ms = RTT_MS * LEAST_ROUND_TRIPS[system].get(endpoint, 0)
        assert floor_ms <= row["min_ms"] + 0.1, (endpoint, row)
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert len(manifest["systems"][0]["sha256"]) == 64
    assert {path.name for path in (bundle / "logs").iterdir()} == {
        f"{system}-{node}.log" for node in ("n1", "n2", "n3")
    }

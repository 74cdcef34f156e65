"""Short studies over gRPC: from the command line to the summary."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import late_network
from tests.needs import lab_of, needs
from wanlat.emulator.binaries import binary
from wanlat.systems.engine.protocols import BOB_PROTO as PROTO

pytestmark = pytest.mark.minutes

RTT_MS = 20
TOPOLOGY = f"""
name: near
sites: [{{name: dc1, nodes: [n1]}}, {{name: dc2, nodes: [n2]}}, {{name: dc3, nodes: [n3]}}]
links: {{default: {{rtt: {RTT_MS}ms}}}}
"""

# Sequential round trips of each endpoint and placement, with two replicas on three nodes. What
# is measured lies above; the quickest of all samples by less than one round trip.
ROUND_TRIPS: dict[str, dict[tuple[str, str], int]] = {
    "bob": {
        ("Put", "local"): 1,
        ("Put", "remote"): 1,
        ("Get", "local"): 0,
        ("Get", "remote"): 1,
        ("Exist", "local"): 0,
        ("Exist", "remote"): 1,
        ("Delete", "local"): 2,
        ("Delete", "remote"): 2,
        ("Ping", "unknown"): 0,
    },
}
ROUND_TRIPS["quorum"] = {
    **ROUND_TRIPS["bob"],
    ("Delete", "local"): 1,
    ("Delete", "remote"): 1,
}


@pytest.fixture(autouse=True)
def lab_is_possible() -> None:
    with lab_of("one-site"):
        pass


def study(directory: Path, text: str) -> dict[str, Any]:
    """Run it; return the summary, and the bundle's manifest below "manifest"."""
    (directory / "near.yaml").write_text(TOPOLOGY)
    (directory / "study.yaml").write_text(text)
    bundle = directory / "bundle"
    done = subprocess.run(
        late_network.command("run", str(directory / "study.yaml"), "--json", "--out", str(bundle)),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    summary["manifest"] = json.loads((bundle / "manifest.json").read_text())
    return summary


@pytest.mark.parametrize("system", ["quorum", pytest.param("bob", marks=pytest.mark.stores)])
def test_every_endpoint_takes_its_round_trips_near_and_far(system: str, tmp_path: Path) -> None:
    needs(system)
    options = "replication_factor: 2" + (", api: bob" if system == "quorum" else "")
    summary = study(
        tmp_path,
        f"name: short\ntopology: near.yaml\nsystems: [{system}]\nsamples: 15\n"
        f"options: {{{system}: {{{options}}}}}\nendpoints: [Put, Get, Exist, Delete, Ping]\n",
    )
    rows = {(row["endpoint"], row["placement"]): row for row in summary["endpoints"]}
    assert rows.keys() == ROUND_TRIPS[system].keys()
    for which, row in rows.items():
        floor_ms = RTT_MS * ROUND_TRIPS[system][which]
        assert row["ok"] == 15, (which, row)
        assert floor_ms <= row["min_ms"] + 0.1 < floor_ms + RTT_MS, (which, row)
    (recorded,) = summary["manifest"]["systems"]
    assert recorded["api"] == "bob"
    assert len(recorded["sha256"]) == 64
    assert recorded["options"]["placement"] == [["n1", "n2"], ["n2", "n3"], ["n3", "n1"]]


def test_a_service_s_own_methods_are_measured(tmp_path: Path) -> None:
    """The reference store as if it were anybody's program: wanlat knows its .proto alone."""
    command = [
        *(str(binary("quorum")), "serve", "--name={node}", "--data={data}"),
        *("--s3={address}:9000", "--peer-listen={address}:9001"),
        "--peer={peer.node}={peer.address}:9001",
        *("--protocol=leaderless", "--access-key=key", "--secret-key=secret"),
        *("--bob={address}:{port}", "--vdisk=n1,n2,n3"),
    ]
    options = {
        "command": command,
        "port": 20000,
        "protos": [str(PROTO)],
        "ready_line": "ready",
        "version": "its own",
    }
    blob = {"data": "{body}", "meta": {"timestamp": "{now}"}}
    given = {
        "name": "own",
        "topology": "near.yaml",
        "systems": ["service"],
        "samples": 10,
        "options": {"service": options},
        "endpoints": [
            "bob_storage.BobApi/Ping",
            {
                "method": "bob_storage.BobApi/Put",
                "request": {"key": {"key": "{key}"}, "data": blob},
            },
        ],
    }
    summary = study(tmp_path, json.dumps(given))
    rows = {row["endpoint"]: row for row in summary["endpoints"]}
    assert rows.keys() == {"bob_storage.BobApi/Ping", "bob_storage.BobApi/Put"}
    assert all(row["ok"] == 10 for row in rows.values()), rows
    assert {row["placement"] for row in rows.values()} == {"unknown"}
    assert rows["bob_storage.BobApi/Ping"]["min_ms"] < RTT_MS
    assert RTT_MS <= rows["bob_storage.BobApi/Put"]["min_ms"] + 0.1 < 2 * RTT_MS
    (recorded,) = summary["manifest"]["systems"]
    assert (recorded["api"], recorded["version"]) == ("grpc", "its own")
    assert recorded["options"]["command"] == command

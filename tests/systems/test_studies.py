"""Short studies from the command line to the summary, and nginx before a store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from systems_doubles import send

from tests import late_network
from tests.command_line import ran
from tests.needs import lab_of, needs
from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import Lab
from wanlat.probes.plan import Request
from wanlat.systems import registry
from wanlat.systems.engine.definition import read
from wanlat.systems.engine.protocols import BOB_PROTO as PROTO
from wanlat.systems.engine.system import System
from wanlat.systems.errors import SystemFailed

RTT_MS = 20
TOPOLOGY = f"""
name: near
sites: [{{name: dc1, nodes: [n1]}}, {{name: dc2, nodes: [n2]}}, {{name: dc3, nodes: [n3]}}]
links: {{default: {{rtt: {RTT_MS}ms}}}}
"""
NEAR_AND_FAR = {
    **{("Put", "local"): 1, ("Put", "remote"): 1, ("Get", "local"): 0, ("Get", "remote"): 1},
    **{("Exist", "local"): 0, ("Exist", "remote"): 1, ("Ping", "unknown"): 0},
}
"""Sequential round trips of each endpoint and placement, with two replicas on three nodes."""
S3 = {("ListObjects", "unknown"): 0, ("ListBuckets", "unknown"): 0}
ROUND_TRIPS: dict[str, dict[tuple[str, str], int]] = {
    "bob": {**NEAR_AND_FAR, ("Delete", "local"): 2, ("Delete", "remote"): 2},
    "garage": {
        **S3,
        **{(name, "unknown"): 1 for name in ("GetObject", "PutObject", "RemoveObject")},
    },
    "minio": {
        **S3,
        **{(name, "unknown"): 2 for name in ("GetObject", "PutObject", "RemoveObject")},
    },
}


def study(directory: Path, **given: object) -> dict[str, Any]:
    """Run it; return the summary, and the bundle's manifest below "manifest"."""
    with lab_of("one-site"):
        pass  # where there can be none, this skips
    (directory / "near.yaml").write_text(TOPOLOGY)
    known = {"name": "short", "topology": "near.yaml", "samples": 10, **given}
    (directory / "study.yaml").write_text(json.dumps(known))
    bundle = directory / "bundle"
    file = directory / "study.yaml"
    done = ran(*late_network.command("run", str(file), "--json", "--out", str(bundle)))
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    summary["manifest"] = json.loads((bundle / "manifest.json").read_text())
    return summary


@pytest.mark.stores
@pytest.mark.parametrize("system", ["bob", "garage", "minio"])
def test_every_endpoint_takes_its_round_trips_near_and_far(system: str, tmp_path: Path) -> None:
    needs(system)
    over_s3 = system in ("garage", "minio")
    wanted = sorted({endpoint for endpoint, _ in ROUND_TRIPS[system]})
    options = {} if over_s3 else {system: {"replication_factor": 2}}
    summary = study(tmp_path, systems=[system], options=options, endpoints=wanted)
    rows = {(row["endpoint"], row["placement"]): row for row in summary["endpoints"]}
    assert rows.keys() == ROUND_TRIPS[system].keys()
    for which, row in rows.items():
        floor_ms = RTT_MS * ROUND_TRIPS[system][which]
        assert row["ok"] == 10, (which, row)
        assert floor_ms <= row["min_ms"] + 0.1, (which, row)
        # The quickest of all samples is above what is known by less than one round trip.
        assert over_s3 or row["min_ms"] + 0.1 < floor_ms + RTT_MS, (which, row)
    (recorded,) = summary["manifest"]["systems"]
    assert len(recorded["sha256"]) == 64


@pytest.mark.minutes
def test_a_service_s_own_methods_are_measured(tmp_path: Path) -> None:
    """The reference store as if it were anybody's program: wanlat knows its .proto alone."""
    command = [
        *(str(binary("quorum")), "serve", "--name={node}", "--data={data}"),
        *("--s3={address}:9000", "--peer-listen={address}:9001"),
        "--peer={peer.node}={peer.address}:9001",
        *("--protocol=leaderless", "--access-key=key", "--secret-key=secret"),
        *("--bob={address}:{port}", "--vdisk=n1,n2,n3"),
    ]
    own = {"command": command, "port": 20000, "protos": [str(PROTO)], "version": "its own"}
    blob = {"data": "{body}", "meta": {"timestamp": "{now}"}}
    put, ping = "bob_storage.BobApi/Put", "bob_storage.BobApi/Ping"
    summary = study(
        tmp_path,
        systems=["service"],
        options={"service": {**own, "ready_line": "ready"}},
        endpoints=[ping, {"method": put, "request": {"key": {"key": "{key}"}, "data": blob}}],
    )
    rows = {row["endpoint"]: row for row in summary["endpoints"]}
    assert all(row["ok"] == 10 for row in rows.values()), rows
    assert rows[ping]["min_ms"] < RTT_MS <= rows[put]["min_ms"] + 0.1 < 2 * RTT_MS
    (recorded,) = summary["manifest"]["systems"]
    assert (recorded["api"], recorded["version"]) == ("grpc", "its own")


# -- nginx -----------------------------------------------------------------------------------


def before_the_reference_store(directory: Path) -> System:
    """The reference store behind the nginx of `minio-nginx`."""
    theirs = registry.get("minio-nginx").directory
    given = yaml.safe_load((theirs / "system.yaml").read_text())
    (directory / "nginx.conf.j2").write_text((theirs / "nginx.conf.j2").read_text())
    named = {**given, "name": "quorum-nginx", "extends": "quorum"}
    (directory / "system.yaml").write_text(yaml.safe_dump(named))
    return System(read(directory)[0], directory, read(directory)[1])


@pytest.mark.parametrize(
    "system",
    [
        pytest.param("quorum-nginx", marks=pytest.mark.programs),
        pytest.param("minio-nginx", marks=pytest.mark.stores),
    ],
)
def test_large_bodies_pass_through_nginx_and_never_over_a_disk(tmp_path: Path, system: str) -> None:
    needs("nginx-light", system.partition("-")[0])
    known = registry.get(system) if "minio" in system else before_the_reference_store(tmp_path)
    options = known.parse_options({"balance": "round_robin"})
    size = 24 << 20
    with lab_of("one-site", storage="disk") as lab:
        cluster = known.start(lab, options, tmp_path, 90, print, targets=["n2"])
        (front,) = cluster.standing.values()
        assert front.process is not None
        assert cluster.target("n1") == cluster.target("n2"), "of the front that there is"
        assert cluster.send_s3("n2", "/large", method="PUT", front=True).ok
        large = Request(0, "measure", "PutObject", "large", "k", object_bytes=size, body_seed=1)
        gets = [replace(large, seq=number, endpoint="GetObject") for number in (1, 2, 3)]
        samples = send(cluster, "n2", [large, *gets])  # each node serves one
        assert [sample.outcome for sample in samples] == ["ok"] * 4
        moved, written = its_io(lab, front.process.pid)
        assert moved > 4 * size > 40 * written
        kept = (cluster.node("n2").home / "nginx").rglob("*")
        assert sum(path.stat().st_size for path in kept if path.is_file()) < 10_000
        front.process.kill()
        front.process.wait(10)
        with pytest.raises(SystemFailed, match=r"nginx: node n2: its process was ended by SIGKILL"):
            cluster.check()


def its_io(lab: Lab, master: int) -> tuple[int, int]:
    """What nginx has passed on, and what it has written to a disk, in bytes; all its processes."""
    processes = Path(f"/proc/{lab.supervisor_pid}/root/proc")
    children = (processes / f"{master}/task/{master}/children").read_text().split()
    moved = written = 0
    for pid in (str(master), *children):
        pairs = (line.split(": ") for line in (processes / pid / "io").read_text().splitlines())
        io = {key: int(value) for key, value in pairs}
        moved, written = moved + io["wchar"], written + io["write_bytes"]
    return moved, written

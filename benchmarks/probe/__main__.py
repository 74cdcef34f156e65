"""``python -m benchmarks.probe``: what the probe costs, beside bare loops and the usual clients."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison import Claim, finish, in_rounds, parser, positive, run, table
from benchmarks.loopback import (
    BUCKET,
    KEY,
    NullServer,
    bare_loop,
    oneshot,
    oneshot_alone,
    python_client,
)
from wanlat.probes.header import Header

_HERE = Path(__file__).parent
_BYTES, _WARM_UP, _PAUSE_US = 1024, 20, 200
_AT_MOST = (
    ("oneshot, plan from a file", "bare loop", 1.5),
    ("oneshot grpc, plan from a file", "bare tonic", 2.0),
    ("oneshot grpc, plan from a file", "python grpcio", 1 / 3),
)
"""Who takes at most how many times what whom takes."""
_COLUMNS = {
    "client": "{client}",
    "n": "{n}",
    "median": "{median_us:.1f} µs",
    "p5–p95": "{p5_us:.1f}–{p95_us:.1f} µs",
    "ratio": "{ratio:.2f}",
    "ratio, by round": "{low:.2f}–{high:.2f}",
}

Clients = Mapping[str, Callable[[], list[int]]]


def _compare(options: argparse.Namespace) -> int:
    # Everything on one core: waking another one that sleeps takes longer than the request itself,
    # and whether it comes to that is the scheduler's luck.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with NullServer("s3") as s3, NullServer("bob") as bob:
        n, usual = options.samples, (_minio(s3.header), _boto3(s3.header), _grpcio(bob))
        minio, boto3, grpcio = (partial(python_client, get, n, _WARM_UP, _BYTES) for get in usual)
        # By whom each is compared with, which comes first.
        groups: dict[str, Clients] = {
            "bare loop": {
                "bare loop": partial(bare_loop, s3, n, _WARM_UP),
                "oneshot, plan from a file": partial(oneshot_alone, s3.header, n, _WARM_UP, _BYTES),
                "minio-py": minio,
                "boto3": boto3,
            },
            "bare loop, pausing": {
                "bare loop, pausing": partial(bare_loop, s3, n, _WARM_UP, _PAUSE_US),
                "oneshot, driven by a study": partial(_driven, s3.header, n),
            },
            "bare tonic": {
                "bare tonic": partial(bare_loop, bob, n, _WARM_UP),
                "oneshot grpc, plan from a file": partial(
                    oneshot_alone, bob.header, n, _WARM_UP, _BYTES
                ),
                "python grpcio": grpcio,
            },
            "bare tonic, pausing": {
                "bare tonic, pausing": partial(bare_loop, bob, n, _WARM_UP, _PAUSE_US),
                "oneshot grpc, driven by a study": partial(_driven, bob.header, n),
            },
        }
        turns = {name: turn for group in groups.values() for name, turn in group.items()}
        times = {name: np.array(rounds) for name, rounds in in_rounds(options, turns).items()}
    rows = [
        _row(name, times[name], None if name == against else times[against])
        for against, group in groups.items()
        for name in group
    ]
    medians = {row["client"]: row["median_us"] for row in rows}
    claims = [
        Claim(f"{name} takes at most {most:.2f} times {other}", f"{ratio:.2f}", ratio <= most)
        for name, other, most in _AT_MOST
        if (ratio := medians[name] / medians[other])
    ]
    return finish(options, _HERE, rows=rows, tables=table(rows, _COLUMNS), claims=claims)


def _driven(header: Header, count: int) -> list[int]:
    return [sample.total_ns or 0 for sample in oneshot(header, count, _WARM_UP, _BYTES)]


def _row(name: str, times_ns: Any, against_ns: Any | None) -> dict[str, Any]:
    """Return a client's latencies, and how many times those of another: of the medians over all
    rounds, and within a round (5th and 95th percentile over the rounds). Arrays: rounds × requests.
    """
    p5, middle, p95 = (
        round(float(percentile_us), 1)
        for percentile_us in np.percentile(times_ns / 1e3, [5, 50, 95])
    )
    row = {"client": name, "n": times_ns.size, "median_us": middle, "p5_us": p5, "p95_us": p95}
    if against_ns is None:
        return row | {"ratio": None, "low": None, "high": None}
    low, high = np.percentile(np.median(times_ns, axis=1) / np.median(against_ns, axis=1), [5, 95])
    ratios = {"ratio": np.median(times_ns) / np.median(against_ns), "low": low, "high": high}
    return row | {key: round(float(value), 2) for key, value in ratios.items()}


def _boto3(header: Any) -> Callable[[], bytes]:
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=f"http://{header.host}:{header.port}",
        region_name=header.region,
        aws_access_key_id=header.access_key,
        aws_secret_access_key=header.secret_key,
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    return lambda: bytes(client.get_object(Bucket=BUCKET, Key=KEY)["Body"].read())


def _minio(header: Any) -> Callable[[], bytes]:
    from minio import Minio

    keys = {"access_key": header.access_key, "secret_key": header.secret_key}
    client = Minio(f"{header.host}:{header.port}", **keys, region=header.region, secure=False)

    def get() -> bytes:
        response = client.get_object(bucket_name=BUCKET, object_name=KEY)
        try:
            return bytes(response.read())
        finally:
            response.close()
            response.release_conn()

    return get


def _grpcio(server: NullServer) -> Callable[[], bytes]:
    import grpc

    proto = _HERE.parents[1] / "proto" / "bob.proto"
    sys.path.append(str(proto.parent))  # where grpcio looks for .proto files
    messages, services = grpc.protos_and_services(proto.name)
    stub = services.BobApiStub(grpc.insecure_channel(server.address))
    message = messages.GetRequest(key=messages.BlobKey(key=bytes.fromhex(KEY)))
    return lambda: bytes(stub.Get(message).data)


if __name__ == "__main__":
    made = parser("probe", __doc__, rounds=30)
    made.add_argument("--samples", type=positive, default=100, help="a client and round")
    run(_compare, made.parse_args())

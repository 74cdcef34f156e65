"""The probe beside a client of other makers: the same request takes the same round trips.

Both ask the same node from another site over kept connections. What boto3 does more is known, and
is in the table: it waits for `100 Continue` before it sends a body.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from tests.needs import lab_of
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import PlanHeader, Request
from wanlat.probes.process import Process
from wanlat.probes.records import Sample
from wanlat.systems import registry

RTT_MS = 60.0
THREE = f"""
name: three
sites: [{{name: a, nodes: [n1]}}, {{name: b, nodes: [n2]}}, {{name: c, nodes: [n3]}}]
links: {{default: {{rtt: {RTT_MS:g}ms}}}}
"""
BOTO3 = """
import boto3, json, sys, time
from botocore.config import Config
url, region, access, secret = sys.argv[1:]
config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
s3 = boto3.client("s3", endpoint_url=url, region_name=region, aws_access_key_id=access,
                  aws_secret_access_key=secret, config=config)
calls = {
    "ListBuckets": s3.list_buckets,
    "ListObjects": lambda: s3.list_objects_v2(Bucket="bucket", Prefix="p"),
    "PutObject": lambda: s3.put_object(Bucket="bucket", Key="k", Body=b"x" * 1024),
    "HeadObject": lambda: s3.head_object(Bucket="bucket", Key="k"),
    "GetObject": lambda: s3.get_object(Bucket="bucket", Key="k")["Body"].read(),
    "RemoveObject": lambda: s3.delete_object(Bucket="bucket", Key="k"),
}
fastest = dict.fromkeys(calls, 1e9)
for turn in range(5):
    for name, call in calls.items():
        begun = time.perf_counter()
        call()
        fastest[name] = min(fastest[name], 1e3 * (time.perf_counter() - begun))
print(json.dumps(fastest))
"""
MORE = {"PutObject": 1}
"""Round trips that boto3 takes more than the probe."""


def test_boto3_takes_the_round_trips_of_the_probe_but_for_those_that_are_known(
    tmp_path: Path,
) -> None:
    (tmp_path / "three.yaml").write_text(THREE)
    quorum = registry.get("quorum")
    with lab_of(str(tmp_path / "three.yaml")) as lab:
        cluster = quorum.start(lab, quorum.parse_options(), tmp_path, 60.0, lambda _: None)
        assert cluster.ask_s3("n1", "/bucket", method="PUT").ok
        at, fastest = cluster.s3("n1"), dict[str, float]()

        def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
            return lab.spawn("n2", argv, stdin=stdin, stdout=stdout, stderr=stderr)

        def take(request: Request, sample: Sample) -> None:
            assert sample.outcome == "ok", sample
            took = (sample.total_ns or 0) / 1e6
            fastest[request.endpoint] = min(fastest.get(request.endpoint, math.inf), took)

        kinds = ["ListBuckets", "ListObjects", "PutObject", "HeadObject", "GetObject"]
        requests = [
            Request(
                *(seq, "measure", name, None if name == "ListBuckets" else "bucket"),
                key=None if name.startswith("List") else "o",
                prefix="p" if name == "ListObjects" else None,
                object_bytes=1024 if name in ("PutObject", "GetObject") else None,
                body_seed=1 if name in ("PutObject", "GetObject") else None,
            )
            for seq, name in enumerate([*kinds, "RemoveObject"] * 5)
        ]
        header = PlanHeader(at.host, at.port, at.region, at.access_key, at.secret_key)
        run_requests(spawn, header, requests, take)
        url = f"http://{at.host}:{at.port}"
        env = {"PYTHONPATH": ":".join(filter(None, sys.path))}
        argv = [sys.executable, "-c", BOTO3, url, at.region, at.access_key, at.secret_key]
        done = lab.run("n2", argv, env=env)
        assert done.returncode == 0, done.stderr
    # No network makes one faster than its round trips; what a busy machine adds is less than one.
    theirs = {name: math.floor(ms / RTT_MS) for name, ms in json.loads(done.stdout).items()}
    ours = {name: math.floor(ms / RTT_MS) for name, ms in fastest.items()}
    assert theirs == {name: count + MORE.get(name, 0) for name, count in ours.items()}

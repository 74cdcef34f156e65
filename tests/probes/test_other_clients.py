"""The probe beside clients of other makers: the same request takes the same round trips.

All ask the same node from another site over kept connections. What a client does more is known, and
is in the table: boto3 waits for `100 Continue` before it sends a body, grpcurl connects each time.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from tests.needs import lab_of, needs
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import Process
from wanlat.probes.protocols import header_to
from wanlat.probes.records import Sample
from wanlat.systems import registry
from wanlat.systems.engine.protocols import BOB_PROTO

TIMES = 5
THREE = """
name: three
sites: [{name: a, nodes: [n1]}, {name: b, nodes: [n2]}, {name: c, nodes: [n3]}]
links: {default: {rtt: %gms}}
"""
BOTO3 = """
import boto3
from botocore.config import Config
config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
s3 = boto3.client("s3", endpoint_url=f"http://{host}", region_name=region,
                  aws_access_key_id=access, aws_secret_access_key=secret, config=config)
calls = {
    "ListBuckets": s3.list_buckets,
    "ListObjects": lambda: s3.list_objects_v2(Bucket="bucket", Prefix="p"),
    "PutObject": lambda: s3.put_object(Bucket="bucket", Key="k", Body=bytes(1024)),
    "HeadObject": lambda: s3.head_object(Bucket="bucket", Key="k"),
    "GetObject": lambda: s3.get_object(Bucket="bucket", Key="k")["Body"].read(),
    "RemoveObject": lambda: s3.delete_object(Bucket="bucket", Key="k"),
}
"""
MINIO = """
import io, minio
s3 = minio.Minio(host, access_key=access, secret_key=secret, region=region, secure=False)
calls = {
    "ListBuckets": s3.list_buckets,
    "ListObjects": lambda: list(s3.list_objects("bucket", prefix="p")),
    "PutObject": lambda: s3.put_object("bucket", "k", io.BytesIO(bytes(1024)), 1024),
    "HeadObject": lambda: s3.stat_object("bucket", "k"),
    "GetObject": lambda: s3.get_object("bucket", "k").read(),
    "RemoveObject": lambda: s3.remove_object("bucket", "k"),
}
"""
GRPCIO = f"""
import sys; sys.path.append({str(BOB_PROTO.parent)!r})
import grpc
bob, services = grpc.protos_and_services("bob.proto")
stub = services.BobApiStub(grpc.insecure_channel(host, options=[("grpc.enable_retries", 0)]))
key, now = bob.BlobKey(key=bytes(8)), bob.BlobMeta(timestamp=1700000000)
blob = bob.Blob(data=bytes(1024), meta=now)
calls = {{
    "Ping": lambda: stub.Ping(bob.Null()),
    "Put": lambda: stub.Put(bob.PutRequest(key=key, data=blob)),
    "Get": lambda: stub.Get(bob.GetRequest(key=key)),
    "Exist": lambda: stub.Exist(bob.ExistRequest(keys=[key])),
    "Delete": lambda: stub.Delete(bob.DeleteRequest(key=key, meta=now)),
}}
"""
GRPCURL = f"""
import subprocess
key, meta = {{"key": "AAAAAAAAAAA="}}, {{"timestamp": 1700000000}}
messages = {{
    "Ping": {{}},
    "Put": {{"key": key, "data": {{"data": "aGVsbG8=", "meta": meta}}}},
    "Get": {{"key": key}},
    "Exist": {{"keys": [key]}},
    "Delete": {{"key": key, "meta": meta}},
}}
def grpcurl_call(name):
    proto = ["-import-path", {str(BOB_PROTO.parent)!r}, "-proto", {BOB_PROTO.name!r}]
    asked = ["-d", json.dumps(messages[name]), host, "bob_storage.BobApi/" + name]
    subprocess.run([grpcurl, "-plaintext", *proto, *asked], check=True, capture_output=True)
calls = {{name: (lambda name=name: grpcurl_call(name)) for name in messages}}
"""
TIMED = f"""
import json, time
fastest = dict.fromkeys(calls, 1e9)
for turn in range({TIMES}):
    for name, call in calls.items():
        begun = time.perf_counter()
        call()
        fastest[name] = min(fastest[name], 1e3 * (time.perf_counter() - begun))
print(json.dumps(fastest))
"""
S3 = ("ListBuckets", "ListObjects", "PutObject", "HeadObject", "GetObject", "RemoveObject")
BOB = ("Ping", "Put", "Get", "Exist", "Delete")
MORE = {("boto3", "PutObject"): 1, **{("grpcurl", endpoint): 2 for endpoint in BOB}}
"""Round trips that a client takes more than the probe."""


def request_of(seq: int, name: str) -> Request:
    has_body = name in ("PutObject", "GetObject", "Put", "Get")
    keyed = name != "Ping" and not name.startswith("List")
    return Request(
        *(seq, "measure", name, "bucket" if name in S3[1:] else None),
        key=None if not keyed else "o" if name in S3 else "11" * 8,
        prefix="p" if name == "ListObjects" else None,
        object_bytes=1024 if has_body else None,
        body_seed=1 if has_body else None,
        exists=True if name == "Exist" else None,
    )


@pytest.mark.parametrize(
    ("client", "program", "api", "rtt_ms"),
    [
        ("boto3", BOTO3, "s3", 60.0),
        ("minio-py", MINIO, "s3", 60.0),
        ("grpcio", GRPCIO, "bob", 60.0),
        # A process a call: a busy machine takes a tenth of a second and more to start one.
        pytest.param("grpcurl", GRPCURL, "bob", 400.0, marks=pytest.mark.programs),
    ],
)
def test_they_take_the_round_trips_of_the_probe_but_for_those_that_are_known(
    tmp_path: Path, client: str, program: str, api: str, rtt_ms: float
) -> None:
    grpcurl = ""
    if client == "grpcurl":
        needs("grpcurl")
        grpcurl = str(registry.find_tool("grpcurl").path)
    (tmp_path / "three.yaml").write_text(THREE % rtt_ms)
    quorum = registry.get("quorum")
    with lab_of(str(tmp_path / "three.yaml")) as lab:
        options = quorum.parse_options({"api": api})
        cluster = quorum.start(lab, options, tmp_path, 60.0, lambda _: None)
        assert cluster.send_s3("n1", "/bucket", method="PUT").ok
        at, fastest = cluster.target("n1"), dict[str, float]()
        as_whom = [getattr(at, name, "") for name in ("region", "access_key", "secret_key")]

        def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
            return lab.spawn("n2", argv, stdin=stdin, stdout=stdout, stderr=stderr)

        def take(request: Request, sample: Sample) -> None:
            assert sample.outcome == "ok", sample
            took = (sample.total_ns or 0) / 1e6
            fastest[request.endpoint] = min(fastest.get(request.endpoint, math.inf), took)

        header = header_to(at, deadline_ms=30_000)
        names = (S3 if api == "s3" else BOB) * TIMES
        run_requests(spawn, header, [request_of(*each) for each in enumerate(names)], take)
        env = {"PYTHONPATH": ":".join(filter(None, sys.path))}
        given = "import json, sys; host, region, access, secret, grpcurl = sys.argv[1:]"
        text = f"{given}\n{program}{TIMED}"
        where = [f"{at.host}:{at.port}", *as_whom, grpcurl]
        done = lab.run("n2", [sys.executable, "-c", text, *where], env=env)
        assert done.returncode == 0, done.stderr
    # No network makes one faster than its round trips; what a busy machine adds is less than one.
    theirs = {name: math.floor(ms / rtt_ms) for name, ms in json.loads(done.stdout).items()}
    ours = {name: math.floor(ms / rtt_ms) for name, ms in fastest.items()}
    assert theirs == {name: n + MORE.get((client, name), 0) for name, n in ours.items()}

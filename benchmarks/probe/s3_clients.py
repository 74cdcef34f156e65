"""Those that speak S3: GetObject."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.null_server import NullServer
from benchmarks.probe.contenders import (
    OBJECT_BYTES,
    PAUSE_US,
    Contender,
    Target,
    bare_loop,
    oneshot_driven,
    oneshot_from_file,
    python_client,
)
from wanlat.probes.plan import PlanHeader, Request

_BARE, _PACED = "bare loop", "bare loop, pausing"
_ONESHOT = "oneshot, plan from a file"
_BUCKET, _KEY = "bucket", "key"

TARGETS = (Target(_ONESHOT, _BARE, at_most=1.5),)


def contenders(server: NullServer) -> list[Contender]:
    """Return all of them; those that others are compared with come first."""
    header = PlanHeader(server.host, server.port, "garage", "ACCESS", "SECRET")
    target = f"/{_BUCKET}/{_KEY}"
    return [
        Contender(_BARE, bare_loop("bare-loop", server.address, target, pause_us=0), _BARE),
        Contender(_ONESHOT, oneshot_from_file(header, _requests), _BARE),
        Contender("minio-py", python_client(_minio(header)), _BARE),
        Contender("boto3", python_client(_boto3(header)), _BARE),
        Contender(
            _PACED, bare_loop("bare-loop", server.address, target, pause_us=PAUSE_US), _PACED
        ),
        Contender("oneshot, driven by a study", oneshot_driven(header, _requests), _PACED),
    ]


def _requests(count: int) -> list[Request]:
    return [
        Request(seq, "measure", "GetObject", _BUCKET, _KEY, object_bytes=OBJECT_BYTES, body_seed=0)
        for seq in range(count)
    ]


def _boto3(header: PlanHeader) -> Callable[[], bytes]:
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

    def get() -> bytes:
        body: bytes = client.get_object(Bucket=_BUCKET, Key=_KEY)["Body"].read()
        return body

    return get


def _minio(header: PlanHeader) -> Callable[[], bytes]:
    from minio import Minio

    client = Minio(
        f"{header.host}:{header.port}",
        access_key=header.access_key,
        secret_key=header.secret_key,
        region=header.region,
        secure=False,
    )

    def get() -> bytes:
        response = client.get_object(bucket_name=_BUCKET, object_name=_KEY)
        try:
            return bytes(response.read())
        finally:
            response.close()
            response.release_conn()

    return get

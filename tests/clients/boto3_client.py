"""boto3, the AWS SDK for Python. Run as a program (see ``serve``)."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from tests.clients.serve import (
    Call,
    Check,
    IndependentClient,
    body_of,
    nothing_to_check,
    same_as,
    serve,
)


class Boto3(IndependentClient):
    """boto3's client with its defaults, except that it addresses by path and never retries.

    Its retries are off because a hidden second attempt would be a longer first one.
    """

    name = "boto3"
    version = boto3.__version__
    configured = "addressing_style path, total_max_attempts 1 (no retries); the rest is default"

    def __init__(self, at: dict[str, Any]) -> None:
        self._s3 = boto3.client(
            "s3",
            endpoint_url=f"http://{at['host']}:{at['port']}",
            region_name=at["region"],
            aws_access_key_id=at["access_key"],
            aws_secret_access_key=at["secret_key"],
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    def prepare(self, request: dict[str, Any]) -> tuple[Call, Check]:
        """Name the method of boto3 that does what the endpoint does."""
        s3, endpoint = self._s3, request["endpoint"]
        if endpoint == "ListBuckets":
            return s3.list_buckets, nothing_to_check
        bucket = request["bucket"]
        if endpoint == "ListObjects":
            wanted = request["listed"]
            return lambda: s3.list_objects_v2(Bucket=bucket, Prefix=request["prefix"]), (
                lambda got: None if got["KeyCount"] == wanted else f"{got['KeyCount']} keys listed"
            )
        at = {"Bucket": bucket, "Key": request["key"]}
        if endpoint == "GetObject":
            return lambda: _read(s3.get_object(**at)), same_as(body_of(request))
        if endpoint == "HeadObject":
            return lambda: s3.head_object(**at), nothing_to_check
        if endpoint == "PutObject":
            data = body_of(request)
            return lambda: s3.put_object(**at, Body=data), nothing_to_check
        if endpoint == "RemoveObject":
            return lambda: s3.delete_object(**at), nothing_to_check
        raise ValueError(f"boto3 is not asked for {endpoint} here")


def _read(answer: dict[str, Any]) -> bytes:
    body: bytes = answer["Body"].read()
    return body


if __name__ == "__main__":
    serve(Boto3)

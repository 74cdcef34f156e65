"""minio-py, MinIO's SDK for Python. Run as a program (see ``serve``)."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import minio
import urllib3

from tests.clients.serve import (
    Call,
    Check,
    IndependentClient,
    body_of,
    nothing_to_check,
    same_as,
    serve,
)


class MinioPy(IndependentClient):
    """minio-py's client with its defaults, except that it knows the region and never retries.

    Without the region it asks for the bucket's once, with GetBucketLocation, and remembers it.
    Its retries are off because a hidden second attempt would be a longer first one; the pool of
    connections is otherwise made as minio-py makes its own.
    """

    name = "minio-py"
    version = minio.__version__
    configured = "region given, urllib3 retries 0; the rest is default"

    def __init__(self, at: dict[str, Any]) -> None:
        patience = timedelta(minutes=5).seconds
        pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=patience, read=patience),
            maxsize=10,
            retries=urllib3.Retry(total=0),
        )
        self._s3 = minio.Minio(
            f"{at['host']}:{at['port']}",
            access_key=at["access_key"],
            secret_key=at["secret_key"],
            region=at["region"],
            secure=False,
            http_client=pool,
        )

    def prepare(self, request: dict[str, Any]) -> tuple[Call, Check]:
        """Name the method of minio-py that does what the endpoint does."""
        s3, endpoint = self._s3, request["endpoint"]
        if endpoint == "ListBuckets":
            return s3.list_buckets, nothing_to_check
        bucket = request["bucket"]
        if endpoint == "ListObjects":
            wanted = request["listed"]
            return lambda: list(s3.list_objects(bucket, prefix=request["prefix"])), (
                lambda got: None if len(got) == wanted else f"{len(got)} keys listed"
            )
        key = request["key"]
        if endpoint == "GetObject":
            return lambda: self._get(bucket, key), same_as(body_of(request))
        if endpoint == "HeadObject":
            return lambda: s3.stat_object(bucket, key), nothing_to_check
        if endpoint == "PutObject":
            data = body_of(request)
            return lambda: s3.put_object(bucket, key, io.BytesIO(data), len(data)), nothing_to_check
        if endpoint == "RemoveObject":
            return lambda: s3.remove_object(bucket, key), nothing_to_check
        raise ValueError(f"minio-py is not asked for {endpoint} here")

    def _get(self, bucket: str, key: str) -> bytes:
        response = self._s3.get_object(bucket, key)
        try:
            return bytes(response.read())
        finally:
            response.close()
            response.release_conn()


if __name__ == "__main__":
    serve(MinioPy)

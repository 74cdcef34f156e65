"""The SDKs that people use, with their default settings, against a real cluster of three nodes.

The Rust tests sign and send by themselves; these claim that boto3 and minio-py, with the chunked
bodies and checksums they choose, are understood.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import own_address
from wanlat.emulator.binaries import binary

ADDRESSES = [own_address(node) for node in range(3)]
PORT = 9000
PROTOCOLS = ("leaderless", "leader", "rounds:2")


class Cluster:
    """Three nodes; a client of one of them."""

    def boto3(self, node: int) -> Any:
        return pytest.importorskip("boto3").client(
            "s3",
            endpoint_url=f"http://{ADDRESSES[node]}:{PORT}",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="wanlat",
        )

    def minio(self, node: int) -> Any:
        return pytest.importorskip("minio").Minio(
            f"{ADDRESSES[node]}:{PORT}", "key", "secret", secure=False
        )


@pytest.fixture(params=PROTOCOLS)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    program = binary("quorum")
    peers = [f"--peer=n{i}={address}:{PORT + 1}" for i, address in enumerate(ADDRESSES)]
    nodes = []
    try:
        for i, address in enumerate(ADDRESSES):
            options = {
                "name": f"n{i}",
                "data": str(tmp_path / f"n{i}"),
                "s3": f"{address}:{PORT}",
                "peer-listen": f"{address}:{PORT + 1}",
                "protocol": request.param,
                "access-key": "key",
                "secret-key": "secret",
            }
            line = [
                str(program),
                "serve",
                *(f"--{name}={value}" for name, value in options.items()),
            ]
            nodes.append(subprocess.Popen([*line, *peers], stdout=subprocess.PIPE))
        for node in nodes:
            assert node.stdout is not None
            assert node.stdout.readline() == b"ready\n"
        yield Cluster()
    finally:
        for node in nodes:
            node.kill()
            node.wait()
            if node.stdout is not None:
                node.stdout.close()


def test_boto3_puts_gets_lists_and_deletes(cluster: Cluster) -> None:
    here, there = cluster.boto3(0), cluster.boto3(1)
    here.create_bucket(Bucket="bucket")
    here.put_object(Bucket="bucket", Key="a/ü +&.txt", Body=b"hello", Metadata={"colour": "green"})
    here.put_object(Bucket="bucket", Key="streamed", Body=io.BytesIO(b"x" * 300_000))

    got = there.get_object(Bucket="bucket", Key="a/ü +&.txt")
    assert got["Body"].read() == b"hello"
    assert got["Metadata"] == {"colour": "green"}
    assert got["ChecksumCRC32"] == "NhCmhg=="
    part = there.get_object(Bucket="bucket", Key="streamed", Range="bytes=1-2")
    assert part["Body"].read() == b"xx"
    assert [b["Name"] for b in there.list_buckets()["Buckets"]] == ["bucket"]
    assert there.head_object(Bucket="bucket", Key="streamed")["ContentLength"] == 300_000

    for key in ("a/ü +&.txt", "streamed"):
        there.delete_object(Bucket="bucket", Key=key)
    assert here.list_objects_v2(Bucket="bucket")["KeyCount"] == 0
    here.delete_bucket(Bucket="bucket")


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
def test_boto3_may_choose_its_checksum(cluster: Cluster, algorithm: str) -> None:
    client = cluster.boto3(0)
    client.create_bucket(Bucket="bucket")
    client.put_object(Bucket="bucket", Key="k", Body=b"x" * 100_000, ChecksumAlgorithm=algorithm)
    assert client.get_object(Bucket="bucket", Key="k")["Body"].read() == b"x" * 100_000


def test_boto3_pages_through_keys_and_is_told_that_they_are_not_grouped(cluster: Cluster) -> None:
    client = cluster.boto3(2)
    client.create_bucket(Bucket="bucket")
    keys = sorted([f"p{i % 4}/{i}" for i in range(12)] + ["top"])
    for key in keys:
        client.put_object(Bucket="bucket", Key=key, Body=b"")
    pager = client.get_paginator("list_objects_v2")
    pages = pager.paginate(Bucket="bucket", PaginationConfig={"PageSize": 3})
    assert [item["Key"] for page in pages for item in page["Contents"]] == keys
    under = client.list_objects_v2(Bucket="bucket", Prefix="p1/", Delimiter="/")
    assert [item["Key"] for item in under["Contents"]] == ["p1/1", "p1/5", "p1/9"]
    with pytest.raises(client.exceptions.ClientError, match="NotImplemented"):
        client.list_objects_v2(Bucket="bucket", Delimiter="/")


def test_minio_py_puts_gets_lists_and_removes(cluster: Cluster) -> None:
    here, there = cluster.minio(0), cluster.minio(1)
    here.make_bucket("bucket")
    assert there.bucket_exists("bucket")
    for key, size in (("a/small one", 10), ("large", 4_000_000)):
        here.put_object("bucket", key, io.BytesIO(b"z" * size), size)
        response = there.get_object("bucket", key)
        assert response.data == b"z" * size
        response.release_conn()
        assert there.stat_object("bucket", key).size == size
    listed = there.list_objects("bucket", recursive=True)
    assert [item.object_name for item in listed] == ["a/small one", "large"]
    assert [item.object_name for item in there.list_objects("bucket", "a/")] == ["a/small one"]
    assert [bucket.name for bucket in there.list_buckets()] == ["bucket"]
    for key in ("a/small one", "large"):
        there.remove_object("bucket", key)
    here.remove_bucket("bucket")
    assert not there.bucket_exists("bucket")

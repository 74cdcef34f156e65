"""A signer that is not ours and not Rust's computes the very signatures that oneshot sends."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import spawn_here

REQUESTS = [
    Request(0, "measure", "ListBuckets"),
    Request(1, "measure", "CreateBucket", "some-bucket"),
    Request(2, "measure", "ListObjects", "some-bucket"),
    Request(3, "measure", "ListObjects", "some-bucket", prefix="a/b c+d=e&f/é"),
    Request(4, "measure", "GetObject", "some-bucket", "plain"),
    Request(5, "measure", "GetObject", "some-bucket", "a//b/../c d+e%20f/é~*'()"),
    Request(6, "measure", "HeadObject", "some-bucket", "plain"),
    Request(7, "measure", "PutObject", "some-bucket", "p", object_bytes=70_000, body_seed=1),
    Request(8, "measure", "PutObject", "some-bucket", "empty", object_bytes=0, body_seed=1),
    Request(9, "measure", "RemoveObject", "some-bucket", "plain"),
]


@pytest.mark.parametrize("connection", ["keep-alive", "new"])
def test_botocore_signs_each_request_alike(
    null_server: Callable[..., Any], connection: Any
) -> None:
    server = null_server()
    header = replace(server.header, connection=connection)
    run_requests(spawn_here, header, REQUESTS, lambda *_: None)
    arrived = server.journal()
    assert len(arrived) == len(REQUESTS)
    for request in arrived:
        sent = {name.lower(): value for name, value in request["headers"]}
        assert sent["authorization"] == _authorization(request, sent), request["target"]
        assert sent["x-amz-content-sha256"] == request["body_sha256"]


def _authorization(request: dict[str, Any], sent: dict[str, str]) -> str:
    """Sign what arrived, at the time it says, with botocore."""
    signed = sent["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    theirs = AWSRequest(
        request["method"],
        f"http://{sent['host']}{request['target']}",
        headers={name: sent[name] for name in signed if not name.startswith("x-amz-")},
    )
    theirs.headers["X-Amz-Content-SHA256"] = sent["x-amz-content-sha256"]
    at = datetime.datetime.strptime(sent["x-amz-date"], "%Y%m%dT%H%M%SZ")
    signer = botocore.auth.S3SigV4Auth(Credentials("ACCESS", "SECRET"), "s3", "garage")
    with (
        mock.patch.object(botocore.auth, "get_current_datetime", return_value=at),
        mock.patch.object(signer, "payload", return_value=sent["x-amz-content-sha256"]),
    ):
        signer.add_auth(theirs)
    return str(theirs.headers["Authorization"])

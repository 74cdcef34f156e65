"""Signatures, compared with those of an independent signer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wanlat.systems.base import S3Target
from wanlat.systems.engine.request import EMPTY_SHA256, sign

botocore_auth = pytest.importorskip("botocore.auth")
awsrequest = pytest.importorskip("botocore.awsrequest")
credentials = pytest.importorskip("botocore.credentials")


@pytest.mark.parametrize("path", ["/", "/minio/admin/v3/info", "/bucket/a-key"])
@pytest.mark.parametrize("region", ["garage", "us-east-1"])
def test_a_signature_is_the_one_botocore_computes(
    monkeypatch: pytest.MonkeyPatch, path: str, region: str
) -> None:
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    monkeypatch.setattr(botocore_auth, "get_current_datetime", lambda *_: now)
    request = awsrequest.AWSRequest("GET", f"http://10.1.0.1:3900{path}")
    request.headers["x-amz-content-sha256"] = EMPTY_SHA256
    request.context["client_config"] = None
    keys = credentials.Credentials("GKabc", "secret")
    botocore_auth.S3SigV4Auth(keys, "s3", region).add_auth(request)
    ours = sign("GET", S3Target("10.1.0.1", 3900, region, "GKabc", "secret"), path, now=now)
    assert ours["authorization"] == request.headers["Authorization"]
    assert ours["x-amz-date"] == request.headers["X-Amz-Date"]

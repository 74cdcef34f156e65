"""AWS Signature Version 4 for a request without a body.

Source: "Signature Version 4 signing process" in the AWS documentation. The probe signs its own
requests; this one is for asking a node whether it is ready.
"""

from __future__ import annotations

import hashlib
import hmac
import urllib.parse
from collections.abc import Mapping
from datetime import UTC, datetime

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def sign(
    method: str,
    host: str,
    path: str,
    *,
    region: str,
    access_key: str,
    secret_key: str,
    query: str = "",
    now: datetime | None = None,
) -> dict[str, str]:
    """Return the headers of a signed S3 request.

    ``host`` as in the Host header; ``path`` already URI-encoded; ``query`` as ``encoded`` makes it.
    """
    when = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": when}
    names = ";".join(headers)
    listed = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"{method}\n{path}\n{query}\n{listed}\n{names}\n{EMPTY_SHA256}"
    scope = f"{when[:8]}/{region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return {
        **headers,
        "authorization": f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}",
    }


def encoded(query: Mapping[str, str]) -> str:
    """Return a query as the signature wants it: sorted, all but unreserved characters encoded."""
    quote = urllib.parse.quote
    return "&".join(f"{quote(key, safe='')}={quote(query[key], safe='')}" for key in sorted(query))

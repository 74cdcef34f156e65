"""boto3 signs, the lab carries: an S3 client whose requests leave from a node of a lab."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config

from wanlat.emulator.lab import Lab
from wanlat.systems.base import S3Target


class _Raw(io.BytesIO):
    """A body in the form in which botocore reads it."""

    def stream(self, amount: int = 65536, **_: object) -> Iterator[bytes]:
        while piece := self.read(amount):
            yield piece


def client(lab: Lab, node: str, target: S3Target) -> Any:
    """An S3 client that stands on ``node`` and talks to ``target``."""

    def send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        url = urlsplit(request.url)
        path = url.path + (f"?{url.query}" if url.query else "")
        body = request.body.read() if hasattr(request.body, "read") else request.body
        # No answer to an "Expect" is waited for here, so none may be asked for.
        headers = {k: v for k, v in request.headers.items() if k.lower() != "expect"}
        connection = lab.http(node, target.host, target.port, 30)
        try:
            connection.request(request.method, path, body, headers)
            response = connection.getresponse()
            content = _Raw(response.read())
            return AWSResponse(request.url, response.status, response.headers, content)
        finally:
            connection.close()

    import boto3  # here: it takes a quarter of a second

    made = boto3.client(
        "s3",
        endpoint_url=f"http://{target.host}:{target.port}",
        region_name=target.region,
        aws_access_key_id=target.access_key,
        aws_secret_access_key=target.secret_key,
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
    )
    made.meta.events.register("before-send.s3", send)
    return made

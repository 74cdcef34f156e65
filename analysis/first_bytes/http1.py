"""HTTP/1: a request line, or a status line."""

from __future__ import annotations

import re

_METHODS = b"GET|PUT|POST|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE"
_REQUEST = re.compile(rb"(" + _METHODS + rb") ([^ \r\n]{1,2000})")
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]{0,40}))?")


def http1(payload: bytes) -> str | None:
    """ "PUT /minio/storage/x" (without a query) or "200 OK"; None for what is neither.

    A line that the record cut short is given as far as it goes.
    """
    if request := _REQUEST.match(payload):
        path = request[2].split(b"?", 1)[0]
        return f"{request[1].decode()} {path.decode('ascii', 'replace')}"
    if status := _STATUS.match(payload):
        return b" ".join(part for part in status.groups() if part).decode("ascii", "replace")
    return None

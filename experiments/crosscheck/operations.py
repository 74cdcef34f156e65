"""What a request is called, by its method and path."""

from __future__ import annotations

from urllib.parse import parse_qs

_OF_BUCKET = {
    "GET": "ListObjects",
    "HEAD": "HeadBucket",
    "PUT": "CreateBucket",
    "DELETE": "DeleteBucket",
}
_OF_OBJECT = {
    "GET": "GetObject",
    "HEAD": "HeadObject",
    "PUT": "PutObject",
    "DELETE": "RemoveObject",
}
_BY_QUERY = {
    ("GET", "location"): "GetBucketLocation",
    ("GET", "versioning"): "GetBucketVersioning",
    ("GET", "uploads"): "ListMultipartUploads",
    ("GET", "uploadId"): "ListParts",
    ("PUT", "partNumber"): "UploadPart",
    ("POST", "uploads"): "CreateMultipartUpload",
    ("POST", "uploadId"): "CompleteMultipartUpload",
    ("DELETE", "uploadId"): "AbortMultipartUpload",
    ("POST", "delete"): "DeleteObjects",
}


def operation(request: str) -> str:
    """Return the endpoint of a request, ``METHOD TARGET``; the request itself when unknown.

    >>> operation("GET /bucket?location")
    'GetBucketLocation'
    >>> operation("POST /bob_storage.BobApi/Put")
    'Put'
    """
    method, _, target = request.partition(" ")
    path, _, query = target.partition("?")
    service, _, rest = path.strip("/").partition("/")
    if method == "POST" and "." in service and rest and "/" not in rest:
        return rest if service.startswith("bob_storage.") else f"{service}/{rest}"
    for name in parse_qs(query, keep_blank_values=True):
        if (method, name) in _BY_QUERY:
            return _BY_QUERY[method, name]
    if not service:
        return "ListBuckets" if method == "GET" else request
    return (_OF_OBJECT if rest else _OF_BUCKET).get(method, request)

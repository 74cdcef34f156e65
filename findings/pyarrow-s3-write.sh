#!/usr/bin/env bash
# pyarrow's S3FileSystem: a small write is three requests one after the other, and so is a deletion,
# whose last request is a write.
#
# 28 November 2026. Versions: pyarrow 26.0.1, moto 5.2.5 (the server), boto3 1.43.117.
#
# Guess:   open_output_stream, 1,000 bytes, close: one PutObject, as boto3's put_object is;
#          delete_file: one DeleteObject.
# Happens: the stream is a multipart upload whatever its length: CreateMultipartUpload, UploadPart
#          and CompleteMultipartUpload, each waiting for the one before. (allow_delayed_open=True
#          makes it one PutObject; it is off by default.) delete_file asks HEAD first, deletes, and
#          then puts an empty object in place of the parent "directory".
#          So each costs three round trips where one would do, and a deletion needs permission to
#          write, and makes an object that was not there.
#
# Output seen:
#   write             POST ?uploads, PUT ?partNumber, POST ?uploadId    one after the other: 3
#   write, delayed    PUT                                               one after the other: 1
#   delete            HEAD, DELETE, PUT d/                              one after the other: 3
set -euo pipefail
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
python3 -m venv "$here/venv"
"$here/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 'moto[server]==5.2.5' boto3==1.43.117
cat >"$here/seen.py" <<'PYTHON'
import sys
import threading
import time
from urllib.parse import parse_qsl

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from pyarrow import fs
from werkzeug.serving import make_server

requests = []


def recorded(application):
    """Every answer takes 50 ms, so that what waits for an answer shows in the instants."""

    def call(environ, start_response):
        began = time.monotonic()
        answer = list(application(environ, start_response))
        time.sleep(0.05)
        key = environ["PATH_INFO"].removeprefix("/bucket/").removeprefix("d/x") or ""
        names = [name for name, _ in parse_qsl(environ["QUERY_STRING"], keep_blank_values=True)]
        label = environ["REQUEST_METHOD"] + (f" ?{names[0]}" if names else f" {key}" if key else "")
        requests.append((began, time.monotonic(), label))
        return answer

    return call


application = recorded(DomainDispatcherApplication(create_backend_app))
server = make_server("127.0.0.1", 0, application, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = f"127.0.0.1:{server.port}"
login = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
boto3.client("s3", endpoint_url=f"http://{endpoint}", **login).create_bucket(Bucket="bucket")


def filesystem(**options):
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        scheme="http",
        access_key="a",
        secret_key="b",
        region="us-east-1",
        **options,
    )


def write(to):
    with to.open_output_stream("bucket/d/x") as stream:
        stream.write(b"x" * 1000)


def seen(step, function):
    requests.clear()
    function()
    in_order = sorted(requests)
    stages, end = 0, 0.0
    for began, ended, _ in in_order:
        if began >= end:
            stages, end = stages + 1, ended
    labels = [label for _, _, label in in_order]
    print(f"{step:17} {', '.join(labels):49} one after the other: {stages}")
    return labels, stages


usual, delayed = filesystem(), filesystem(allow_delayed_open=True)
found = [
    seen("write", lambda: write(usual)),
    seen("write, delayed", lambda: write(delayed)),
    seen("delete", lambda: usual.delete_file("bucket/d/x")),
]
expected = [
    (["POST ?uploads", "PUT ?partNumber", "POST ?uploadId"], 3),
    (["PUT"], 1),
    (["HEAD", "DELETE", "PUT d/"], 3),
]
if found != expected:
    sys.exit(f"This has changed. Expected was {expected}")
PYTHON
"$here/venv/bin/python" "$here/seen.py" 2>"$here/log" || { tail -n 5 "$here/log" >&2; exit 1; }

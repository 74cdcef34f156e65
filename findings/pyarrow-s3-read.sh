#!/usr/bin/env bash
# pyarrow's read_table of one column of one S3 object: five requests one after the other, three of
# them HEAD of the same object.
#
# 28 November 2026. Versions: pyarrow 26.0.1, polars 2.1.0, moto 5.2.5 (the server), boto3 1.43.117.
#
# Guess:   three, one after the other: HEAD (the length), the footer, and what is wanted of the three
#          row groups side by side; polars the same.
# Happens: HEAD to look what the path is, HEAD to open it for its schema, the footer, HEAD to open it
#          again for the data, then the row groups side by side: at 100 ms of distance 0.2 s more than
#          guessed. pq.ParquetFile asks HEAD once, but takes one row group after the other
#          (pre_buffer is False there, and True in read_table). polars asks for the last bytes without
#          knowing the length, and is done after two.
#
# Output seen:
#   read_table        HEAD, HEAD, GET, HEAD, GET, GET, GET    one after the other: 5
#   ParquetFile       HEAD, GET, GET, GET, GET                one after the other: 5
#   polars            GET, GET, GET, GET                      one after the other: 2
set -euo pipefail
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
python3 -m venv "$here/venv"
"$here/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 'moto[server]==5.2.5' boto3==1.43.117 polars==2.1.0
cat >"$here/seen.py" <<'PYTHON'
import io
import random
import sys
import threading
import time

import boto3
import polars
import pyarrow
import pyarrow.parquet as parquet
from moto.server import DomainDispatcherApplication, create_backend_app
from pyarrow import fs
from werkzeug.serving import make_server

requests = []


def recorded(application):
    """Every answer takes 100 ms, so that what waits for an answer shows in the instants."""

    def call(environ, start_response):
        began = time.monotonic()
        answer = list(application(environ, start_response))
        time.sleep(0.1)
        requests.append((began, time.monotonic(), environ["REQUEST_METHOD"]))
        return answer

    return call


application = recorded(DomainDispatcherApplication(create_backend_app))
server = make_server("127.0.0.1", 0, application, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = f"127.0.0.1:{server.port}"
login = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
store = boto3.client("s3", endpoint_url=f"http://{endpoint}", **login)
store.create_bucket(Bucket="bucket")
random.seed(1)
columns = {name: [random.random() for _ in range(60_000)] for name in "abc"}
file = io.BytesIO()
parquet.write_table(pyarrow.table(columns), file, row_group_size=20_000)
store.put_object(Bucket="bucket", Key="table.parquet", Body=file.getvalue())
far = fs.S3FileSystem(
    endpoint_override=endpoint, scheme="http", access_key="a", secret_key="b", region="us-east-1"
)
options = {
    "aws_endpoint_url": f"http://{endpoint}",
    "aws_allow_http": "true",
    "aws_access_key_id": "a",
    "aws_secret_access_key": "b",
    "aws_region": "us-east-1",
}


def read_table():
    assert parquet.read_table("bucket/table.parquet", columns=["a"], filesystem=far).num_rows == 60_000


def parquet_file():
    opened = parquet.ParquetFile(far.open_input_file("bucket/table.parquet"))
    assert opened.read(columns=["a"]).num_rows == 60_000


def with_polars():
    name = "s3://bucket/table.parquet"
    assert polars.read_parquet(name, columns=["a"], storage_options=options).height == 60_000


def seen(step, function):
    requests.clear()
    function()
    in_order = sorted(requests)
    stages, end = 0, 0.0
    for began, ended, _ in in_order:
        if began >= end:
            stages, end = stages + 1, ended
    labels = [label for _, _, label in in_order]
    print(f"{step:17} {', '.join(labels):40} one after the other: {stages}")
    return labels, stages


found = [
    seen("read_table", read_table),
    seen("ParquetFile", parquet_file),
    seen("polars", with_polars),
]
expected = [
    (["HEAD", "HEAD", "GET", "HEAD", "GET", "GET", "GET"], 5),
    (["HEAD", "GET", "GET", "GET", "GET"], 5),
    (["GET", "GET", "GET", "GET"], 2),
]
if found != expected:
    sys.exit(f"This has changed. Expected was {expected}")
PYTHON
"$here/venv/bin/python" "$here/seen.py" 2>"$here/log" || { tail -n 5 "$here/log" >&2; exit 1; }

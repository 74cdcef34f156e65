"""What programs of systems/ make of answers that no healthy store gives."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from wanlat.systems import registry

OK, LOADING = b"+OK\r\n", b"-LOADING Redis is loading the dataset in memory\r\n"
REPLICAS, DEMOTED = b":2\r\n", b"-UNBLOCKED instance state changed (master -> replica?)\r\n"
VALUE = b64encode(b"an object").decode()


@contextmanager
def redis_that_answers(answers: Sequence[bytes]) -> Iterator[int]:
    """A server of one connection, which answers each command with the next of `answers`."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as commands:
                for answer in answers:
                    for _ in range(2 * int(commands.readline()[1:])):
                        commands.readline()
                    connection.sendall(answer)
                commands.read()  # until the program has closed

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([OK, REPLICAS], ["ok"]),
        # What was refused, and what follows it: nothing of the first answers the second.
        ([LOADING, LOADING, OK, REPLICAS, LOADING, LOADING], ["fail", "ok", "fail"]),
        ([OK, DEMOTED], ["unknown"]),
        ([OK, b":1\r\n"], ["unknown"]),
    ],
)
def test_redis_says_fail_of_what_was_not_executed_and_of_nothing_else(
    answers: list[bytes], said: list[str]
) -> None:
    with redis_that_answers(answers) as port:
        node = "127.0.0.1"
        assert asked("redis", [node, node, str(port), "2"], "set", len(said)) == said


def asked(
    system: str, arguments: list[str], operation: str, times: int = 1, stand_in: Path | None = None
) -> list[str]:
    """What a system's program says of the same operation so many times: "ok", "fail", ..."""
    program = registry.get(system).directory / "client.py"
    told = {"op": operation, "key": "k", **({"value": VALUE} if operation != "delete" else {})}
    path = os.pathsep.join(filter(None, (str(stand_in or ""), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        input=(json.dumps(told) + "\n") * times,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return [next(iter(json.loads(line))) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("NoAuthError", "fail"),
        ("NoNodeError", "not_found"),
        ("ThrottledOpError", "fail"),
        ("RequestTimeoutError", "unknown"),
        ("OperationTimeoutError", "unknown"),
        ("SystemZookeeperError", "unknown"),
    ],
)
def test_zookeeper_says_fail_of_what_was_refused(raised: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import kazoo.client
from kazoo.exceptions import {raised}

class Client:
    connected = True
    def __init__(self, *_, **__): pass
    def start_async(self): return self
    def wait(self, _): pass
    def create(self, *_): raise {raised}("planted")

kazoo.client.KazooClient = Client
"""
    )
    assert asked("zookeeper", ["127.0.0.1", "1"], "create", stand_in=tmp_path) == [said]


@pytest.mark.parametrize(
    ("operation", "raised", "said"),
    [
        ("write", "OperationFailure", "fail"),
        ("write", "WTimeoutError", "unknown"),
        ("write", "AutoReconnect", "unknown"),
        ("delete", "OperationFailure", "unknown"),
    ],
)
def test_mongodb_says_fail_of_what_was_refused_whole(
    operation: str, raised: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import gridfs, pymongo
from pymongo.errors import {raised}

class Client(dict):
    def __init__(self, *_, **__): self.admin = self
    def __missing__(self, _): return None
    def command(self, _): pass
    __class_getitem__ = classmethod(lambda cls, _: cls)

class Bucket:
    _id = 1
    def __init__(self, _): pass
    def open_download_stream_by_name(self, _): return self
    def upload_from_stream(self, *_): raise {raised}("planted")
    delete = upload_from_stream

gridfs.GridFSBucket, pymongo.MongoClient = Bucket, Client
"""
    )
    assert asked("mongodb", ["one", "two"], operation, stand_in=tmp_path) == [said]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"ok\n", ["ok"]),
        (b"refused full\n", ["fail"]),
        (b"missing k\n", ["not_found"]),
        (b"well\n", ["unknown"]),
        (b"", []),  # it has ended, and oneshot says of the request that nobody knows
        (b"o", []),
    ],
)
def test_what_system_new_writes_takes_no_broken_connection_for_a_refusal(
    answer: bytes, said: list[str]
) -> None:
    def serve() -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as lines:
            lines.readline()
            connection.sendall(answer)

    program = Path(registry.__file__).parent / "engine" / "new_exec_client.py"
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        done = subprocess.run(
            [sys.executable, str(program), "127.0.0.1", str(server.getsockname()[1])],
            input=json.dumps({"op": "write", "key": "k", "value": VALUE}) + "\n",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert [next(iter(json.loads(line))) for line in done.stdout.splitlines()] == said
    assert (done.returncode != 0) == (not said), done.stderr

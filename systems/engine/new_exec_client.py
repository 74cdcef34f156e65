"""Makes the requests that wanlat wants, of one node: a function for each `op` of system.yaml."""

import base64
import socket
import sys

from wanlat.systems.program import Fail, NotFound, serve

# Here a protocol of lines; a store's own client library is as good. Connecting is not timed.
store = socket.create_connection((sys.argv[1], int(sys.argv[2]))).makefile("rw")


def _request(line: str) -> str:
    store.write(line + "\n")
    store.flush()
    reply = store.readline()
    if not reply.endswith("\n"):
        sys.exit("the connection broke")  # nobody knows; the next request gets a new program
    status, _, answer = reply.strip().partition(" ")
    if status == "missing":
        raise NotFound(answer)
    if status == "refused":
        raise Fail(answer)  # it was certainly not done
    if status != "ok":
        raise RuntimeError(reply)  # as any other exception, it leaves that open
    return answer


def write(key: str, value: str) -> None:
    """Write an object, which comes in base64."""
    _request(f"write {key} {value}")


def read(key: str) -> bytes:
    """Return the object that was read."""
    return base64.b64decode(_request(f"read {key}"))


serve(write=write, read=read)

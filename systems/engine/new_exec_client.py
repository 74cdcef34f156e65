"""Asks one node for what wanlat tells it: a function for each `op` of system.yaml."""

import base64
import socket
import sys

from wanlat.systems.program import Fail, NotFound, serve

# Here a protocol of lines; a store's own client library is as good. Connecting is not timed.
store = socket.create_connection((sys.argv[1], int(sys.argv[2]))).makefile("rw")


def _ask(line: str) -> str:
    store.write(line + "\n")
    store.flush()
    said = store.readline()
    if not said.endswith("\n"):
        sys.exit("the connection broke")  # nobody knows; the next request gets a new program
    status, _, answer = said.strip().partition(" ")
    if status == "missing":
        raise NotFound(answer)
    if status == "refused":
        raise Fail(answer)  # it was certainly not done
    if status != "ok":
        raise RuntimeError(said)  # as any other exception, it leaves that open
    return answer


def write(key: str, value: str) -> None:
    """Write an object, which comes in base64."""
    _ask(f"write {key} {value}")


def read(key: str) -> bytes:
    """Return the object that was read."""
    return base64.b64decode(_ask(f"read {key}"))


serve(write=write, read=read)

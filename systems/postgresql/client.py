"""Asks PostgreSQL for what wanlat tells it: writes the primary, reads the target node."""

import base64
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from wanlat.probes.program import Fail, serve

try:
    import psycopg
except ImportError as error:
    sys.exit(f'{error}: pip install "wanlat[postgresql]"')

node, primary, port = sys.argv[1:]


def _session(host: str, synchronous_commit: str) -> psycopg.Connection[Any]:
    """Connect. Nothing is prepared, so that each statement is one request and one answer."""
    return psycopg.connect(
        host=host,
        port=port,
        user="postgres",
        dbname="postgres",
        autocommit=True,
        prepare_threshold=None,
        options=f"-c synchronous_commit={synchronous_commit}",
    )


durable, local, reader = _session(primary, "on"), _session(primary, "local"), _session(node, "on")


def _judged(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Make what the server has refused a failure; where the session broke, nobody knows."""

    @wraps(ask)
    def judged(**told: str) -> Any:
        try:
            return ask(**told)
        except psycopg.OperationalError as error:
            sys.exit(f"{type(error).__name__}: {error}")  # the next request gets a new program
        except psycopg.Error as error:
            raise Fail(f"{error.sqlstate} {error.diag.message_primary}") from error

    return judged


@_judged
def commit(key: str, value: str) -> None:
    """Write an object; it is on the disks of the synchronous standbys too."""
    durable.execute("insert into objects values (%s, %s)", (key, base64.b64decode(value)))


@_judged
def local_commit(key: str, value: str) -> None:
    """Write an object; it is on the primary's disk."""
    local.execute("insert into objects values (%s, %s)", (key, base64.b64decode(value)))


@_judged
def read(key: str) -> bytes:
    """Read an object from the node that is asked."""
    row = reader.execute("select value from objects where key = %s", (key,), binary=True).fetchone()
    if row is None:
        raise Fail("no such key")
    return bytes(row[0])


@_judged
def delete(key: str) -> None:
    """Delete an object, as durably as `commit` writes one."""
    if durable.execute("delete from objects where key = %s", (key,)).rowcount != 1:
        raise Fail("no such key")


serve(commit=commit, local_commit=local_commit, read=read, delete=delete)

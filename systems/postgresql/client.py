"""Makes wanlat's requests of PostgreSQL: writes the primary, reads the target node."""

import base64
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import Any

from wanlat.systems.program import Fail, NotFound, serve

try:
    import psycopg
except ImportError as error:
    sys.exit(f'{error}: pip install "wanlat[clients]"')

node, primary, port = sys.argv[1:]
DURABLE, LOCAL, READER = (primary, "on"), (primary, "local"), (node, "on")
WRITE = """insert into objects values (%s, %s)
    on conflict (key) do update set value = excluded.value"""


@cache
def session(host: str, synchronous_commit: str) -> psycopg.Connection[Any]:
    """Return a session; one that could not be made is tried again when it is wanted.

    Nothing is prepared, so that each statement is one request and one answer.
    """
    try:
        return psycopg.connect(
            host=host,
            port=port,
            user="postgres",
            dbname="postgres",
            autocommit=True,
            connect_timeout=2,
            prepare_threshold=None,
            options=f"-c synchronous_commit={synchronous_commit}",
        )
    except psycopg.OperationalError as error:
        raise Fail(str(error)) from error


def _judged(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Make what the server has refused a failure; where the session broke, that is open."""

    @wraps(operation)
    def judged(**arguments: str) -> Any:
        try:
            return operation(**arguments)
        except psycopg.OperationalError as error:
            sys.exit(f"{type(error).__name__}: {error}")  # the next request gets a new program
        except psycopg.Error as error:
            raise Fail(f"{error.sqlstate} {error.diag.message_primary}") from error

    return judged


@_judged
def commit(key: str, value: str) -> None:
    """Write an object; it is on the disks of the synchronous standbys too."""
    session(*DURABLE).execute(WRITE, (key, base64.b64decode(value)))


@_judged
def local_commit(key: str, value: str) -> None:
    """Write an object; it is on the primary's disk."""
    session(*LOCAL).execute(WRITE, (key, base64.b64decode(value)))


@_judged
def read(key: str) -> bytes:
    """Read an object from the target node."""
    query = "select value from objects where key = %s"
    row = session(*READER).execute(query, (key,), binary=True).fetchone()
    if row is None:
        raise NotFound("no such key")
    return bytes(row[0])


@_judged
def delete(key: str) -> None:
    """Delete an object, as durably as `commit` writes one."""
    if session(*DURABLE).execute("delete from objects where key = %s", (key,)).rowcount != 1:
        raise NotFound("no such key")


for kind in (DURABLE, LOCAL, READER):
    with suppress(Fail):
        session(*kind)
serve(commit=commit, local_commit=local_commit, read=read, delete=delete)

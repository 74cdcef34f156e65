"""Makes wanlat's requests of ZooKeeper, through kazoo and the target node."""

import base64
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from wanlat.systems.program import Fail, NotFound, serve

try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import (
        ConnectionClosedError,
        ConnectionLoss,
        NodeExistsError,
        NoNodeError,
        RequestTimeoutError,
        SessionExpiredError,
        ZookeeperError,
    )
except ImportError as error:
    sys.exit(f'{error}: pip install "wanlat[clients]"')

host, port = sys.argv[1:]
CONNECT_S = 2
BROKEN = (ConnectionLoss, ConnectionClosedError, SessionExpiredError)
REFUSED = -100  # codes from here down are of requests that were not executed (KeeperException.Code)
client = KazooClient(f"{host}:{port}", connection_retry={"max_tries": -1, "max_delay": 1})


def _judged(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Make what the server has refused a failure; where the session broke, that is open."""

    @wraps(operation)
    def judged(**arguments: str) -> Any:
        if not client.connected:
            raise Fail(f"{host} has no session for us")
        try:
            return operation(**arguments)
        except NoNodeError as error:
            raise NotFound("no such key") from error
        except BROKEN as error:
            sys.exit(f"{type(error).__name__}: {error}")  # the next request gets a new program
        except ZookeeperError as error:
            if isinstance(error, RequestTimeoutError) or error.code > REFUSED:
                raise
            raise Fail(f"{type(error).__name__}: {error}") from error

    return judged


@_judged
def create(key: str, value: str) -> None:
    """Write an object; one that is there already takes a second request."""
    data = base64.b64decode(value)
    try:
        client.create(f"/{key}", data)
    except NodeExistsError:
        client.set(f"/{key}", data)


@_judged
def get(key: str) -> bytes:
    """Read an object from the target node, as far as that has come."""
    return bytes(client.get(f"/{key}")[0])


@_judged
def sync_get(key: str) -> bytes:
    """Read an object once the node has what the leader has; both requests travel together."""
    synced, read = client.sync_async(f"/{key}"), client.get_async(f"/{key}")
    synced.get()
    return bytes(read.get()[0])


@_judged
def delete(key: str) -> None:
    """Delete an object."""
    client.delete(f"/{key}")


client.start_async().wait(CONNECT_S)  # what is down now may be up later
serve(create=create, get=get, sync_get=sync_get, delete=delete)

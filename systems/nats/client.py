"""Makes wanlat's requests of NATS JetStream, through the target node."""

import asyncio
import base64
import json
import sys
from contextlib import suppress
from functools import cache
from typing import Any

from wanlat.systems.program import Fail, NotFound, serve

try:
    import nats
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import Error, NoRespondersError
except ImportError as error:
    sys.exit(f'{error}: pip install "wanlat[clients]"')

server = f"nats://{sys.argv[1]}:{sys.argv[2]}"
IS_REPEATED = sys.argv[3:4] == ["STREAM.INFO.objects"]  # by system.yaml
# While the stream has no leader there is no answer. Of requests oneshot's deadline comes first.
DEADLINE_S = 5 if IS_REPEATED else 3600
NO_MESSAGE, SERVER_ERROR = 10037, 500
loop = asyncio.new_event_loop()


@cache
def connection() -> Client:
    """Return the connection; one that could not be made is tried again when it is wanted."""
    try:
        once = nats.connect(
            server,
            allow_reconnect=False,
            connect_timeout=2,
            max_reconnect_attempts=1,  # of the first connection too, without any end otherwise
            reconnect_time_wait=0,
        )
        return loop.run_until_complete(once)
    except (OSError, Error) as error:
        raise Fail(f"{server}: {error}") from error


def send(subject: str, data: bytes) -> Msg:
    """Send a message and return the answer. Ends the program when the connection breaks."""
    try:
        awaited = connection().request(subject, data, timeout=DEADLINE_S)
        return loop.run_until_complete(awaited)
    except NoRespondersError as error:
        raise Fail("nobody leads the stream") from error
    except (OSError, Error, asyncio.CancelledError) as error:
        sys.exit(f"{type(error).__name__}: {error}")  # the next request gets a new program


def answer(message: Msg) -> Any:
    """Return what JetStream answers, which may be an error."""
    reply = json.loads(message.data)
    if wrong := reply.get("error"):
        if wrong["code"] >= SERVER_ERROR:  # of a server that may not be the one that did it
            raise RuntimeError(wrong["description"])
        kind = NotFound if wrong["err_code"] == NO_MESSAGE else Fail
        raise kind(wrong["description"])
    return reply


def api(call: str, request: str) -> Any:
    """Call JetStream's API."""
    return answer(send(f"$JS.API.{call}", request.encode()))


def publish(key: str, value: str) -> None:
    """Write an object, as the last message of its subject."""
    answer(send(f"objects.{key}", base64.b64decode(value)))


def get(key: str) -> bytes:
    """Read an object from the stream's leader."""
    stored = api("STREAM.MSG.GET.objects", json.dumps({"last_by_subj": f"objects.{key}"}))
    return base64.b64decode(stored["message"]["data"])


def direct_get(key: str) -> bytes:
    """Read an object from any replica."""
    stored = send(f"$JS.API.DIRECT.GET.objects.objects.{key}", b"")
    if (stored.headers or {}).get("Status"):
        raise NotFound("no such key")
    return stored.data


def delete(key: str) -> None:
    """Delete an object."""
    if not api("STREAM.PURGE.objects", json.dumps({"filter": f"objects.{key}"}))["purged"]:
        raise NotFound("no such key")


if len(sys.argv) > 3:  # a step of system.yaml
    sys.exit(print(json.dumps(api(*sys.argv[3:]))))
with suppress(Fail):
    connection()
serve(publish=publish, get=get, direct_get=direct_get, delete=delete)

"""An ASGI program: objects of MongoDB's GridFS over HTTP, by PUT, GET, HEAD and DELETE of /KEY."""

import os
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

try:
    from gridfs import AsyncGridFSBucket
    from gridfs.errors import NoFile
    from pymongo import AsyncMongoClient
    from pymongo.errors import PyMongoError
except ImportError as error:
    sys.exit(f'{error}: pip install "wanlat[clients]"')

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

SELECTION_MS = 5000
store = AsyncMongoClient[dict[str, Any]](
    os.environ["MONGODB"], serverSelectionTimeoutMS=SELECTION_MS, retryWrites=False
)
bucket = AsyncGridFSBucket(store["wanlat"])


async def get(key: str, _: Receive) -> tuple[int, int, bytes]:
    """Answer with the newest file of that name."""
    file = await bucket.open_download_stream_by_name(key)
    return 200, file.length, await file.read()


async def head(key: str, _: Receive) -> tuple[int, int, bytes]:
    """Answer with how long that is."""
    file = await bucket.open_download_stream_by_name(key)
    return 200, file.length, b""


async def put(key: str, receive: Receive) -> tuple[int, int, bytes]:
    """Store what is sent as a file of that name."""
    async with bucket.open_upload_stream(key) as file:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                await file.abort()
                break
            await file.write(message.get("body", b""))
            more = message.get("more_body", False)
    return 201, 0, b""


async def delete(key: str, _: Receive) -> tuple[int, int, bytes]:
    """Delete the newest file of that name."""
    file = await bucket.open_download_stream_by_name(key)
    await bucket.delete(file._id)
    return 204, 0, b""


ANSWERS = {"GET": get, "HEAD": head, "PUT": put, "DELETE": delete}


async def app(scope: Message, receive: Receive, send: Send) -> None:
    """Answer one request."""
    length, body = 0, b""
    try:
        if scope["path"] == "/ready":
            await store.admin.command("ping")
            status = 204
        elif scope["method"] in ANSWERS:
            status, length, body = await ANSWERS[scope["method"]](scope["path"][1:], receive)
        else:
            status = 501
    except NoFile:
        status = 404
    except PyMongoError as error:
        print(f"{scope['method']} {scope['path']}: {error}", file=sys.stderr, flush=True)
        status = 503
    headers = [(b"content-length", str(length).encode())] if status != 204 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Makes wanlat's requests of MongoDB's GridFS, through pymongo."""

import base64
import json
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from wanlat.systems.program import Fail, NotFound, serve

try:
    from bson import json_util
    from gridfs import GridFSBucket
    from gridfs.errors import NoFile
    from pymongo import MongoClient
    from pymongo.errors import OperationFailure, PyMongoError, WriteConcernError
except ImportError as error:
    sys.exit(f'{error}: pip install "wanlat[clients]"')

SELECTION_MS = 5000
to_write, to_read = (
    MongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=SELECTION_MS, retryWrites=False)
    for uri in sys.argv[1:3]
)
written, read_from = GridFSBucket(to_write["wanlat"]), GridFSBucket(to_read["wanlat"])


def _judged(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Raise what it means that the server has refused, or has not."""

    @wraps(operation)
    def judged(**arguments: str) -> Any:
        try:
            return operation(**arguments)
        except NoFile as error:
            raise NotFound("no such file") from error
        except WriteConcernError:  # it was executed, and not replicated yet
            raise
        except OperationFailure as error:
            raise Fail(f"{error.code} {error}") from error

    return judged


@_judged
def write(key: str, value: str) -> None:
    """Write an object: its chunks, then the file that names them."""
    written.upload_from_stream(key, base64.b64decode(value))


@_judged
def read(key: str) -> bytes:
    """Read an object from the target node."""
    return bytes(read_from.open_download_stream_by_name(key).read())


@_judged
def _number(key: str) -> Any:
    return written.open_download_stream_by_name(key)._id


def delete(key: str) -> None:
    """Delete an object: the file, then its chunks. Where either is refused, that is open."""
    written.delete(_number(key=key))


if len(sys.argv) > 3:  # a step of system.yaml: a command of the administrator's
    with MongoClient[dict[str, Any]](sys.argv[2]) as administrator:
        sys.exit(print(json_util.dumps(administrator.admin.command(json.loads(sys.argv[3])))))
for client in (to_write, to_read):
    try:
        client.admin.command("ping")
    except PyMongoError:  # what is down now may be up later
        continue
serve(write=write, read=read, delete=delete)

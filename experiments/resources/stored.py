"""What a run has stored: the bytes that disk space is set against."""

from __future__ import annotations

from wanlat.probes.plan import Request
from wanlat.probes.records import Sample

_PUTS = ("PutObject", "Put")
_REMOVES = ("RemoveObject", "Delete")


class Stored:
    """Counts objects that were acknowledged and not removed since.

    ``is_known`` is False once a write or a removal had another end: nobody knows then whether it
    is there. (A method of somebody's own gRPC service is no write that is known here.)
    """

    def __init__(self) -> None:
        self.is_known = True
        self._bytes: dict[tuple[str | None, str | bytes | None], int] = {}
        self._written_bytes = 0

    def take(self, request: Request, sample: Sample) -> None:
        """Take note of a request that was answered."""
        key = (request.bucket, request.key)
        if request.endpoint in _PUTS:
            if sample.outcome == "ok":
                self._bytes[key] = request.object_bytes or 0
                self._written_bytes += request.object_bytes or 0
        elif request.endpoint in _REMOVES:
            if sample.outcome == "ok":
                self._bytes.pop(key, None)
        else:
            return
        self.is_known = self.is_known and sample.outcome == "ok"

    def facts(self) -> dict[str, int | bool]:
        """Return what the manifest says of it."""
        return {
            "stored_objects": len(self._bytes),
            "stored_bytes": sum(self._bytes.values()),
            "stored_is_known": self.is_known,
            "put_bytes": self._written_bytes,
        }

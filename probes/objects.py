"""Objects, as any store has them: for each operation a request that lacks key and bytes.

S3 has them in buckets at keys that are text; Bob, and what a definition writes out, at keys of
eight bytes.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from wanlat.probes.header import MAX_MESSAGE_BYTES
from wanlat.probes.method_plan import Call, Measured
from wanlat.probes.plan import KEY_BYTES, Phase, Placement, Request
from wanlat.probes.protocols import PLANNERS
from wanlat.systems.engine.protocols import PROTOCOLS, Api, Objects, Operation
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Size

C = TypeVar("C", bound=Call)

_MAX_MESSAGE = Size(MAX_MESSAGE_BYTES)
_AROUND_OBJECT = 1024
"""Bytes that a message which carries an object has beside it, at most: the key, the time, tags."""


HOW_OBJECTS = "name its endpoints under `objects: {write: …, read: …, delete: …}` in it."
"""What a definition without objects lacks."""


@dataclass(frozen=True)
class ObjectApi:
    """How objects are requested of a store."""

    blanks: Mapping[Operation, Request]
    largest: Size | None = None
    """That it takes, by its definition."""
    in_messages: bool = False
    """Whether requests and answers are messages, of which the longest is known."""
    lists: str | None = None
    """The endpoint that lists keys with a prefix, where there is one that is known."""

    @classmethod
    def over(
        cls, api: Api, objects: Objects | None = None, own: Mapping[str, Measured] | None = None
    ) -> ObjectApi | None:
        """Return how objects are requested over a protocol; None where that is not known.

        ``objects``: which endpoint does what, if not the protocol's usual; ``own``: endpoints of
        the system's own.
        """
        objects, own = objects or PROTOCOLS[api].objects, own or {}
        if not objects.is_whole:
            return None
        blanks: dict[Operation, Request] = {
            does: replace(own[name].request_of(0, "measure", ""), operation=does)
            if name in own
            else PLANNERS[api].blank(name)
            for does, name in objects.names.items()
            if does != "list"
        }
        usual = PROTOCOLS[api]
        return cls(blanks, objects.largest, usual.in_messages, usual.objects.list)

    @property
    def in_buckets(self) -> bool:
        """Whether objects are in buckets."""
        return self.blanks["write"].bucket is not None

    @property
    def text_keys(self) -> bool:
        """Whether keys are text; else bytes, as hex digits."""
        return self.in_buckets

    def has(self, does: Operation) -> bool:
        """Whether a store has a request for that."""
        return does in self.blanks

    def known(self, call: C) -> C:
        """Return a call, and what prepares it, with what they do to objects."""
        if isinstance(call, Measured) and call.prepare is not None:
            call = replace(call, prepare=self.known(call.prepare))
        for does, blank in self.blanks.items():
            if (blank.endpoint, blank.request) == (call.endpoint, call.request):
                return replace(call, operation=does)
        return replace(call, operation=None)

    def name(self, operation: Operation) -> str:
        """Return what samples call an operation."""
        return self.blanks[operation].called

    def request(
        self,
        operation: Operation,
        seq: int,
        key: str,
        *,
        bucket: str,
        object_bytes: int,
        body_seed: int,
        phase: Phase = "measure",
        deadline_ms: int | None = None,
    ) -> Request:
        """Return the request that does this to an object."""
        blank = self.blanks[operation]
        given: dict[str, Any] = {
            "bucket": bucket,
            "object_bytes": object_bytes,
            "body_seed": body_seed,
        }
        used = {name: given[name] for name in given if getattr(blank, name) is not None}
        return replace(blank, seq=seq, phase=phase, key=key, deadline_ms=deadline_ms, **used)

    def buckets(self, names: Sequence[str]) -> list[Request]:
        """Return the requests that make what objects are put into, where there is such a thing."""
        numbered = enumerate(names if self.in_buckets else ())
        return [Request(seq, "prepare", "CreateBucket", name) for seq, name in numbered]

    def placement(
        self, replicas: Callable[[bytes], Sequence[str] | None], node: str, key: str | None
    ) -> Placement:
        """Return whether ``node`` holds a replica of a key, where that is known."""
        holders = None if self.text_keys or key is None else replicas(bytes.fromhex(key))
        if holders is None:
            return "unknown"
        return "local" if node in holders else "remote"

    def key(self, seed: int, owner: str, number: int) -> str:
        """Return the key of an owner's object number so and so: no other has it in this run."""
        if self.text_keys:
            return f"{owner.replace(' ', '-')}/{number:06}"
        return random.Random(f"{seed}/{owner}/{number}").randbytes(KEY_BYTES).hex()

    def native(self, key: str) -> str:
        """Return a text as a key: where these are bytes, a hash of it."""
        return key if self.text_keys else hashlib.sha256(key.encode()).digest()[:KEY_BYTES].hex()

    def check_size(self, system: str, size: Size, max_message: Size = _MAX_MESSAGE) -> None:
        """Raise UserError for objects that the store, or a message, is too small for."""
        if self.largest is not None and size > self.largest:
            raise UserError(
                f"object_size {size} is more than system {system} takes: its definition says "
                f"`objects: {{largest: {self.largest}}}`. Make it {self.largest} or less."
            )
        limit = max(max_message.bytes - _AROUND_OBJECT, 0)
        if self.in_messages and size.bytes > limit:
            raise UserError(
                f"object_size {size}, with the key and the time that go with it, does not fit into "
                f"a gRPC message of at most {max_message}, so that system {system} cannot be sent "
                f"it. Make it {Size(limit)} or less; or raise `max_message` in the study, where "
                "the store takes longer messages (quorum takes objects up to 128MiB)."
            )

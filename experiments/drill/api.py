"""What putting, getting and removing an object is, on S3 and on Bob's API."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import ClassVar

from wanlat.experiments.config.prefill import BUCKET
from wanlat.experiments.drill.objects import Object
from wanlat.probes.oneshot import prepare
from wanlat.probes.plan import KEY_BYTES, GrpcHeader, Header, Phase, Placement, PlanHeader, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Api, Cluster
from wanlat.topologies.errors import UserError

_MESSAGE_AROUND_OBJECT = 1024
"""What a message that carries an object has beside it, at most: the key, the time."""


class StoreApi(ABC):
    """One of the ways to speak to a store, as far as a drill speaks it."""

    puts: ClassVar[str]
    """The endpoint, as samples call it."""
    gets: ClassVar[str]
    removes: ClassVar[str]

    @abstractmethod
    def header(self, cluster: Cluster, node: str, deadline_ms: int, object_bytes: int) -> Header:
        """Return where to ask ``node``, for objects up to so many bytes."""

    @abstractmethod
    def key(self, seed: int, owner: str, number: int) -> str:
        """Return the key of an owner's object number so and so: no other has it in this drill."""

    @abstractmethod
    def put(self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None) -> Request:
        """Return the request that puts an object."""

    @abstractmethod
    def get(self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None) -> Request:
        """Return the request that gets an object; its answer is ok when it holds that one."""

    @abstractmethod
    def remove(
        self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None
    ) -> Request:
        """Return the request that removes an object."""

    @abstractmethod
    def is_not_found(self, sample: Sample) -> bool:
        """Did the store answer that there is no such object?"""

    def placement(self, cluster: Cluster, node: str, key: str) -> Placement:  # noqa: ARG002
        """Return whether ``node`` holds a replica of a key."""
        return "unknown"

    def make_ready(self, cluster: Cluster, spawn: Spawn, header: Header) -> None:  # noqa: B027
        """Make what objects are put into, where there is such a thing."""


class S3(StoreApi):
    """Objects in one bucket."""

    puts, gets, removes = "PutObject", "GetObject", "RemoveObject"

    def header(self, cluster: Cluster, node: str, deadline_ms: int, object_bytes: int) -> Header:  # noqa: ARG002
        """As the cluster says."""
        s3 = cluster.s3(node)
        return PlanHeader(
            host=s3.host,
            port=s3.port,
            region=s3.region,
            access_key=s3.access_key,
            secret_key=s3.secret_key,
            deadline_ms=deadline_ms,
        )

    def key(self, seed: int, owner: str, number: int) -> str:  # noqa: ARG002
        """Text that says who put it."""
        return f"{owner.replace(' ', '-')}/{number:06}"

    def put(self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None) -> Request:
        """PutObject."""
        return self._request(self.puts, seq, what, phase, deadline_ms)

    def get(self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None) -> Request:
        """GetObject."""
        return self._request(self.gets, seq, what, phase, deadline_ms)

    def remove(
        self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None
    ) -> Request:
        """RemoveObject."""
        return Request(seq, phase, self.removes, BUCKET, what.key, deadline_ms=deadline_ms)

    def is_not_found(self, sample: Sample) -> bool:
        """404: of the key, or of the bucket that it is in."""
        return sample.status == 404

    def make_ready(self, cluster: Cluster, spawn: Spawn, header: Header) -> None:
        """Make the bucket."""
        cluster.create_bucket(BUCKET)
        bucket = Request(0, "prepare", "CreateBucket", BUCKET)
        prepare(spawn, header, [bucket], lambda _, __: None)

    def _request(
        self, endpoint: str, seq: int, what: Object, phase: Phase, deadline_ms: int | None
    ) -> Request:
        return Request(
            seq,
            phase,
            endpoint,
            BUCKET,
            what.key,
            object_bytes=what.object_bytes,
            body_seed=what.body_seed,
            deadline_ms=deadline_ms,
        )


class Bob(StoreApi):
    """Objects at keys of eight bytes."""

    puts, gets, removes = "Put", "Get", "Delete"

    def header(self, cluster: Cluster, node: str, deadline_ms: int, object_bytes: int) -> Header:
        """As the cluster says."""
        grpc = cluster.grpc(node)
        header = GrpcHeader(host=grpc.host, port=grpc.port, deadline_ms=deadline_ms)
        least = object_bytes + _MESSAGE_AROUND_OBJECT
        if header.max_message_bytes < least:
            raise UserError(
                f"An object of {object_bytes} bytes does not fit into a message of Bob's API, "
                f"which has {header.max_message_bytes} bytes at most. Make `object_size` smaller."
            )
        return header

    def key(self, seed: int, owner: str, number: int) -> str:
        """Random bytes, as hex digits."""
        return random.Random(f"{seed}/{owner}/{number}").randbytes(KEY_BYTES).hex()

    def put(self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None) -> Request:
        """Put."""
        return self._request(self.puts, seq, what, phase, deadline_ms)

    def get(self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None) -> Request:
        """Get."""
        return self._request(self.gets, seq, what, phase, deadline_ms)

    def remove(
        self, seq: int, what: Object, phase: Phase, deadline_ms: int | None = None
    ) -> Request:
        """Delete."""
        return Request(seq, phase, self.removes, key=what.key, deadline_ms=deadline_ms)

    def is_not_found(self, sample: Sample) -> bool:
        """gRPC's NOT_FOUND, or the same in the words of the answer."""
        return sample.grpc_status == 5 or "KeyNotFound" in (sample.error or "")

    def placement(self, cluster: Cluster, node: str, key: str) -> Placement:
        """By the vdisk of the key."""
        holders = cluster.replicas(bytes.fromhex(key))
        if holders is None:
            return "unknown"
        return "local" if node in holders else "remote"

    def _request(
        self, endpoint: str, seq: int, what: Object, phase: Phase, deadline_ms: int | None
    ) -> Request:
        return Request(
            seq,
            phase,
            endpoint,
            key=what.key,
            object_bytes=what.object_bytes,
            body_seed=what.body_seed,
            deadline_ms=deadline_ms,
        )


def api_of(api: Api) -> StoreApi:
    """Return the API of a cluster. Raises UserError where a drill cannot speak it."""
    match api:
        case "s3":
            return S3()
        case "bob":
            return Bob()
        case "grpc":
            raise UserError(
                "A drill puts, gets and removes objects, and over a gRPC service of your own it "
                "does not know how. It speaks S3 and Bob's API."
            )

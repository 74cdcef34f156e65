"""A drill's requests: to put, get and remove objects on S3 and Bob's API, and who sends them."""

from __future__ import annotations

import random
import select
import threading
import time
from typing import Literal

from wanlat.emulator.lab import Lab
from wanlat.experiments.config.load import BUCKET
from wanlat.experiments.drill.ledger import Object
from wanlat.experiments.open_loop import unanswered
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.oneshot import Oneshot, prepare
from wanlat.probes.plan import KEY_BYTES, GrpcHeader, Header, Placement, PlanHeader, Request
from wanlat.probes.process import Closing, Process, Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Api, Cluster
from wanlat.topologies.errors import UserError

_ENDPOINTS = {
    "s3": ("PutObject", "GetObject", "RemoveObject"),
    "bob": ("Put", "Get", "Delete"),
}
"""As samples call them."""
_GRPC_NOT_FOUND = 5
_MESSAGE_AROUND_OBJECT = 1024
"""What a message that carries an object has beside it, at most: the key, the time."""
_POLL_MS = 50
"""How soon a stop is heeded while a request is on its way."""
_DEATHS = 3


class StoreApi:
    """One of the ways to speak to a store, as far as a drill speaks it: S3 with objects in one
    bucket, or Bob's API with objects at keys of eight bytes.
    """

    def __init__(self, api: Literal["s3", "bob"]) -> None:
        self.is_s3 = api == "s3"
        self.puts, self.gets, self.removes = _ENDPOINTS[api]

    def header(self, cluster: Cluster, node: str, deadline_ms: int, object_bytes: int) -> Header:
        """Return where to ask ``node``, for objects up to so many bytes.

        Raises UserError where they fit into no message.
        """
        if self.is_s3:
            s3 = cluster.s3(node)
            who = (s3.region, s3.access_key, s3.secret_key)
            return PlanHeader(s3.host, s3.port, *who, deadline_ms=deadline_ms)
        grpc = cluster.grpc(node)
        header = GrpcHeader(host=grpc.host, port=grpc.port, deadline_ms=deadline_ms)
        if header.max_message_bytes < object_bytes + _MESSAGE_AROUND_OBJECT:
            raise UserError(
                f"An object of {object_bytes} bytes does not fit into a message of Bob's API, "
                f"which has {header.max_message_bytes} bytes at most. Make `object_size` smaller."
            )
        return header

    def key(self, seed: int, owner: str, number: int) -> str:
        """Return the key of an owner's object number so and so: no other has it in this drill."""
        if self.is_s3:
            return f"{owner.replace(' ', '-')}/{number:06}"
        return random.Random(f"{seed}/{owner}/{number}").randbytes(KEY_BYTES).hex()

    def is_not_found(self, sample: Sample) -> bool:
        """Did the store answer that there is no such object (or no bucket that it could be in)?"""
        if self.is_s3:
            return sample.status == 404
        return sample.grpc_status == _GRPC_NOT_FOUND or "KeyNotFound" in (sample.error or "")

    def placement(self, cluster: Cluster, node: str, key: str | None) -> Placement:
        """Return whether ``node`` holds a replica of a key: Bob's vdisks say it."""
        holders = None if self.is_s3 or key is None else cluster.replicas(bytes.fromhex(key))
        if holders is None:
            return "unknown"
        return "local" if node in holders else "remote"

    def make_ready(self, cluster: Cluster, spawn: Spawn, header: Header) -> None:
        """Make what objects are put into, where there is such a thing."""
        if self.is_s3:
            cluster.create_bucket(BUCKET)
            bucket = Request(0, "prepare", "CreateBucket", BUCKET)
            prepare(spawn, header, [bucket], lambda _, __: None)

    def put(self, seq: int, what: Object, deadline_ms: int | None = None) -> Request:
        """Return the request that puts an object."""
        return self._request(self.puts, seq, what, deadline_ms)

    def get(self, seq: int, what: Object, deadline_ms: int | None = None) -> Request:
        """Return the request that gets an object; its answer is ok when it holds that one."""
        return self._request(self.gets, seq, what, deadline_ms)

    def remove(self, seq: int, what: Object, deadline_ms: int | None = None) -> Request:
        """Return the request that removes an object."""
        return self._request(self.removes, seq, what, deadline_ms)

    def _request(self, endpoint: str, seq: int, what: Object, deadline_ms: int | None) -> Request:
        has_body = endpoint != self.removes
        return Request(
            seq,
            "measure",
            endpoint,
            BUCKET if self.is_s3 else None,
            what.key,
            object_bytes=what.object_bytes if has_body else None,
            body_seed=what.body_seed if has_body else None,
            deadline_ms=deadline_ms,
        )


def api_of(api: Api) -> StoreApi:
    """Return the API of a cluster. Raises UserError where a drill cannot speak it."""
    if api == "grpc":
        raise UserError(
            "A drill puts, gets and removes objects, and over a gRPC service of your own it does "
            "not know how. It speaks S3 and Bob's API."
        )
    return StoreApi(api)


def spawn_on(lab: Lab, node: str) -> Spawn:
    """Return what starts programs on a node."""

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return lab.spawn(node, argv, stdin=stdin, stdout=stdout, stderr=stderr)

    return spawn


class Sender(Closing):
    """One oneshot process, which is replaced when it dies: one request after another.

    A context manager; of one thread.
    """

    def __init__(self, spawn: Spawn, header: Header, stop: threading.Event) -> None:
        """Start it. When ``stop`` is set it waits for no answer any more."""
        self._spawn = spawn
        self._header = header
        self._stop = stop
        self._deaths = 0
        self._oneshot: Oneshot | None = None
        self.make_ready()

    def make_ready(self) -> Oneshot:
        """Have a process that runs, so that the next request need not wait for one."""
        if self._oneshot is None:
            self._oneshot = Oneshot(self._spawn, self._header)
        return self._oneshot

    def ask(self, request: Request) -> Sample:
        """Send a request and return its sample.

        It is `unknown` when the process dies or ``stop`` is set meanwhile: it may have left at any
        time since it was handed over. Raises ProbeFailed when one process after another dies, and
        MachineError when the lab has ended.
        """
        oneshot, handed_ns = self.make_ready(), time.monotonic_ns()
        try:
            oneshot.send(request)
            if self._is_answered(oneshot):
                sample = oneshot.receive()
                self._deaths = 0
                return sample
            why = "abandoned: the run was stopped"
        except ProbeFailed as error:
            self._deaths += 1
            if self._deaths >= _DEATHS:
                raise
            why = f"the probe ended: {error}"
        self.close()
        return unanswered(request.seq, request.endpoint, handed_ns, why)

    def close(self) -> None:
        """End the process. May be called again, as may ``ask``."""
        oneshot, self._oneshot = self._oneshot, None
        if oneshot is not None:
            oneshot.close()

    def _is_answered(self, oneshot: Oneshot) -> bool:
        """Wait for an answer, or for the end of who awaits it; False when told to stop."""
        poll = select.poll()
        poll.register(oneshot.fileno(), select.POLLIN)
        while not poll.poll(_POLL_MS):
            if self._stop.is_set():
                return False
            if oneshot.is_lost():
                return True  # receiving will say so
        return True

"""The plan of requests to Bob's gRPC API: which, on which keys, near and far.

Whether the target node holds a replica of a key decides how long a request takes, and a
mean over both kinds means nothing. So keys are drawn at random until there are enough of each
placement, and every endpoint is measured ``samples`` times on each: on ``local`` and on
``remote`` keys, or on the one kind that there is.

Every request is on keys that no other request disturbs:

- Get and Exist read objects of their own, many instead of one, each about once; when objects are
  large there are fewer (``wanlat.probes.plan.read_objects``).
  Where objects were prefilled they read these instead, drawn over all (``probes.prefilled``).
- Put writes a fresh key each time.
- Delete removes an object that was made for it.
- With ``one_key``, all of Put overwrite one key of each placement, and Get and Exist read it. The
  bytes stay the same: Bob takes the later of two writes by their time in whole seconds, so that of
  two writes of one second either may be read.
- Ping has no key, so its placement is ``unknown``.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from itertools import count, islice
from typing import Any, ClassVar, Literal, get_args

from wanlat.probes.fewer import Turn
from wanlat.probes.plan import (
    BOB_KEYED,
    KEY_BYTES,
    Phase,
    Placement,
    Replicas,
    Request,
    StepsPlan,
    Wanted,
    body_seed,
    in_steps,
    read_objects,
)
from wanlat.probes.prefilled import Prefilled
from wanlat.probes.protocols.grpc import GrpcPlanner
from wanlat.systems.engine.protocols import PROTOCOLS

BobEndpoint = Literal["Put", "Get", "Exist", "Delete", "Ping"]

_READS = ("Get", "Exist")

_LOOKED_AT = 20_000
"""Keys, until a placement that did not come up is taken not to exist."""


class BobPlanner(GrpcPlanner):
    """Endpoints of its own, on keys near and far."""

    name = "bob"
    endpoints = get_args(BobEndpoint)
    written: ClassVar[str] = ""

    def plan(self, wanted: Wanted) -> StepsPlan:
        """Return ``samples`` requests to each endpoint and placement, after ``warmup``, a step.

        No step writes or removes a key of another one, unless with ``one_key``. Raises what
        ``replicas`` raises.
        """
        keys = Keys(wanted.seed, wanted.target, wanted.replicas)
        maker = _Maker(wanted.object_bytes, wanted.seed, keys, one_key=wanted.one_key)
        turns = _turns(wanted.endpoints, keys)
        read_placements = {placement for endpoint, placement in turns if endpoint in _READS}
        prefilled, repeats = wanted.prefilled, wanted.steps * (wanted.samples + wanted.warmup)
        if prefilled is not None and prefilled.is_read and not wanted.one_key:
            maker.read_prefilled(prefilled, read_placements, repeats)
        read_bytes = wanted.object_bytes * len(read_placements)
        reads = 1 if wanted.one_key else read_objects(wanted.samples, read_bytes, wanted.steps)
        prepare = maker.prepare(turns, reads, removals=repeats)
        steps = in_steps(turns, wanted, lambda phase, turn: maker.request(phase, *turn))
        return StepsPlan(tuple(prepare), steps, wanted.seed)

    def turns(self, wanted: Wanted) -> list[Turn]:
        """Return the endpoints, each with the placements that keys have here."""
        return [*_turns(wanted.endpoints, Keys(wanted.seed, wanted.target, wanted.replicas))]

    def blank(self, endpoint: str) -> Request:
        """Return the request to an endpoint that lacks key and bytes."""
        does = PROTOCOLS["bob"].objects.does(endpoint)
        carries: dict[str, Any] = {}
        if does in ("write", "read"):
            carries = {"object_bytes": 0, "body_seed": 0}
        elif does == "exists":
            carries = {"exists": True}
        return Request(0, "measure", endpoint, None, "00" * KEY_BYTES, **carries)


def _turns(endpoints: Sequence[BobEndpoint], keys: Keys) -> list[tuple[BobEndpoint, Placement]]:
    keyless: Sequence[Placement] = ("unknown",)
    keyed = keys.placements() if set(endpoints) & set(BOB_KEYED) else keyless
    return [
        (endpoint, placement)
        for endpoint in endpoints
        for placement in (keyed if endpoint in BOB_KEYED else keyless)
    ]


class Keys:
    """Random keys, no two alike, by where they lie as seen from the target node."""

    def __init__(self, seed: int, target: str, replicas: Replicas) -> None:
        self._random = random.Random(f"{seed}/keys")
        self._target = target
        self._replicas = replicas
        self._used: set[bytes] = set()
        self._waiting: defaultdict[Placement, deque[str]] = defaultdict(deque)

    def placements(self) -> tuple[Placement, ...]:
        """Return the placements that keys have here, in the order local, remote, unknown."""
        for _ in range(_LOOKED_AT):
            if self._waiting["unknown"] or (self._waiting["local"] and self._waiting["remote"]):
                break
            self._draw()
        return tuple(name for name in get_args(Placement) if self._waiting[name])

    def take(self, placement: Placement) -> str:
        """Return a fresh key of a placement that exists, as hex digits."""
        while not self._waiting[placement]:
            self._draw()
        return self._waiting[placement].popleft()

    def _draw(self) -> None:
        key = self._random.randbytes(KEY_BYTES)
        if key in self._used:
            return
        self._used.add(key)
        self._waiting[self.placement(key)].append(key.hex())

    def placement(self, key: bytes) -> Placement:
        """Return where a key lies."""
        holders = self._replicas(key)
        if holders is None:
            return "unknown"
        return "local" if self._target in holders else "remote"


class _Maker:
    """Makes the requests of one plan, numbering them as it goes."""

    def __init__(self, object_bytes: int, seed: int, keys: Keys, *, one_key: bool = False) -> None:
        self._one_key = one_key
        self._object_bytes = object_bytes
        self._seed = seed
        self._keys = keys
        self._seq = count()
        self._to_read: defaultdict[Placement, list[str]] = defaultdict(list)
        self._prefilled: dict[str, int] = {}
        """The seeds of the bytes of prefilled keys that are read."""
        self._to_remove: defaultdict[Placement, deque[str]] = defaultdict(deque)
        self._reads: defaultdict[tuple[BobEndpoint, Placement], int] = defaultdict(int)

    def read_prefilled(
        self, prefilled: Prefilled, placements: Collection[Placement], most: int
    ) -> None:
        """Have reads be of prefilled objects, each once while there are enough of a placement."""
        wanted = set(placements)
        for index in islice(prefilled.drawn(), _LOOKED_AT + most):
            key = prefilled.key(index)
            placement = self._keys.placement(bytes.fromhex(key))
            if placement in wanted:
                self._prefilled[key] = prefilled.body_seed(index)
                self._to_read[placement].append(key)
                if len(self._to_read[placement]) == most:
                    wanted.remove(placement)
            if not wanted:
                return

    def prepare(
        self, turns: Sequence[tuple[BobEndpoint, Placement]], reads: int, removals: int
    ) -> list[Request]:
        """Put the objects that ``turns`` need: ``reads`` to read, ``removals`` to remove of each
        placement.
        """
        made: list[Request] = []
        keys: list[str] | deque[str]
        for endpoint, placement in turns:
            if endpoint in _READS or (endpoint == "Put" and self._one_key):
                keys, wanted = self._to_read[placement], reads
            elif endpoint == "Delete":
                keys, wanted = self._to_remove[placement], removals
            else:
                continue
            if endpoint in _READS and keys and keys[0] in self._prefilled:
                continue
            while len(keys) < wanted:
                keys.append(self._keys.take(placement))
                made.append(self._on_key("prepare", "Put", placement, keys[-1]))
        return made

    def request(self, phase: Phase, endpoint: BobEndpoint, placement: Placement) -> Request:
        """Return the next request to an endpoint, on a key of this placement."""
        match endpoint:
            case "Ping":
                return Request(next(self._seq), phase, endpoint)
            case "Put" if not self._one_key:
                key = self._keys.take(placement)
            case "Delete":
                key = self._to_remove[placement].popleft()
            case _:
                keys = self._to_read[placement]
                key = keys[self._reads[endpoint, placement] % len(keys)]
                self._reads[endpoint, placement] += 1
        return self._on_key(phase, endpoint, placement, key)

    def _on_key(
        self, phase: Phase, endpoint: BobEndpoint, placement: Placement, key: str
    ) -> Request:
        has_object = endpoint in ("Put", "Get")
        return Request(
            next(self._seq),
            phase,
            endpoint,
            key=key,
            object_bytes=self._object_bytes if has_object else None,
            body_seed=self._body_seed(key) if has_object else None,
            exists=True if endpoint == "Exist" else None,
            placement=placement,
        )

    def _body_seed(self, key: str) -> int:
        prefilled = self._prefilled.get(key)
        return body_seed(self._seed, key) if prefilled is None else prefilled

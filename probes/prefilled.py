"""The objects of a prefilled bucket, as the plan of a study reads them.

A read of a bucket that holds many objects is of one of them, drawn evenly over all: what a store
must do to find one among so many is in its time. The alternative, a few objects of the plan's own,
would be found in every cache after the warm-up, however many others lie beside them.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from wanlat.probes.body import word


@dataclass(frozen=True)
class Prefilled:
    """What one bucket was filled with: objects 0 … ``objects`` - 1 of its seed, all of one size."""

    bucket: str
    objects: int
    seed: int
    text_keys: bool = True
    is_read: bool = True
    """Whether reads are of these: they are of the size that is to be read."""

    def key(self, index: int) -> str:
        """Return the key of an object, as requests have it."""
        return key_of(self.seed, self.bucket, index, is_text=self.text_keys)

    def body_seed(self, index: int) -> int:
        """Return the seed of its bytes."""
        return body_seed_of(self.seed, self.bucket, index)

    def drawn(self) -> Iterator[int]:
        """Yield all objects, each once, in a random order that the seed decides."""
        chance, seen = random.Random(f"{self.seed}/reads"), set[int]()
        while len(seen) < self.objects:
            index = chance.randrange(self.objects)
            if index not in seen:
                seen.add(index)
                yield index


def key_of(seed: int, bucket: str, index: int, *, is_text: bool) -> str:
    """Return the key of object ``index`` of a bucket, as requests have it.

    Text; or 16 hex digits, drawn from the seed and the bucket's name, all different.
    """
    if is_text:
        return f"fill-{index:08d}"
    return word(_seed_of(seed, bucket, "keys"), index).to_bytes(8, "little").hex()


def body_seed_of(seed: int, bucket: str, index: int) -> int:
    """Return the seed of its bytes (``wanlat.probes.body.body(seed, object_bytes)``)."""
    return word(_seed_of(seed, bucket, "bodies"), index) >> 11


def _seed_of(seed: int, bucket: str, what: str) -> int:
    digest = hashlib.sha256(f"{seed}/{bucket}/{what}".encode()).digest()
    return int.from_bytes(digest[:8], "little")

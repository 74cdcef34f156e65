"""The objects of a prefilled bucket, as the plan of a study reads them.

A read of a bucket that holds many objects is of one of them, drawn evenly over all: what a store
must do to find one among so many is in its time. The alternative, a few objects of the plan's own,
would be found in every cache after the warm-up, however many others lie beside them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wanlat.probes.load import body_seed_of, key_of


@dataclass(frozen=True)
class Prefilled:
    """What one bucket was filled with: objects 0 … ``objects`` - 1 of its seed, all of one size."""

    api: Literal["s3", "bob"]
    bucket: str
    objects: int
    seed: int
    is_read: bool = True
    """Whether reads are of these: they are of the size that is to be read."""

    def key(self, index: int) -> str:
        """Return the key of an object, as requests have it."""
        return key_of(self.seed, self.bucket, index, self.api)

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

"""Objects whose writing was acknowledged and that a later read did not find: told, not hidden."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.topologies.wording import listing

_READS = ("GetObject", "HeadObject", "Get", "Exist")
_HTTP_NOT_FOUND = 404
_GRPC_OK, _GRPC_NOT_FOUND = 0, 5


@dataclass
class NotFoundTracker:
    """What one system's reads did not find though preparing it was acknowledged.

    A plan reads only what was prepared, and nothing is measured before all of it is acknowledged.
    """

    reads: Counter[str] = field(default_factory=Counter)
    keys: dict[str, None] = field(default_factory=dict)

    def take(self, request: Request, sample: Sample) -> bool:
        """Count a sample if its object was not found; return whether it was counted."""
        if request.key is None or not is_missing(sample):
            return False
        self.reads[sample.endpoint] += 1
        self.keys[request.key] = None
        return True

    def remarks(self) -> list[str]:
        """Say what was not found; nothing when all was."""
        counted = listing(f"{count} of {name}" for name, count in sorted(self.reads.items()))
        text = (
            f"{counted} did not find objects whose writing had been acknowledged "
            f"({listing(self.keys, at_most=3)}). They are samples with the outcome `fail`."
        )
        return [text] if self.keys else []


def is_missing(sample: Sample) -> bool:
    """Does the answer to a read say that the object is not there?"""
    if sample.endpoint not in _READS or sample.outcome != "fail":
        return False
    if sample.grpc_status is None:
        return sample.status == _HTTP_NOT_FOUND
    # Exist is answered, with an answer that is wrong.
    absent = sample.endpoint == "Exist" and sample.grpc_status == _GRPC_OK
    return absent or sample.grpc_status == _GRPC_NOT_FOUND

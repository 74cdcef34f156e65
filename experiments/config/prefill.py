"""The `prefill` of a study: objects that are there before anything is measured."""

from __future__ import annotations

from pydantic import Field

from wanlat.topologies.units import Duration, Size
from wanlat.topologies.yaml_model import YamlModel

BUCKET = "wanlat"
"""The first bucket: the one that the probe asks for as well."""


class PrefillSpec(YamlModel):
    """Objects that parallel writers put into every bucket before anything is measured."""

    objects: int = Field(
        default=10_000,
        ge=0,
        le=100_000_000,
        description="In each bucket (Bob, which has no buckets: so many for each all the same)",
    )
    buckets: int = Field(default=1, ge=1, le=1000, description="That are filled alike")
    object_size: Size | None = Field(
        default=None, description="Size of each. Default: the study's `object_size`"
    )
    writers: int = Field(default=8, ge=1, le=1000, description="Requests in flight at once")
    settle: Duration = Field(
        default=Duration(60 * 10**9),
        description="How long the nodes may take to come to rest afterwards, before anything is "
        "measured; 0: it is not waited for",
    )

    @property
    def total(self) -> int:
        """How many objects there are in all."""
        return self.objects * self.buckets

    @property
    def settles(self) -> bool:
        """Whether it is waited until the nodes have come to rest."""
        return self.total > 0 and self.settle.ns > 0

    @property
    def bucket_names(self) -> list[str]:
        """The buckets: ``wanlat``, which the probe asks for, then ``wanlat-2`` and so on."""
        more = (f"{BUCKET}-{number}" for number in range(2, self.buckets + 1))
        return [BUCKET, *more]

    def object_bytes(self, of_study: Size) -> int:
        """Return the size of each in bytes; ``of_study`` is the study's `object_size`."""
        return (self.object_size or of_study).bytes

"""S3: Amazon's protocol of objects in buckets, over HTTP, each request signed."""

from __future__ import annotations

from dataclasses import dataclass

from wanlat.systems.engine.protocols.base import Objects, Place, Protocol, Target
from wanlat.systems.engine.steps import Step
from wanlat.systems.engine.text import Text, filled
from wanlat.topologies.yaml_model import YamlModel


class S3(YamlModel):
    """Where and with which credentials a node answers S3."""

    port: Text | int = "{ports.s3}"
    """where it listens"""
    region: Text = "us-east-1"
    """that requests are signed for"""
    access_key: Text
    """that requests are signed with"""
    secret_key: Text
    """that requests are signed with"""


@dataclass(frozen=True)
class S3Target(Target):
    """The S3 interface of one node."""

    host: str
    port: int
    region: str
    access_key: str
    secret_key: str


class S3Protocol(Protocol[S3]):
    """Endpoints of its own, which `probes.protocols.s3` has."""

    name, spoken = "s3", "S3"
    section, section_key = S3, "s3"
    objects = Objects(
        write="PutObject",
        read="GetObject",
        delete="RemoveObject",
        exists="HeadObject",
        list="ListObjects",
    )
    templates = (("system.yaml", "new-s3.yaml"),)

    def target(self, section: S3, place: Place) -> S3Target:
        """Return where and with which credentials a node answers."""
        texts = (section.region, section.access_key, section.secret_key)
        return S3Target(
            place.address,
            place.port(section.port),
            *(filled(text, place.scene) for text in texts),
        )

    def ready(self, section: S3) -> list[Step]:  # noqa: ARG002
        """A signed request that needs no bucket."""
        return [Step(name="S3", s3="ListBuckets")]

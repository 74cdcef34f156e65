"""What a protocol is: a module beside this one has one, and `__init__` lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import Field, StrictStr

from wanlat.systems.engine.protocols.requests import Requested
from wanlat.systems.engine.steps import Step
from wanlat.systems.engine.text import Scene, fill
from wanlat.topologies.units import Size
from wanlat.topologies.yaml_model import YamlModel

Operation = Literal["write", "read", "delete", "exists", "list"]
"""What can be done to objects."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class Objects(YamlModel):
    """Which endpoint does what to objects. With the first three a system is a store."""

    write: StrictStr | None = Field(default=None, description="puts `{body}` at `{key}`")
    read: StrictStr | None = Field(default=None, description="its answer holds the object")
    delete: StrictStr | None = Field(default=None, description="removes the object")
    exists: StrictStr | None = Field(default=None, description="says whether it is there")
    list: StrictStr | None = Field(default=None, description="lists keys")
    largest: Size | None = Field(default=None, description="the largest object that it takes")

    @property
    def names(self) -> dict[Operation, str]:
        """The endpoints that there are, by what they do."""
        operations = ((operation, getattr(self, operation)) for operation in OPERATIONS)
        return {operation: name for operation, name in operations if name is not None}

    @property
    def is_whole(self) -> bool:
        """Whether objects can be written, read and removed."""
        return {"write", "read", "delete"} <= self.names.keys()

    def does(self, endpoint: str) -> Operation | None:
        """Return what an endpoint does to an object; None of others."""
        names = self.names.items()
        return next((operation for operation, name in names if name == endpoint), None)


@dataclass(frozen=True)
class Target:
    """The interface of one node, as seen from inside the lab: a subclass for each protocol."""


@dataclass(frozen=True)
class Place:
    """A node that requests go to, and what a definition's expressions know there."""

    address: str
    scene: Scene
    directory: Path
    """The definition's."""
    front_port: int | None = None
    """Of what stands before the node, where requests go through that."""

    def port(self, own: str | int) -> int:
        """Return the port that requests go to; ``own`` is the node's, as a definition has it."""
        return self.front_port or int(fill(own, self.scene))


Section = TypeVar("Section", bound=YamlModel)


class Protocol(ABC, Generic[Section]):
    """How requests are made: what a definition has of that, and where a cluster answers it.

    How a request is sent and timed is in `wanlat.probes.protocols`, under the same name.
    """

    name: ClassVar[str]
    """What definitions call it."""
    spoken: ClassVar[str]
    """What messages call it."""
    section: ClassVar[type[YamlModel]]
    """What a definition has under the key ``section_key``: where and how a node answers."""
    section_key: ClassVar[str]
    default: ClassVar[YamlModel | None] = None
    """The section of a definition that has none; None: it must have one."""
    file_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the section that hold paths of files beside the definition."""
    endpoint: ClassVar[type[Requested] | None] = None
    """How definitions and studies write its requests; None: it has endpoints of its own."""
    objects: ClassVar[Objects] = Objects()
    """Which of its own endpoints does what to objects."""
    in_messages: ClassVar[bool] = False
    """Whether requests and answers are messages, of which the longest is known."""
    templates: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The files that `wanlat system new` writes, and those of `systems/engine` they are made of."""

    @abstractmethod
    def target(self, section: Section, place: Place) -> Target:
        """Return where a node answers."""

    @abstractmethod
    def ready(self, section: Section) -> list[Step]:
        """Return what is requested until a node serves, by default."""

    def invalid(self, section: Section, ports: Mapping[str, int]) -> str | None:  # noqa: ARG002
        """Return what is wrong with a section in a definition with these ports."""
        return None

    def is_named(self, text: str) -> bool:  # noqa: ARG002
        """Return whether a text alone names a request that studies write, such as a method."""
        return False

    def named(self, text: str) -> Requested:
        """Return the request that a text alone names. Raises ValueError for what names none."""
        raise ValueError(f"{text} names no request of {self.spoken}")

    def command(self, section: Section) -> Sequence[object]:  # noqa: ARG002
        """Return the command line of the program that makes the requests; of most there is none."""
        return ()

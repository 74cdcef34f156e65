"""Requests that a program of the definition makes, over whatever it speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictStr

from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.systems.engine.arguments import Argument, argv_of
from wanlat.systems.engine.protocols.base import Place, Protocol, Target
from wanlat.systems.engine.protocols.requests import Call, Filled, Requested
from wanlat.systems.engine.steps import Step
from wanlat.systems.engine.text import Text, filled
from wanlat.topologies.findings import Finding
from wanlat.topologies.yaml_model import YamlModel


class Client(YamlModel):
    """The program that makes the requests, on the client's node; `node` is the target."""

    command: list[Argument] = Field(description="`{here}` is this file's directory")
    environment: dict[str, Text] = Field(default_factory=dict)
    """added to its environment"""


@dataclass(frozen=True)
class ProgramTarget(Target):
    """The program that makes the requests to one node."""

    command: tuple[str, ...]
    environment: Mapping[str, str]


class Operation(Call):
    """A request that the definition's own program makes."""

    op: Annotated[StrictStr, Field(min_length=1)] = Field(description="what the program calls it")
    request: Annotated[dict[str, Any], Filled] = Field(
        default={}, description="what the program gets besides"
    )

    def invalid(self) -> list[Finding]:
        """What it gets has no `op` of its own."""
        is_double = "op" in self.request
        return [Finding(("request", "op"), "it stands beside `request`")] if is_double else []

    @property
    def called(self) -> str:
        """The operation."""
        return self.op

    @property
    def sent(self) -> Mapping[str, Any]:
        """What the program gets besides."""
        return self.request


class OperationEndpoint(Requested, Operation):
    """An operation of the definition's program, and what must come back."""

    api: ClassVar[str] = "exec"

    response_object: Literal["body", "sha256"] | None = Field(
        default=None, description="the answer must have the object, in base64, or its hash"
    )
    prepare: Operation | None = Field(
        default=None, description="what is requested for each key beforehand"
    )


class ExecProtocol(Protocol[Client]):
    """Operations of a program."""

    name, spoken = "exec", "what a program of its definition speaks"
    section, section_key = Client, "exec"
    endpoint = OperationEndpoint
    templates = (("system.yaml", "new-exec.yaml"), ("client.py", "new_exec_client.py"))

    def target(self, section: Client, place: Place) -> ProgramTarget:
        """Return the program; it finds what stands before a node by itself."""
        own = {name: filled(text, place.scene) for name, text in section.environment.items()}
        # So that plain `python3` finds `wanlat.systems.program`.
        ours = {"PYTHONPATH": str(SEARCH_PATH)}
        return ProgramTarget(tuple(argv_of(section.command, place.scene)), ours | own)

    def ready(self, section: Client) -> list[Step]:  # noqa: ARG002
        """Nothing that is known."""
        return []

    def command(self, section: Client) -> Sequence[object]:
        """Return the program's command line."""
        return section.command

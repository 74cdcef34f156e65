"""A request that a definition or a study writes out, whatever its protocol."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import AfterValidator, Field, StrictStr

from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel, refused

PLACEHOLDERS = ("{body}", "{key}", "{seq}", "{now}")
"""What a text can stand for or contain: the object, the key, the request's number, the time."""


def _misspelt(value: Any, path: Path = (), *, within: bool) -> Iterator[Finding]:
    """Find placeholders that are misspelt.

    ``within``: they may be a part of a text, but for the object.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _misspelt(inner, (*path, key), within=within)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _misspelt(inner, (*path, index), within=within)
    elif isinstance(value, str):
        for placeholder in re.findall(r"\{\w+\}" if within else r"\A\{.*\}\Z", value):
            near = did_you_mean(placeholder, PLACEHOLDERS)
            if placeholder not in PLACEHOLDERS and near:
                known = listing(PLACEHOLDERS)
                text = f"{show(placeholder)} is no placeholder{near}; there are {known}"
                yield Finding(path, text)
            if placeholder == "{body}" != value:
                yield Finding(path, "`{body}` is a text by itself, and no part of one")


def placeholders(*, within: bool) -> AfterValidator:
    """Return what refuses misspelt ones; ``within``: they may be a part of a text."""

    def check(value: Any) -> Any:
        if findings := list(_misspelt(value, within=within)):
            raise refused(findings)
        return value

    return AfterValidator(check)


Filled = placeholders(within=True)


class Call(YamlModel):
    """One request."""

    @property
    @abstractmethod
    def called(self) -> str:
        """What samples call it where it has no name."""

    @property
    @abstractmethod
    def sent(self) -> Mapping[str, Any]:
        """What is sent, as plans have it."""


class Requested(Call):
    """A request that is measured."""

    api: ClassVar[str]
    """Its protocol."""

    key_bytes: int = Field(default=8, ge=4, le=1024, description="how long `{key}` is")
    name: StrictStr | None = Field(
        default=None, pattern=r"^[A-Za-z]\w{0,39}$", description="what samples and charts call it"
    )
    response_object: str | None = Field(
        default=None, description="what of the answer must hold the object"
    )
    prepare: Any = Field(default=None, description="what is requested for each key beforehand")

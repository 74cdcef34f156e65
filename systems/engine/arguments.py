"""Command lines of a definition: texts, and arguments that are there sometimes or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from wanlat.systems.engine.text import Expression, Scene, Text, evaluate, fill, filled
from wanlat.topologies.yaml_model import YamlModel


class Arguments(YamlModel):
    """Arguments that are there sometimes, or once for each value of a list."""

    run: list[Text]
    """the arguments"""
    when: Expression | None = None
    """else they are left out"""
    each: Expression | None = Field(default=None, description="a list; its values are `each`")


Argument = Annotated[
    Annotated[Text, Tag("(text)")] | Annotated[Arguments, Tag("(mapping)")],
    Discriminator(lambda raw: "(text)" if isinstance(raw, str) else "(mapping)"),
]


def argv_of(arguments: Sequence[str | Arguments], scene: Scene) -> list[str]:
    """Return a command line with its placeholders filled in."""
    argv: list[str] = []
    for argument in arguments:
        if isinstance(argument, str):
            argv += map(str, listed(fill(argument, scene)))
        elif argument.when is None or evaluate(argument.when, scene):
            values = [None] if argument.each is None else evaluate(argument.each, scene)
            for value in values:
                argv += [filled(word, {**scene, "each": value}) for word in argument.run]
    return argv


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only one of a list."""
    return list(value) if isinstance(value, list | tuple) else [value]

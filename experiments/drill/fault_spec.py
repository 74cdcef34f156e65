"""An entry of a drill's `faults`: what is broken when, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ConfigDict, Field

from wanlat.emulator.faults.catalogue import KINDS
from wanlat.experiments.drill.phases import Positive
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel


class FaultSpec(YamlModel):
    """One entry of `faults`: one key is the kind, whose value is the target; others are settings.

    {kill: victim, at: 0s, for: 30s}
    """

    model_config = ConfigDict(extra="allow")

    at: Duration = Field(
        default=Duration(0),
        description="when it begins, from the beginning of `during`",
        json_schema_extra={"default": "0ms"},
    )
    lasts: Positive | None = Field(
        default=None, alias="for", description="how long; default: to the end of `during`"
    )

    @property
    def kind(self) -> str:
        """The kind of fault, as `wanlat.emulator.faults.catalogue` names it."""
        return next(key for key in self._extra if key in KINDS)

    @property
    def target(self) -> Any:
        """What is hit, as it was written: a text, or a list of texts or of groups of texts."""
        return self._extra[self.kind]

    @property
    def settings(self) -> dict[str, Any]:
        """How it is hit: what the entry has besides its kind and its times."""
        kind = self.kind
        return {key: value for key, value in self._extra.items() if key != kind}

    @property
    def _extra(self) -> dict[str, Any]:
        return self.model_extra or {}

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Tell of an entry that has not exactly one kind, or a target of the wrong type."""
        if not isinstance(raw, dict):
            return []
        kinds = list(KINDS)
        given = [key for key in raw if key in KINDS]
        others = [str(key) for key in raw if key not in KINDS and key not in ("at", "for")]
        if not given:
            near = next(
                (each for each in others if did_you_mean(each, kinds)), others[0] if others else ""
            )
            said = f"{show(near)} is no kind of fault{did_you_mean(near, kinds)}" if near else ""
            text = f"{said or 'no kind of fault is named'}; there are {listing(KINDS)}"
            path = (near,) if near in raw else ()
            return [Finding(path, text, at_key=bool(path))]
        if len(given) > 1:
            text = (
                f"an entry is one fault, and this has {listing(map(show, given))}; write an entry "
                "for each"
            )
            return [Finding((given[1],), text, at_key=True)]
        return list(_target(given[0], raw[given[0]]))


def _target(kind: str, target: Any) -> Iterator[Finding]:
    if not _is_text(target) and not (
        isinstance(target, list)
        and target
        and all(_is_text(each) or (isinstance(each, list) and each) for each in target)
        and all(_is_text(word) for each in target if isinstance(each, list) for word in each)
    ):
        text = f"the value of `{kind}` says what is hit: a text or a list"
        if isinstance(target, dict):
            text += f"; settings stand beside it: {{{kind}: TARGET, SETTING: VALUE}}"
        yield Finding((kind,), text)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())

"""Settings as running servers have them in effect, beside what they were meant to have.

A server may read a value in another unit than it was written in, without a word: NATS takes
`sync_interval: 2m` for two million seconds. So a definition states where each value is read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from wanlat.topologies.wording import listing


@dataclass(frozen=True)
class EffectiveSetting:
    """A setting on nodes where it is the same; ``error``: why it could not be read."""

    name: str
    nodes: tuple[str, ...]
    value: Any
    expected: Any
    error: str | None = None

    @property
    def is_as_expected(self) -> bool:
        """Whether it was read, and is what was meant."""
        return self.error is None and is_same(self.value, self.expected)

    def as_recorded(self) -> dict[str, Any]:
        """Return it as a manifest has it."""
        return {**asdict(self), "nodes": list(self.nodes), "as_expected": self.is_as_expected}

    @classmethod
    def recorded(cls, entry: Mapping[str, Any]) -> EffectiveSetting:
        """Return it from what a manifest has."""
        known = {key: value for key, value in entry.items() if key != "as_expected"}
        return cls(**known | {"nodes": tuple(entry["nodes"])})

    def __str__(self) -> str:
        """Return what differs, as a sentence without its full stop."""
        where = f"{self.name} on {listing(self.nodes, at_most=5)}"
        if self.error is not None:
            return f"{where} could not be read back: {self.error}"
        return f"{where} is {_shown(self.value)}, and {_shown(self.expected)} was configured"


def is_same(value: Any, expected: Any) -> bool:
    """Whether two values are equal: as they are, as numbers, or as texts."""
    if value == expected:
        return True
    if isinstance(value, bool) or isinstance(expected, bool):
        return _shown(value).lower() == _shown(expected).lower()
    with suppress(TypeError, ValueError):
        return float(value) == float(expected)
    return _shown(value) == _shown(expected)


def grouped(settings: Iterable[EffectiveSetting]) -> list[EffectiveSetting]:
    """Return settings with those of several nodes as one where they are the same."""
    groups: dict[str, EffectiveSetting] = {}
    for setting in settings:
        key = repr((setting.name, setting.value, setting.expected, setting.error))
        known = groups.get(key)
        nodes = (*known.nodes, *setting.nodes) if known else setting.nodes
        groups[key] = replace(setting, nodes=nodes)
    return list(groups.values())


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return listing(map(str, value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) or "empty"

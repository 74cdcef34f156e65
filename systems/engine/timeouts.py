"""A store's timeouts: what they are with its options, which values are tried, what bounds them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction as Exact
from typing import Any

from wanlat.systems.engine.definition import Definition
from wanlat.systems.engine.options import Options
from wanlat.topologies.units import Duration


def _exact(number: float) -> Exact:
    """Return a number as it is written: 0.1 is a tenth."""
    return Exact(repr(float(number)))


def _multiple(duration: Duration, times: Exact) -> Duration:
    return Duration(round(duration.ns * times))


def default(definition: Definition, name: str) -> Duration:
    """Return what a timeout is where no study sets it."""
    timeout = definition.timeouts[name]
    option = Duration.parse(definition.options[timeout.option].default)
    return _multiple(option, _exact(timeout.times))


def _share(definition: Definition, name: str) -> Exact:
    """Return what share a timeout is of the one that it follows."""
    follows = definition.timeouts[name].follows
    assert follows is not None
    if follows.share is not None:
        return _exact(float(follows.share))
    return Exact(default(definition, name).ns, default(definition, follows.timeout).ns)


def in_effect(definition: Definition, options: Options) -> dict[str, Duration]:
    """Return all timeouts with these options, by name."""
    return {
        name: _multiple(getattr(options, timeout.option), _exact(timeout.times))
        for name, timeout in definition.timeouts.items()
    }


def entries(definition: Definition, options: Options) -> list[dict[str, Any]]:
    """Return them as a manifest has them: times in milliseconds."""
    return [
        {
            "name": name,
            "role": timeout.role,
            "option": timeout.option,
            "ms": ms.ms,
            "default_ms": default(definition, name).ms,
            "rtts": timeout.rtts,
            "follows": timeout.follows and timeout.follows.timeout,
        }
        for (name, timeout), ms in zip(
            definition.timeouts.items(), in_effect(definition, options).values(), strict=True
        )
    ]


def invalid(definition: Definition, options: Options) -> Iterator[str]:
    """Yield which timeouts with these options the store does not take, and why."""
    values = in_effect(definition, options)
    for name, timeout in definition.timeouts.items():
        value, stated = values[name], f"timeout {name} is {values[name]}"
        if timeout.least is not None and value < timeout.least:
            yield f"{stated}, and at least {timeout.least}"
        if timeout.most is not None and value > timeout.most:
            yield f"{stated}, and at most {timeout.most}"
        follows = timeout.follows
        if follows is not None and follows.at_most is not None:
            other = values[follows.timeout]
            if value.ns > other.ns * _exact(float(follows.at_most)):
                yield f"{stated}, and at most {follows.at_most} of {follows.timeout}, {other}"


def options_of(
    definition: Definition, name: str, value: Duration, kept: Collection[str] = ()
) -> dict[str, str]:
    """Return the options that make a timeout a value, and move those that follow it.

    ``kept``: options that stay as they are.
    """
    options: dict[str, str] = {}
    for other, timeout in definition.timeouts.items():
        share, follows = Exact(1), timeout.follows
        if other != name:
            if follows is None or follows.timeout != name or timeout.option in kept:
                continue
            share = _share(definition, other)
        wanted = _multiple(value, share / _exact(timeout.times))
        options.setdefault(timeout.option, str(wanted))
    return options


def tried(definition: Definition, name: str) -> list[Duration]:
    """Return the values of a timeout that are measured where none is named."""
    usual = default(definition, name)
    return [_multiple(usual, _exact(times)) for times in definition.timeouts[name].tried]

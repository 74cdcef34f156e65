"""Whether the parts of a drill's file fit together: names that exist, times within their phase.

Each check sees the file as it was written, and passes over what is told of elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from wanlat.experiments.drill.phases import PHASES
from wanlat.systems import registry
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Quantity, QuantityError
from wanlat.topologies.wording import did_you_mean, listing, show

LEAST_REQUESTS = 10
"""Due of each client in a phase: of fewer nothing can be said."""

_CLIENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


def systems_fit(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Every system exists and is named once; options are of those that are named."""
    given = raw.get("systems", ["quorum"])
    known = list(registry.SYSTEMS)
    names = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    for index, name in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(name, str):
            continue
        if name not in known:
            text = f"{show(name)} is no system{did_you_mean(name, known)}; there are"
            yield Finding(("systems", index), f"{text} {listing(known)}")
        elif name in given[:index]:
            yield Finding(("systems", index), f"{show(name)} is given twice")
    if not names:
        return
    options = raw.get("options")
    for name in options if isinstance(options, dict) else ():
        if name not in names:
            text = f"{show(name)} is not among `systems`{did_you_mean(str(name), names)}: "
            yield Finding(("options", name), f"{text}{listing(names)}", at_key=True)


def names_fit(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Names of clients are words; those of roles are checked where they are drawn."""
    given = raw.get("clients")
    for name in given if isinstance(given, dict) else ():
        if not isinstance(name, str) or _CLIENT_NAME.fullmatch(name) is None:
            text = (
                f"{show(name)} cannot be a name here; one begins with a letter and has up to 32 "
                "letters, digits, `-` and `_`"
            )
            yield Finding(("clients", name), text, at_key=True)


def times_fit(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Each phase is long enough to tell something, and holds the faults that are due in it."""
    interval = quantity(Duration, raw.get("interval"), Duration(250 * 10**6))
    phases = raw.get("phases")
    lengths = {
        name: quantity(Duration, phases.get(name)) if isinstance(phases, dict) else None
        for name in PHASES
    }
    for name, length in lengths.items():
        if length and interval and length.ns and length.ns < LEAST_REQUESTS * interval.ns:
            text = (
                f"{length} is too short: with `interval: {interval}` fewer than {LEAST_REQUESTS} "
                "requests of a client are due in it. Lengthen it, or shorten `interval`"
            )
            yield Finding(("phases", name), text)
    during = lengths["during"]
    for index, fault in enumerate(mappings(raw, "faults")):
        begin = quantity(Duration, fault.get("at"), Duration(0))
        lasts = quantity(Duration, fault.get("for"), Duration(0))
        if begin is None or lasts is None or not during:
            continue
        if begin >= during:
            text = f"it would begin after `during`, which lasts {during}"
            yield Finding(("faults", index, "at" if "at" in fault else "for"), text)
        elif begin.ns + lasts.ns > during.ns:
            text = (
                f"it would end {Duration(begin.ns + lasts.ns)} after the beginning of `during`, "
                f"which lasts {during}; every fault is healed by its end"
            )
            yield Finding(("faults", index, "for"), text)


def mappings(raw: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """The entries of a list; an empty mapping for what is none, so that places stay right."""
    value = raw.get(key)
    for each in value if isinstance(value, list) else ():
        yield each if isinstance(each, dict) else {}


def quantity(kind: type[Quantity], raw: Any, default: Any = None) -> Any:
    """What a scalar means; None when it is no such quantity, which is told elsewhere."""
    if raw is None:
        return default
    try:
        return kind.parse(raw)
    except QuantityError:
        return None

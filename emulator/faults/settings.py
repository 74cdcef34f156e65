"""The settings of a fault as a drill writes them: known, there where needed, and of their unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.units import QuantityError
from wanlat.topologies.wording import did_you_mean, listing, show

Reader = Callable[[Any], Any]
"""Turns what is written into a value. Raises UserError (such as QuantityError) in words."""


def read(
    kind: str,
    given: Mapping[str, Any],
    *,
    needed: Mapping[str, Reader] | None = None,
    optional: Mapping[str, Reader] | None = None,
) -> dict[str, Any]:
    """Return the values that were given, by name. Raises UserError for all that is wrong."""
    needed, optional = needed or {}, optional or {}
    known = {**needed, **optional}
    wrong = [
        f"it has no setting {show(name)}{did_you_mean(str(name), list(known))}"
        for name in given
        if name not in known
    ]
    wrong += [f"it needs `{name}`" for name in needed if name not in given]
    values: dict[str, Any] = {}
    for name, reader in known.items():
        if name in given:
            try:
                values[name] = reader(given[name])
            except UserError as error:
                wrong.append(f"{name}: {error}")
    if wrong:
        settings = f"its settings are {listing(known)}" if known else "it has no settings"
        raise UserError(f"The fault {show(kind)}: {'; '.join(wrong)} ({settings}).")
    return values


def more_than_none(unit: Callable[[Any], Any]) -> Reader:
    """Return a reader of a quantity that refuses zero: a fault that does nothing is a mistake."""

    def reader(value: Any) -> Any:
        quantity = unit(value)
        if quantity == unit(0):
            raise QuantityError(f"{show(value)} changes nothing; give more than that")
        return quantity

    return reader

"""One quantity of one endpoint in both bundles, before all of them are judged together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from wanlat.analysis.compare.difference import Difference
from wanlat.analysis.compare.model import Quantity


@dataclass(frozen=True)
class Finding:
    """`difference` is None where one of the two has no figure; `why` then says which and why not.

    `doubt` says why a change does not count though its interval excludes zero.
    """

    quantity: Quantity
    old: float | None
    new: float | None
    difference: Difference | None
    why: str | None = None
    doubt: str | None = None

    @property
    def missing_in_both(self) -> bool:
        """Whether neither has the figure, so that nothing is known to have become worse."""
        return self.old is None and self.new is None


def known(
    quantity: Quantity, old: float, new: float, difference: Difference, doubt: str | None = None
) -> Finding:
    """What can be compared, unless no interval came of it."""
    if not all(map(math.isfinite, (difference.estimate, *difference.ci95, difference.p))):
        return Finding(quantity, old, new, None, "No interval of the difference can be given.")
    return Finding(quantity, old, new, difference, doubt=doubt)


def absent(
    quantity: Quantity, old: float | None, new: float | None, whys: Iterable[str | None]
) -> Finding:
    """What cannot be compared, for the reasons that OLD and NEW give."""
    named = [f"{side}: {why}" for side, why in zip(("OLD", "NEW"), whys, strict=True) if why]
    return Finding(quantity, old, new, None, " ".join(named) or "There is no figure.")

"""Claims on a study: what publications conclude of such measurements, as data.

A file of `experiments/claims/publications/` has those of one publication on one study. Its manifest
takes them along, and the report says of each whether it holds (docs/reference/claims.md). Claims on
drills are about one store, and stand in `experiments/drill/claims.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, FiniteFloat, StrictInt, StrictStr, model_validator

from wanlat.experiments.config.files import Shipped
from wanlat.experiments.drill.files import ClaimsError
from wanlat.topologies.units import Size
from wanlat.topologies.yaml_lines import load_yaml_model
from wanlat.topologies.yaml_model import YamlModel, unique

PUBLICATIONS = Shipped(
    Path(__file__).parents[1] / "claims" / "publications", "publication", ClaimsError
)
_BOUNDS = ("at_least", "at_most", "within", "outside")


def _in_bytes(value: Any) -> Any:
    """A size as bytes: what it is compared with is a number of them."""
    return Size.parse(value).bytes if isinstance(value, str) else value


Quantity = Annotated[FiniteFloat | StrictInt, BeforeValidator(_in_bytes)]
"""A number, or a size such as 4MiB."""


class Range(YamlModel):
    """Rows whose column lies in a range; `largest_below`: those with the largest value below it."""

    at_least: Quantity | None = None
    at_most: Quantity | None = None
    largest_below: Quantity | None = None


Value = StrictStr | StrictInt | Range
Pair = Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]


class PublishedClaim(YamlModel):
    """One claim: which rows of summary.json, which figure of theirs, and its bound."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$", description="unique")
    claim: StrictStr = Field(min_length=1, description="what is said, in a sentence")
    rows: StrictStr = Field(description="where they are in summary.json: `sizes.entries`")
    where: Mapping[str, Value | list[StrictStr | StrictInt]] = Field(
        default={}, description="which of them; of a list each gets a verdict of its own"
    )
    figure: StrictStr = Field(description="the column that is compared")
    per: StrictStr | None = Field(default=None, description="a column to divide it by")
    over: Mapping[str, Value] = Field(
        default={}, description="divided by the figure of the rows that differ in this; `any`"
    )
    same: list[StrictStr] = Field(default=[], description="columns in which those agree with it")
    at_least: FiniteFloat | None = None
    at_most: FiniteFloat | None = None
    within: Pair | None = None
    outside: Pair | None = None

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        if sum(getattr(self, name) is not None for name in _BOUNDS) != 1:
            raise ValueError("give one bound: `at_least`, `at_most`, `within` or `outside`")
        return self


class Publication(YamlModel):
    """What one publication claims of what a study measures."""

    study: StrictStr = Field(description="by its name")
    source: StrictStr = Field(min_length=1, description="where it says so: document, URL")
    claims: Annotated[list[PublishedClaim], unique("give it another `id`", attrgetter("id"))] = (
        Field(min_length=1)
    )


def claims_on(study: str) -> dict[str, list[dict[str, Any]]]:
    """What a manifest says of the claims on a study of that name; nothing where there are none."""
    found = [
        {**claim.to_dict(), "source": publication.source}
        for publication in map(load_publication, PUBLICATIONS.names())
        if publication.study == study
        for claim in publication.claims
    ]
    return {"claims": found} if found else {}


@cache
def load_publication(name: str) -> Publication:
    """Return the shipped file of that name. Raises ClaimsError."""
    return load_yaml_model(PUBLICATIONS.find(name), Publication, error=ClaimsError)

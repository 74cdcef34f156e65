"""Claims of publications: what they conclude of such measurements, as data.

A file of `experiments/claims/publications/` has those of one publication. A study's manifest takes
along those that are about it, and its report has a verdict on each; all of them, on all
stored bundles, are on one page (docs/reference/claims.md). Claims of a store's makers on drills
stand in `experiments/drill/claims.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    FiniteFloat,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

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
    """Rows with a column in a range; `largest_below`: those with the largest value below it."""

    at_least: Quantity | None = None
    at_most: Quantity | None = None
    largest_below: Quantity | None = None


Value = StrictStr | StrictInt | Range
Pair = Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]


Columns = list[StrictStr]


class PublishedClaim(YamlModel):
    """One claim: which rows of summary.json, which figure of theirs, and its bound."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$", description="unique")
    claim: StrictStr = Field(min_length=1, description="what is said, in a sentence")
    study: StrictStr | Columns | None = Field(
        default=None, description="of which studies or drills the bundles are"
    )
    cannot_be_tested: StrictStr | None = Field(
        default=None, description="why no bundle can say whether it holds; then nothing else"
    )
    rows: StrictStr | None = Field(
        default=None, description="where they are in summary.json: `sizes.entries`"
    )
    where: Mapping[str, Value | list[StrictStr | StrictInt]] = Field(
        default={}, description="which of them; of a list each gets a verdict of its own"
    )
    figure: StrictStr | None = Field(
        default=None, description="the column that is compared; dots lead into what it holds"
    )
    interval: StrictStr | None = Field(
        default=None, description="the column of its interval, if it has another name than usual"
    )
    per: StrictStr | None = Field(default=None, description="a column to divide it by")
    exact: StrictBool = Field(default=False, description="it was counted, and needs no interval")
    over: Mapping[str, Value] = Field(
        default={}, description="divided by the figure of the rows that differ in this; `any`"
    )
    same: Columns = Field(default=[], description="columns in which those agree with it")
    clusters: Columns = Field(
        default=[], description="columns that tell clusters of one figure apart: their mean counts"
    )
    holds_for: Literal["all", "most"] = Field(
        default="all", description="of how many of its comparisons the claim is meant"
    )
    at_least: FiniteFloat | None = None
    at_most: FiniteFloat | None = None
    within: Pair | None = None
    outside: Pair | None = None

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        bounds = sum(getattr(self, name) is not None for name in _BOUNDS)
        if self.cannot_be_tested and (bounds or self.rows or self.figure):
            raise ValueError("what cannot be tested has no `rows`, no `figure` and no bound")
        is_whole = bounds == 1 and self.study and self.rows and self.figure
        if not self.cannot_be_tested and not is_whole:
            raise ValueError(
                "give `study`, `rows`, `figure` and one bound: `at_least`, `at_most`, `within` or "
                "`outside`"
            )
        return self

    @property
    def studies(self) -> Sequence[str]:
        """The names of the studies with its rows in their bundles."""
        return [self.study] if isinstance(self.study, str) else self.study or []


class Publication(YamlModel):
    """What one publication claims."""

    title: StrictStr = Field(min_length=1, description="what it is called on the page")
    source: StrictStr = Field(min_length=1, description="where it says so: document, URL")
    conditions: StrictStr = Field(
        default="", description="what differs between their measurement and the bundles"
    )
    claims: Annotated[list[PublishedClaim], unique("give it another `id`", attrgetter("id"))] = (
        Field(min_length=1)
    )


def claims_on(study: str) -> dict[str, list[dict[str, Any]]]:
    """The manifest's entry for the claims on a study of that name; nothing where there are none."""
    claims = [
        {**claim.to_dict(), "source": publication.source}
        for publication in publications()
        for claim in publication.claims
        if study in claim.studies
    ]
    return {"claims": claims} if claims else {}


def publications() -> list[Publication]:
    """All shipped ones, by the names of their files. Raises ClaimsError."""
    return [load_publication(name) for name in PUBLICATIONS.names()]


@cache
def load_publication(name: str) -> Publication:
    """Return the shipped file of that name. Raises ClaimsError."""
    return load_yaml_model(PUBLICATIONS.find(name), Publication, error=ClaimsError)

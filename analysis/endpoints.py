"""Endpoints: which of different APIs correspond, and the rows they stand in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_CORRESPONDING = (("GetObject", "Get"), ("PutObject", "Put"), ("RemoveObject", "Delete"))
"""What S3 calls it, and what Bob calls it: one row of a table or a chart holds both."""

_PAGE_ORDER = (
    *("ListBuckets", "ListObjects", "ListObjectsPage"),
    *("GetObject", "HeadObject", "PutObject", "RemoveObject"),
)
"""The order of Garage's page, the other S3 endpoints put where they belong."""
_BOB_ORDER = ("Put", "Get", "Exist", "Delete", "Ping")

_LONGEST_LINE = 20
"""Characters of a method that are still written in one line."""


def row_of(endpoint: str) -> tuple[str, ...]:
    """The endpoints that share a row with `endpoint`, itself among them; most stand alone."""
    return next((row for row in _CORRESPONDING if endpoint in row), (endpoint,))


def row_names(present: Iterable[str]) -> dict[str, str]:
    """What the row of each endpoint that is `present` is called: "GetObject ·" and "Get" below.

    Only what is present is named: where Bob alone was measured, that row is "Get". A long name of
    a service has its method below.
    """
    found = set(present)
    return {
        endpoint: " ·\n".join(_in_lines(name) for name in row_of(endpoint) if name in found)
        for endpoint in found
    }


def endpoint_order(present: Iterable[str], study: object = None) -> list[str]:
    """The endpoints that are `present`: those of one row together, the rows in order.

    The order is that of `study`, then of Garage's page, then of Bob's interface, then of the
    alphabet; a row stands where the first of its endpoints belongs. `study` is a manifest's,
    whose "endpoints" are names or, for methods of a service, objects that name a "method".
    """
    ranks: dict[str, int] = {}
    for name in (*_asked(study), *_PAGE_ORDER, *_BOB_ORDER):
        ranks.setdefault(name, len(ranks))

    def place(endpoint: str) -> tuple[int, tuple[str, ...], int]:
        row = row_of(endpoint)
        first = min(ranks.get(name, len(ranks)) for name in row)
        return first, row, row.index(endpoint)

    return sorted(set(present), key=place)


def _in_lines(endpoint: str) -> str:
    """`endpoint`, in two lines where it is "package.Service/Method" and long."""
    service, slash, method = endpoint.rpartition("/")
    return f"{service}/\n{method}" if slash and len(endpoint) > _LONGEST_LINE else endpoint


def _asked(study: object) -> Sequence[str]:
    """The endpoints that a manifest's `study` lists."""
    listed = study.get("endpoints") if isinstance(study, Mapping) else None
    return [
        str(entry.get("method")) if isinstance(entry, Mapping) else str(entry)
        for entry in (listed if isinstance(listed, list) else ())
    ]

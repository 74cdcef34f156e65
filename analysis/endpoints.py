"""Endpoints: which of different APIs correspond, and the rows they stand in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wanlat.bundle.documents import UNKNOWN, Manifest, Study

_ROWS = (
    *(("ListBuckets",), ("ListObjects",), ("ListObjectsPage",)),
    *(("GetObject", "Get"), ("HeadObject",), ("PutObject", "Put"), ("RemoveObject", "Delete")),
    *(("Exist",), ("Ping",)),
)
"""One row of a table or a chart holds what S3 and another API call the same; in this order."""

_VERBS = ("get", "head", "put", "post", "patch", "delete")
"""Keys of a request over HTTP."""

_LONGEST_LINE = 20
"""Characters of a method that are still written in one line."""


READ, WRITE = "read", "write"
_WHOLE = {"GetObject": READ, "Get": READ, "PutObject": WRITE, "Put": WRITE}


def operations(manifest: Manifest, system: str) -> Mapping[str, str]:
    """Which endpoints of a system read or write a whole object; no other has a throughput."""
    known = manifest.system(system)
    objects = known.objects if known else {}
    return {objects[does]: does for does in (READ, WRITE) if does in objects} or _WHOLE


def row_of(endpoint: str) -> tuple[str, ...]:
    """The endpoints that share a row with `endpoint`, itself among them; most stand alone."""
    return next((row for row in _ROWS if endpoint in row), (endpoint,))


def row_names(present: Iterable[str]) -> dict[str, str]:
    """What the row of each endpoint that is `present` is called: "GetObject ·" and "Get" below.

    Only what is present is named: where one API alone was measured, that row is "Get". A long name
    of a service has its method below.
    """
    measured = set(present)
    return {
        endpoint: " ·\n".join(_in_lines(name) for name in row_of(endpoint) if name in measured)
        for endpoint in measured
    }


def endpoint_order(present: Iterable[str], study: Study | None = None) -> list[str]:
    """The endpoints that are `present`: those of one row together, the rows in order.

    The order is that of `study`, then of the rows above, then of the alphabet; a row stands where
    the first of its endpoints belongs. The "endpoints" of `study` are names or
    requests written out.
    """
    listed = study.endpoints if study else ()
    requested = [
        _called(request) if isinstance(request, Mapping) else str(request) for request in listed
    ]
    order = list(dict.fromkeys([*requested, *(name for row in _ROWS for name in row)]))
    ranks = {name: rank for rank, name in enumerate(order)}

    def place(endpoint: str) -> tuple[int, tuple[str, ...], int]:
        row = row_of(endpoint)
        return min(ranks.get(name, len(ranks)) for name in row), row, row.index(endpoint)

    return sorted(set(present), key=place)


def _called(request: Mapping[str, object]) -> str:
    """What samples call a request that a study writes out."""
    named = [str(request[key]) for key in ("name", "method", "op") if request.get(key)]
    over_http = [f"{verb.upper()} {request[verb]}" for verb in _VERBS if request.get(verb)]
    return next(iter([*named, *over_http]), "")


def _in_lines(endpoint: str) -> str:
    """`endpoint`, in two lines where it is "package.Service/Method" and long."""
    service, slash, method = endpoint.rpartition("/")
    return f"{service}/\n{method}" if slash and len(endpoint) > _LONGEST_LINE else endpoint


MEANING = "Local: the node that was asked holds a replica of the key; remote: it does not."


def is_known(placement: str) -> bool:
    """Whether it is known: not where a request has no key or the system is silent."""
    return placement != UNKNOWN


def with_placement(name: str, placement: str) -> str:
    """`name` with its placement where that is known: "PutObject, local"."""
    return f"{name}, {placement}" if is_known(placement) else name

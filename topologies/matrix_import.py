"""A matrix of round-trip times as a topology file: with comments, and checked by loading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

from wanlat.topologies.figures import Point
from wanlat.topologies.imported import Imported, host_names, imported, milliseconds
from wanlat.topologies.limits import MAX_SITES
from wanlat.topologies.matrix import Entry, Matrix, MatrixError, Unit, read
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.wording import did_you_mean, listing, short, show

# Half of the Earth's circumference and back, through fibre that takes no detour, is 200 ms.
_FAR_NS = 1000 * 10**6


def import_matrix(
    path: str | Path,
    *,
    name: str | None = None,
    nodes: int = 1,
    jitter: Duration | Fraction | None = None,
    default: Duration | None = None,
    one_way: bool = False,
    unit: Unit | None = None,
    inside: bool = True,
    column: str | None = None,
    decimal: Point | None = None,
    places: int | Sequence[str] | None = None,
) -> Imported:
    """Make a topology of a matrix.

    Every place becomes a site of `nodes` nodes; between nodes of two sites lies what the matrix
    has for them; its diagonal (unless `inside` is False) lies between the nodes of a place.
    `jitter` is for every link between sites, as a duration or as a part of the figure. `default`
    is for pairs that are missing, and has the matrix's meaning (round trip, or one way). Of a
    round trip that both ends measured, with different results, the mean counts; delays of one
    direction (`one_way`) may differ, as may loss, rate and jitter. `column` has the figures,
    `decimal` is what their decimals follow; `places` are those to take, or how many.

    UserError (MatrixError for what is in the file) lists every mistake.
    """
    matrix = read(path, one_way=one_way, unit=unit, figures=column, point=decimal, places=places)
    _select(matrix, places)
    _mirror(matrix)
    entries, is_rtt = matrix.entries, matrix.meaning == "rtt"
    ways = 1 if is_rtt else 2  # how often a figure counts in a round trip
    notes = [f"column `{column}` is not used" for column in matrix.unused]
    own = host_names(matrix.names, notes, 32 - len(f"-{nodes}"))
    notes += matrix.notes
    sites = dict(zip(matrix.names, own, strict=True))
    diagonal = {a: entry.ns * ways for (a, b), entry in entries.items() if a == b and inside}
    notes += _notes(matrix)
    links: dict[str, Any] = {}
    pairs, missing = _pairs(matrix, sites, diagonal, jitter, notes)
    if missing:
        named = listing(missing, at_most=5)
        if default is None:
            raise MatrixError(
                f"{matrix.file}: {_figures(missing)} missing: {named}; fill them in, or say with"
                " --default what they are to be"
            )
        notes.append(f"{_figures(missing)} missing, and {default} by default: {named}")
        links["default"] = {"rtt": milliseconds(default.ns * ways)}
    what = "round trips" if is_rtt else "delays"
    source = Path(matrix.file).name
    head = (
        f"Made by `wanlat topology import` from {source} ({datetime.now(UTC):%Y-%m-%d}):"
        f" {what if is_rtt else 'one-way delays'} between {len(sites)} places."
    )
    document = {
        "name": name or host_names([Path(path).stem], [])[0],
        "description": f"{len(sites)} places, {what} from {source}",
        "sites": [
            {"name": site, "nodes": nodes}
            | ({"lan": {"rtt": milliseconds(diagonal[place])}} if diagonal.get(place) else {})
            for place, site in sites.items()
        ],
        "links": links | {"pairs": pairs},
    }
    return imported(
        document,
        source=matrix.file,
        comments=[head, *matrix.comments],
        notes=notes,
        places={site: place for place, site in sites.items()},
    )


def _select(matrix: Matrix, places: int | Sequence[str] | None) -> None:
    """Leave the places that are wanted, in that order. Raises MatrixError, as for too many."""
    names = list(matrix.names)
    if isinstance(places, int):
        names = names[:places]
    elif places is not None:
        names = list(dict.fromkeys(places))
        for name in names:
            if name not in matrix.names:
                near = did_you_mean(name, matrix.names)
                raise MatrixError(f"{matrix.file}: there is no place {show(name)} (--places){near}")
    if len(names) < 2:
        raise MatrixError(f"{matrix.file}: a topology of places has at least two (--places)")
    if len(names) > MAX_SITES:
        raise MatrixError(
            f"{matrix.file}: there are {len(names)} places, and a topology has at most {MAX_SITES};"
            f" --places {MAX_SITES} takes the first, --places A,B,C those"
        )
    if len(names) < len(matrix.names):
        matrix.notes.append(f"{len(names)} of {len(matrix.names)} places are taken (--places)")
    if places is not None:
        left = set(names)
        matrix.entries = {pair: e for pair, e in matrix.entries.items() if left >= {*pair}}
        matrix.names = tuple(names)


def _mirror(matrix: Matrix) -> None:
    """Of delays that are given once for each pair, in whichever direction: both directions' own."""
    between = [(a, b) for a, b in matrix.entries if a != b]
    if matrix.meaning == "rtt" or not between or {(b, a) for a, b in between} & {*between}:
        return
    matrix.entries |= {(b, a): matrix.entries[a, b] for a, b in between}
    matrix.notes.append("each pair has one delay, which is taken for both directions")


def _pairs(
    matrix: Matrix,
    sites: Mapping[str, str],
    diagonal: Mapping[str, int],
    jitter: Duration | Fraction | None,
    notes: list[str],
) -> tuple[list[dict[str, Any]], list[str]]:
    """The links between all sites, and the pairs of places that have none. Raises MatrixError.

    `sites` are by their places, `diagonal` holds round trips inside places in ns.
    """
    entries, is_rtt = matrix.entries, matrix.meaning == "rtt"
    ways = 1 if is_rtt else 2
    missing: list[str] = []
    pairs: list[dict[str, Any]] = []
    one_sided: list[str] = []
    limited: list[str] = []
    for a, b in (combinations if is_rtt else permutations)(sites, 2):
        both = [(a, b), (b, a)] if is_rtt else [(a, b)]
        given = [entries[direction] for direction in both if direction in entries]
        if not given:
            missing.append(f"{short(a)} to {short(b)}")
            continue
        inside_ns = (diagonal.get(a, 0) + diagonal.get(b, 0)) // (2 * ways)
        if matrix.is_jitter_derived and (narrow := _limited(given, inside_ns)) != given:
            given = narrow
            limited.append(f"{short(a)} to {short(b)}")
        try:
            if is_rtt and (halves := _halves(given)):
                half = Duration(jitter.ns // 2) if isinstance(jitter, Duration) else jitter
                for entry, (start, end) in zip(halves, both, strict=True):
                    link = _link([entry], half, inside_ns // 2, "delay")
                    pairs.append({"from": sites[start], "to": sites[end], **link})
                there, back = ((entry.loss is None, entry.rate is None) for entry in halves)
                if there != back:
                    one_sided.append(f"{short(a)} to {short(b)}")
            else:
                link = _link(given, jitter, inside_ns, matrix.meaning)
                pairs.append({**_ends(sites[a], sites[b], is_rtt), **link})
        except ValueError as problem:
            place = f"{matrix.file}:{given[0].line}: from {short(a)} to {short(b)}"
            raise MatrixError(f"{place}: {problem}") from None
    if limited:
        notes.append(
            "the deviation is too wide for a uniform jitter, which is limited to the figure:"
            f" {listing(limited, at_most=5)}"
        )
    if one_sided:
        notes.append(
            f"loss or rate is known in one direction alone of {listing(one_sided, at_most=5)}; the"
            " other has none (fill in its cells)"
        )
    return pairs, missing


def _ends(a: str, b: str, is_rtt: bool) -> dict[str, Any]:
    return {"between": [a, b]} if is_rtt else {"from": a, "to": b}


def _halves(entries: Sequence[Entry]) -> list[Entry]:
    """The two directions of a round trip that both ends measured, if they are not alike.

    Each is delayed by half of the mean, and has its own loss, rate and half of its own jitter. A
    jitter that one end measured is that of both.
    """
    jitters = [entry.jitter_ns for entry in entries if entry.jitter_ns is not None]
    filled = [
        entry
        if entry.jitter_ns is not None or not jitters
        else replace(entry, jitter_ns=jitters[0])
        for entry in entries
    ]
    if len({(entry.jitter_ns, entry.loss, entry.rate) for entry in filled}) < 2:
        return []
    ns = sum(entry.ns for entry in entries) // (2 * len(entries))
    return [
        replace(entry, ns=ns, jitter_ns=entry.jitter_ns and entry.jitter_ns // 2)
        for entry in filled
    ]


def _limited(entries: Sequence[Entry], inside_ns: int) -> list[Entry]:
    """The same with a jitter that leaves no delay negative."""
    most = max(sum(entry.ns for entry in entries) // len(entries) - inside_ns, 0)
    return [
        replace(entry, jitter_ns=entry.jitter_ns and min(entry.jitter_ns, most))
        for entry in entries
    ]


def _link(
    entries: list[Entry], jitter: Duration | Fraction | None, inside_ns: int, meaning: str
) -> dict[str, str]:
    """The WAN link's own share: a packet passes half of each site's network besides."""
    figure_ns = sum(entry.ns for entry in entries) // len(entries)
    if inside_ns > figure_ns:
        raise ValueError(
            f"{_ms_text(figure_ns)} is less than the {_ms_text(inside_ns)} that lie inside the two"
            " places; --no-inside leaves the diagonal out"
        )
    ns = figure_ns - inside_ns
    jitters = [entry.jitter_ns for entry in entries if entry.jitter_ns is not None]
    if not jitters:
        part = jitter.value if isinstance(jitter, Fraction) else 0
        jitters = [jitter.ns if isinstance(jitter, Duration) else round(ns * part)]
    if max(jitters) > ns:
        raise ValueError(
            f"a jitter of {_ms_text(max(jitters))} is more than the {_ms_text(ns)} between them, so"
            " delays would be negative; --jitter takes a part too, such as 5%"
        )
    link = {meaning: milliseconds(ns)}
    if max(jitters):
        link["jitter"] = milliseconds(max(jitters))
    for key in ("loss", "rate"):
        given = [str(v) for entry in entries if (v := getattr(entry, key)) is not None]
        link |= {key: given[0]} if given else {}
    return link


def _notes(matrix: Matrix) -> Iterator[str]:
    """What is odd in a matrix."""
    between = {(a, b): entry.ns for (a, b), entry in matrix.entries.items() if a != b}
    if (far := max(between.values(), default=0)) > _FAR_NS:
        yield f"the largest figure is {_ms_text(far)}; is the unit right (--unit)?"
    both = [pair for pair in combinations(matrix.names, 2) if {pair, pair[::-1]} <= between.keys()]
    off = {pair: abs(between[pair] - between[pair[::-1]]) for pair in both}
    if unlike := sum(map(bool, off.values())):
        a, b = max(off, key=lambda pair: off[pair])
        what = "are longer one way than the other."
        if matrix.meaning == "rtt":
            what = "have two different round trips, which both ends measured; the mean is taken."
        worst = f"Worst: {a} to {b} {_ms_text(between[a, b])}, back {_ms_text(between[b, a])}"
        yield f"{unlike} of {len(both)} pairs {what} {worst}"


def _figures(missing: Sequence[str]) -> str:
    return "1 figure is" if len(missing) == 1 else f"{len(missing)} figures are"


def _ms_text(ns: float) -> str:
    return f"{ns / 10**6:.6g} ms"

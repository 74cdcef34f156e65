"""A matrix of round-trip times as a topology file: with comments, and checked by loading it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Literal

import yaml

from wanlat.topologies.errors import UserError
from wanlat.topologies.limits import NAME_PATTERN
from wanlat.topologies.matrix import (
    Entry,
    Matrix,
    MatrixError,
    Unit,
    asymmetry,
    detours,
    read,
    sanity,
)
from wanlat.topologies.model import Topology
from wanlat.topologies.units import Duration, Fraction, Rate
from wanlat.topologies.wording import listing, short, show

Asymmetric = Literal["mean", "min", "max", "error"]
_LONGEST_NAME = 32


@dataclass(frozen=True, slots=True)
class Imported:
    """A topology file's text, what it loads to, and what is to be told: a sentence each."""

    text: str
    topology: Topology
    notes: tuple[str, ...]


def import_matrix(
    path: str | Path,
    *,
    name: str | None = None,
    nodes: int = 1,
    jitter: Duration | Fraction | None = None,
    default: Duration | None = None,
    one_way: bool = False,
    unit: Unit = "ms",
    asymmetric: Asymmetric = "mean",
    inside: bool = True,
) -> Imported:
    """Make a topology of a matrix.

    Every place becomes a site of `nodes` nodes; between nodes of two sites lies what the matrix
    says, what it says of a place and itself (unless `inside` is False) lies between its nodes.
    `jitter` is for every link between sites, as a duration or as a part of the figure. `default`
    is for pairs that are missing, and has the matrix's meaning (round trip, or one way).

    Of a round trip that both ends measured, with different results, `asymmetric` says which
    counts. Delays of one direction (`one_way`) may differ.

    UserError (MatrixError for what is in the file) lists every mistake.
    """
    matrix = read(path, one_way=one_way, unit=unit)
    if matrix.meaning == "rtt":
        _refuse_asymmetry(matrix, asymmetric)
    writer = _Writer(matrix, nodes, jitter, default, asymmetric, inside)
    return writer.write(name or _host_name(Path(path).stem, _LONGEST_NAME) or "matrix")


def _refuse_asymmetry(matrix: Matrix, asymmetric: Asymmetric) -> None:
    found = asymmetry(matrix)
    if found is None or asymmetric != "error":
        return
    a, b, there, back = found.worst
    raise MatrixError(
        f"{matrix.file}: {found.pairs} of {found.of} pairs have two different round trips, the"
        f" worst {show(a)} and {show(b)}: {_told(there)} (line {matrix.entries[a, b].line}) and"
        f" {_told(back)} (line {matrix.entries[b, a].line}). Both ends measure the same round"
        " trip; say which counts with --asymmetric mean, min or max, or, if these are one-way"
        " delays, --one-way"
    )


@dataclass(frozen=True, slots=True)
class _Link:
    """What lies from one place to another: of a round trip, or one way."""

    ns: int
    jitter_ns: int
    loss: Fraction | None
    rate: Rate | None


class _Writer:
    """Writes the file of one matrix, and gathers what is to be told."""

    def __init__(
        self,
        matrix: Matrix,
        nodes: int,
        jitter: Duration | Fraction | None,
        default: Duration | None,
        asymmetric: Asymmetric,
        inside: bool,
    ) -> None:
        self.matrix = matrix
        self.nodes = nodes
        self.jitter = jitter
        self.default = default
        self.asymmetric = asymmetric
        self.notes: list[str] = []
        self.sites = self._site_names()
        self.lan_ns = {each: self._lan(each) if inside else 0 for each in matrix.names}

    def write(self, name: str) -> Imported:
        if re.fullmatch(NAME_PATTERN, name) is None:
            raise UserError(f"{show(name)} cannot be the name of a topology; give another --name")
        self.notes += [f"column {show(each)} is not used" for each in self.matrix.unused]
        self.notes += sanity(self.matrix)
        pairs = self._round_trips() if self.matrix.meaning == "rtt" else self._one_ways()
        missing = self._missing()
        text = self._head(name) + self._sites() + self._links(pairs, missing)
        # The C loader: a matrix of 200 places has 19,900 pairs.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        topology = Topology.model_validate(yaml.load(text, Loader=loader))
        return Imported(text, topology, tuple(self.notes))

    def _site_names(self) -> dict[str, str]:
        """A host name for each place; told where it is not the place's own."""
        longest = _LONGEST_NAME - len(f"-{self.nodes}")
        taken: set[str] = set()
        made: dict[str, str] = {}
        for number, place in enumerate(self.matrix.names, start=1):
            stem = _host_name(place, longest) or f"site-{number}"
            name, count = stem, 1
            while name in taken:
                count += 1
                suffix = f"-{count}"
                name = stem[: longest - len(suffix)] + suffix
            taken.add(name)
            made[place] = name
        changed = [f"{short(place)} → {name}" for place, name in made.items() if place != name]
        if changed:
            told = listing(changed, at_most=8)
            self.notes.append(f"names that cannot be host names are written otherwise: {told}")
        return made

    def _lan(self, place: str) -> int:
        entry = self.matrix.entries.get((place, place))
        if entry is None:
            return 0
        return entry.ns if self.matrix.meaning == "rtt" else 2 * entry.ns

    def _round_trips(self) -> dict[tuple[str, str], _Link]:
        """One link a pair, alike both ways: a round trip does not tell which way is longer."""
        found = asymmetry(self.matrix)
        if found is not None:
            a, b, there, back = found.worst
            kept = {"mean": "the mean", "min": "the smaller", "max": "the larger"}
            self.notes.append(
                f"{found.pairs} of {found.of} pairs have two different round trips, which both"
                f" ends measured; {kept[self.asymmetric]} is taken. Worst: {a} to {b}"
                f" {_told(there)}, back {_told(back)}"
            )
        half = 0
        links = {}
        rtt_ns = {}
        for a, b in combinations(self.matrix.names, 2):
            entries = self.matrix.between(a, b)
            if not entries:
                continue
            half += len(entries) == 1
            links[a, b] = self._link(a, b, entries)
            rtt_ns[a, b] = rtt_ns[b, a] = self._pick([entry.ns for entry in entries])
        if half and half < len(links):
            self.notes.append(f"{half} of {len(links)} pairs are measured from one end only")
        self._tell_detours(rtt_ns)
        return links

    def _one_ways(self) -> dict[tuple[str, str], _Link]:
        found = asymmetry(self.matrix)
        if found is not None:
            a, b, there, back = found.worst
            self.notes.append(
                f"{found.pairs} of {found.of} pairs are longer one way than the other."
                f" Worst: {a} to {b} {_told(there)}, back {_told(back)}"
            )
        links = {}
        rtt_ns = {}
        for a, b in permutations(self.matrix.names, 2):
            entry = self.matrix.entries.get((a, b))
            if entry is None:
                continue
            links[a, b] = self._link(a, b, (entry,))
            back_entry = self.matrix.entries.get((b, a))
            if back_entry is not None:
                rtt_ns[a, b] = entry.ns + back_entry.ns
        self._tell_detours(rtt_ns)
        return links

    def _tell_detours(self, rtt_ns: dict[tuple[str, str], int]) -> None:
        found = detours(rtt_ns, self.matrix.names)
        if found is None:
            return
        a, b, direct, via, around = found.worst
        self.notes.append(
            f"{found.pairs} of {found.of} pairs break the triangle inequality, which is allowed"
            f" (routes follow contracts). Worst: {a} to {b} takes {_told(direct)}, over {via}"
            f" it would take {_told(around)}"
        )

    def _pick(self, figures: list[int]) -> int:
        match self.asymmetric:
            case "min":
                return min(figures)
            case "max":
                return max(figures)
            case _:
                return sum(figures) // len(figures)

    def _link(self, a: str, b: str, entries: tuple[Entry, ...]) -> _Link:
        """The WAN link's own share: a packet passes half of each site's network besides."""
        figure_ns = self._pick([entry.ns for entry in entries])
        inside_ns = (self.lan_ns[a] + self.lan_ns[b]) // 2
        inside_ns = inside_ns if self.matrix.meaning == "rtt" else inside_ns // 2
        if inside_ns > figure_ns:
            raise MatrixError(
                f"{self.matrix.file}:{entries[0].line}: from {short(a)} to {short(b)} is"
                f" {_told(figure_ns)}, less than the {_told(inside_ns)} that lie inside the"
                " two places; --no-inside leaves the diagonal out"
            )
        jitters = [entry.jitter_ns for entry in entries if entry.jitter_ns is not None]
        ns = figure_ns - inside_ns
        return _Link(
            ns,
            self._jitter(a, b, entries[0], jitters, ns),
            next((entry.loss for entry in entries if entry.loss is not None), None),
            next((entry.rate for entry in entries if entry.rate is not None), None),
        )

    def _jitter(self, a: str, b: str, entry: Entry, jitters: list[int], ns: int) -> int:
        if jitters:
            jitter_ns = max(jitters)
        elif isinstance(self.jitter, Fraction):
            return round(ns * self.jitter.value)
        else:
            jitter_ns = self.jitter.ns if self.jitter is not None else 0
        if jitter_ns > ns:
            raise MatrixError(
                f"{self.matrix.file}:{entry.line}: from {short(a)} to {short(b)}: a jitter of"
                f" {_told(jitter_ns)} is more than the {_told(ns)} between them, so delays"
                " would be negative; --jitter takes a part too, such as 5%"
            )
        return jitter_ns

    def _missing(self) -> list[tuple[str, str]]:
        matrix = self.matrix
        if matrix.meaning == "rtt":
            pairs = combinations(matrix.names, 2)
            missing = [(a, b) for a, b in pairs if not matrix.between(a, b)]
        else:
            missing = [pair for pair in permutations(matrix.names, 2) if pair not in matrix.entries]
        if not missing:
            return []
        told = listing((f"{short(a)} to {short(b)}" for a, b in missing), at_most=5)
        if self.default is None:
            raise MatrixError(
                f"{matrix.file}: {len(missing)} figures are missing: {told}; fill them in, or say"
                " with --default what they are to be"
            )
        self.notes.append(f"{len(missing)} missing figures are {self.default} by default: {told}")
        return missing

    def _head(self, name: str) -> str:
        matrix = self.matrix
        what = "round trips" if matrix.meaning == "rtt" else "one-way delays"
        lines = [f"Made by `wanlat topology import` from {Path(matrix.file).name}"]
        lines[0] += f" ({datetime.now(UTC):%Y-%m-%d}): {what} between {len(matrix.names)} places."
        lines += [*matrix.comments, *self.notes]
        comment = "".join(f"# {_one_line(line)}".rstrip() + "\n" for line in lines)
        figures = "round trips" if matrix.meaning == "rtt" else "delays"
        description = f"{len(matrix.names)} places, {figures} from {Path(matrix.file).name}"
        return f"{comment}name: {_scalar(name)}\ndescription: {_scalar(description)}\n"

    def _sites(self) -> str:
        text = "sites:\n"
        for place, site in self.sites.items():
            lan_ns = self.lan_ns[place]
            lan = f", lan: {{rtt: {_ms(lan_ns)}}}" if lan_ns and self.nodes > 0 else ""
            comment = f"  # {_one_line(place)}" if place != site else ""
            text += f"  - {{name: {_scalar(site)}, nodes: {self.nodes}{lan}}}{comment}\n"
        return text

    def _links(self, links: dict[tuple[str, str], _Link], missing: list[tuple[str, str]]) -> str:
        text = "links:\n"
        if missing and self.default is not None:
            whole = 1 if self.matrix.meaning == "rtt" else 2
            rtt = _ms(self.default.ns * whole)
            text += f"  default: {{rtt: {rtt}}}  # what the matrix does not say\n"
        if not links:
            return text
        text += "  pairs:\n"
        for (a, b), link in links.items():
            text += f"    - {{{self._pair(a, b, link)}}}\n"
        return text

    def _pair(self, a: str, b: str, link: _Link) -> str:
        near, far = _scalar(self.sites[a]), _scalar(self.sites[b])
        delay = _ms(link.ns)
        if self.matrix.meaning == "rtt":
            text = f"between: [{near}, {far}], rtt: {delay}"
        else:
            text = f"from: {near}, to: {far}, delay: {delay}"
        if link.jitter_ns:
            text += f", jitter: {_ms(link.jitter_ns)}"
        for key, value in (("loss", link.loss), ("rate", link.rate)):
            text += f", {key}: {value}" if value is not None else ""
        return text


def _ms(ns: int) -> str:
    """A duration as the file has it: one unit for all, so that figures can be compared."""
    return f"{ns / 10**6:.6f}".rstrip("0").rstrip(".") + "ms"


def _told(ns: int) -> str:
    return f"{ns / 10**6:.6g} ms"


def _host_name(text: str, longest: int) -> str:
    """The nearest host name: `São Paulo (GRU)` becomes `sao-paulo-gru`. May be empty."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z0-9]+", "-", plain).strip("-")[:longest].rstrip("-")


def _scalar(text: str) -> str:
    """The text as YAML, in quotes where YAML would read something else."""
    plain = re.fullmatch(NAME_PATTERN, text) and yaml.safe_load(text) == text
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _one_line(text: str) -> str:
    """The text on one line, printable: fit for a comment."""
    return "".join(char if char.isprintable() else "?" for char in text)

"""A topology file made out of something else: its text, its comments, and what was odd."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import path_text
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing, short
from wanlat.topologies.yaml_lines import checked
from wanlat.topologies.yaml_tree import Document, parse

_LONGEST_NAME = 32


@dataclass(frozen=True, slots=True)
class Imported:
    """A topology file's text, what it loads to, and what is to be reported: a sentence each."""

    text: str
    topology: Topology
    notes: tuple[str, ...]


def imported(
    document: Mapping[str, Any],
    *,
    source: str,
    comments: Iterable[str] = (),
    notes: Iterable[str] = (),
    places: Mapping[str, str] = {},
) -> Imported:
    """Check and write a topology that is given as plain values.

    `source` is where it comes from, for errors; comments and notes go to the head of the text;
    `places` are the sites' names there, which stand beside them where they differ. Raises
    UserError, which lists what makes it no topology.
    """
    topology, findings = checked(Document(dict(document)), Topology)
    if topology is None or findings:
        wrong = "".join(f"\n{path_text(finding.path)}: {finding.text}" for finding in findings[:20])
        raise UserError(f"{source} makes no topology:{wrong}")
    sentences = tuple(notes)
    lines = [f"# {_one_line(line)}".rstrip() for line in (*comments, *sentences)]
    lines += [f"{key}: {_flow(document[key])}" for key in ("name", "description")]
    lines.append("sites:")
    for site in document["sites"]:
        place = places.get(site["name"], site["name"])
        lines.append(f"  - {_flow(site)}{f'  # {_one_line(place)}' * (place != site['name'])}")
    links = document.get("links", {})
    lines += ["links:"] * ("default" in links or bool(links.get("pairs")))
    lines += [f"  default: {_flow(links['default'])}"] if "default" in links else []
    lines += ["  pairs:"] * bool(links.get("pairs"))
    lines += [f"    - {_flow(pair)}" for pair in links.get("pairs", ())]
    return Imported("\n".join(lines) + "\n", topology, sentences)


def host_names(places: Iterable[str], notes: list[str], longest: int = _LONGEST_NAME) -> list[str]:
    """A host name for each place, in order: `São Paulo (GRU)` becomes `sao-paulo-gru`.

    No two are the same. A note is added where they are not the places' own.
    """
    made: dict[str, str] = {}
    for number, place in enumerate(places, start=1):
        plain = unicodedata.normalize("NFKD", place).encode("ascii", "ignore").decode().lower()
        stem = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:longest].rstrip("-")
        name, count = stem or f"site-{number}", 1
        while name in made:
            count += 1
            name = f"{stem[: longest - 4]}-{count}"
        made[name] = place
    changed = [f"{short(place)} → {name}" for name, place in made.items() if place != name]
    if changed:
        names = listing(changed, at_most=8)
        notes.append(f"names that cannot be host names are written otherwise: {names}")
    return list(made)


def _flow(value: Any) -> str:
    """A value as YAML on one line, in quotes where YAML would read something else."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = str(value)
    if not isinstance(value, str) or (
        re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.%-]*", text) and parse(text).raw == text
    ):
        return text.lower() if isinstance(value, bool) else text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _one_line(text: str) -> str:
    """The text on one line, printable: fit for a comment."""
    return "".join(char if char.isprintable() else "?" for char in text)


def milliseconds(ns: float) -> str:
    """A duration as such files have it: one unit for all, so that figures can be compared."""
    return f"{ns / 10**6:.6f}".rstrip("0").rstrip(".") + "ms"

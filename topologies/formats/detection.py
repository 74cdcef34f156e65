"""Which format a file is in: by what it begins with, and by its name where that is not enough."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.formats import chaos_mesh, containerlab, gml, graphml, kollaps
from wanlat.topologies.formats.network import Options
from wanlat.topologies.formats.yaml_documents import documents
from wanlat.topologies.imported import Imported
from wanlat.topologies.wording import listing, short, show

Reader = Callable[[Path, Options], Imported]

_HEAD = 64 * 2**10
_TABLE = "a table has a line a pair, `from,to,rtt_ms`, or places across and down"
# What a file of bytes begins with, what it is, and the way out.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    *(
        (magic, "a packet capture (pcap). Take round trips out of it first: " + _TABLE)
        for magic in (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\n\r\r\n")
    ),
    (b"\x1f\x8b", "compressed by gzip. Unpack it first (gunzip)"),
    (b"\xfd7zXZ", "compressed by xz. Unpack it first (unxz)"),
    (b"BZh", "compressed by bzip2. Unpack it first (bunzip2)"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd. Unpack it first (unzstd)"),
    (b"7z\xbc\xaf", "a 7-Zip archive. Unpack it first"),
    (b"\x89PNG", "a picture (PNG). Figures have to be text: " + _TABLE),
    (b"\xff\xd8\xff", "a picture (JPEG). Figures have to be text: " + _TABLE),
    (b"GIF8", "a picture (GIF). Figures have to be text: " + _TABLE),
    (b"%PDF", "a PDF. Copy its table into a text file: " + _TABLE),
    (b"PAR1", "a Parquet file. Save it as CSV: " + _TABLE),
    (b"SQLite format 3", "an SQLite database. Save the table as CSV: " + _TABLE),
    (b"\xd0\xcf\x11\xe0", "a spreadsheet or document of Office. Save the table as CSV"),
    (b"\x7fELF", "a program. A network is a table, a graph or a topology file"),
)
_OFFICE = (b"[Content_Types].xml", b"mimetypeapplication/vnd.oasis", b"xl/workbook")
# Atomic groups throughout: a text that is none of these is given up on in one pass.
_GML = re.compile(r'(?>\s|#[^\n]*|[A-Za-z]\w*[ \t]+(?:"[^"]*"|[-\d.]\S*))*+graph\s*\[')
_XML = re.compile(
    r"(?>\s|<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*+<([A-Za-z_][\w:.-]*)", re.S
)
_YAML = re.compile(r"(?>[ \t]*(?:#[^\n]*)?\r?\n)*+(?:---\s|[A-Za-z_][\w-]*:(?:\s|$))")
_DOT = re.compile(r"\s*(?:strict\s+)?(?:di)?graph\b[^\[\n{]*\{")
_PING = re.compile(r"\s*PING \S+ ")
_KEYS: Mapping[frozenset[str], str] = {
    frozenset({"format", "wan_links"}): (
        "what `wanlat topology export --to mininet` wrote. It comes back by `wanlat topology import"
        " topologies/export/mininet.py:wanlat,{file}`"
    ),
    frozenset({"sites"}): (
        "a topology of wanlat's already. Commands take its path: `wanlat topology show {file}`"
    ),
    frozenset({"topology", "notes"}): (
        "what `wanlat topology import --json` printed. With --out it writes a topology file"
    ),
    frozenset({"faults"}): "a drill of wanlat's, and no network: `wanlat drill validate {file}`",
    frozenset({"systems"}): "a study of wanlat's, and no network: `wanlat study validate {file}`",
    frozenset({"network", "hosts"}): (
        "a configuration of Shadow's. Import the graph that its `network.graph` names, a file of"
        " its own in GML"
    ),
    frozenset({"hosts", "switches", "links"}): (
        "a network of MiniEdit's. Have MiniEdit write it as a script (Export Level 2 Script), and"
        " import that"
    ),
    frozenset({"nodes", "links"}): (
        "a graph as JSON (node-link). Save it as GraphML, as networkx.write_graphml does"
    ),
    frozenset({"nodes", "edges"}): (
        "a graph as JSON (node-link). Save it as GraphML, as networkx.write_graphml does"
    ),
    frozenset({"apiVersion", "kind"}): (
        "an object of Kubernetes ({kind}). Of these, NetworkChaos of Chaos Mesh is read"
    ),
    frozenset({"services"}): (
        "a file of Docker Compose, which has no impairments. A network is a table, a graph or a"
        " topology file"
    ),
}
_ROOTS = {
    **dict.fromkeys(
        ("html", "HTML", "body", "div", "table", "TABLE", "thead", "tbody", "tr", "TR"),
        "a web page (HTML). Save its table as CSV: " + _TABLE,
    ),
    "svg": "a picture (SVG). Figures have to be text: " + _TABLE,
    "shadow": "a configuration of Shadow 1. Put its <graphml> into a file of its own",
    "gexf": "a graph in GEXF. Save it as GraphML (Gephi: File, Export)",
}


def reader(path: Path) -> Reader | None:
    """The function that reads a file; None for a table, and for what is not there.

    Raises UserError, one sentence, for what is no network: what it is, and the way out.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except (OSError, ValueError):
        return None
    if not head.strip():
        raise UserError(f"{path} is empty. A network is a table, a graph or a topology file")
    _refuse_bytes(path, head)
    text = head.decode("utf-8-sig", errors="replace")
    if match := _XML.match(text):
        return _xml(path, match[1].rpartition(":")[2])
    if _GML.match(text) or path.suffix.lower() == ".gml":
        return gml.read
    if _DOT.match(text):
        raise _is(path, "a graph in DOT, Graphviz's language. Make it GML (gv2gml) or GraphML")
    if _PING.match(text):
        raise _is(path, "the output of ping. Write its mean into a table: " + _TABLE)
    is_data = text.lstrip()[:1] in ("{", "[") or _YAML.match(text)
    if is_data or path.suffix.lower() in (".yaml", ".yml", ".json"):
        return _data(path)
    return None


def _is(path: Path, what: str) -> UserError:
    return UserError(f"{path} is {what}.")


def _refuse_bytes(path: Path, head: bytes) -> None:
    if head.startswith(b"PK\x03\x04"):
        if any(part in head for part in _OFFICE):
            raise _is(path, "a spreadsheet or document. Save its table as CSV: " + _TABLE)
        raise _is(path, "a ZIP archive. Unpack it first")
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise _is(path, what)


def _xml(path: Path, root: str) -> Reader:
    readers: Mapping[str, Reader] = {"graphml": graphml.read, "experiment": kollaps.read}
    if root in readers:
        return readers[root]
    raise _is(
        path,
        _ROOTS.get(root)
        or f"XML, of <{short(root)}>. What is read is GraphML (<graphml>) and Kollaps'"
        " <experiment>",
    )


def _data(path: Path) -> Reader | None:
    """The reader of a file of YAML or JSON, by its keys; None where it may still be a table."""
    is_named = path.suffix.lower() in (".yaml", ".yml", ".json")
    try:
        every = documents(path)
    except UserError:
        if is_named:
            raise
        return None
    mappings = [document for document in every if isinstance(document, dict)]
    if any(chaos_mesh.is_network(document) for document in mappings):
        return chaos_mesh.read
    first: dict[str, Any] = mappings[0] if mappings else {}
    inner = first.get("topology")
    if isinstance(inner, dict) and isinstance(inner.get("nodes"), list):
        raise _is(path, "a project of GNS3's, and its links have no delays. " + _TABLE.capitalize())
    if isinstance(inner, dict) and "nodes" in inner and "sites" not in inner:
        return containerlab.read
    for keys, what in _KEYS.items():
        if keys <= first.keys():
            raise _is(path, what.format(file=path, kind=short(str(first.get("kind")))))
    if not is_named and path.suffix:
        return None
    is_list = bool(every) and not mappings
    present = "a list" if is_list else listing(map(show, first), at_most=5) or "no keys"
    raise _is(
        path, f"YAML or JSON with {present}, and no format that is read. {_TABLE.capitalize()}"
    )

"""The page of a report, and of several beside each other: one HTML file that needs nothing else.

First what was found, then charts, every sample, tables, and where it all comes from. Templates,
style and script lie in `page/`. Whatever a bundle contains is text: Jinja2 escapes it, data for the
script is JSON in which no tag can begin, and the page's own policy lets nothing run but our script,
which is known by its hash, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shlex
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from wanlat.analysis.claims import Verdict
from wanlat.analysis.names import EN_DASH, count, format_ms, listing, series_labels
from wanlat.analysis.report.strip import strip_of
from wanlat.analysis.section import Grid, runs_of
from wanlat.analysis.summary import Summary
from wanlat.bundle import beneath
from wanlat.bundle.documents import OUTCOMES, Manifest
from wanlat.bundle.errors import BundleError
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run

PAGE = Path(__file__).with_name("page")
CALIBRATION = "calibration"
LARGE = 700_000
"""Charts that are larger together get a palette, and so do those of several runs: a quarter of the
bytes, a tenth of a second each."""
_COLOURS = 128
_NAMED_AT_MOST = 6
_KINDS: Mapping[str, str] = {Verdict.HOLDS: "holds", Verdict.DOES_NOT_HOLD: "fails"}

Fact = tuple[str, str]


@dataclass(frozen=True)
class Picture:
    """A chart of a report: its files, PNG first, and the finding that it states."""

    stem: str
    title: str
    paths: tuple[Path, ...]


def page(summary: Summary, pictures: Sequence[Picture]) -> str:
    """The page of a run or a matrix."""
    run = _run(summary, pictures)
    again = f"wanlat report {shlex.quote(summary.source.directory.name)}"
    strip = _strip([("", summary.source)])
    return _render("report.html.j2", run=run, strip=strip, again=again)


def comparison(reports: Sequence[tuple[Summary, Sequence[Picture]]]) -> str:
    """The page of several runs beside each other, lettered in their order."""
    letters = string.ascii_uppercase
    runs = [
        _run(summary, pictures, letters[number % 26])
        for number, (summary, pictures) in enumerate(reports)
    ]
    summaries = [summary for summary, _ in reports]
    sources = [
        (run["letter"], summary.source) for run, summary in zip(runs, summaries, strict=True)
    ]
    directories = [shlex.quote(str(summary.source.directory)) for summary in summaries]
    titles = list(dict.fromkeys(summary.title for summary in summaries))
    return _render(
        "compare.html.j2",
        runs=runs,
        title=listing(titles, 3),
        blocks=list(_beside(summaries)),
        conditions=_conditions(runs, summaries),
        strip=_strip(sources),
        again=f"wanlat report {' '.join(directories)} -o FILE",
    )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["coded"] = _coded
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def _coded(text: str) -> Markup:
    """Text in which what stands in backticks is code; all of it is escaped."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:  # one that is not closed is a backtick
        return escape(text)
    pairs = (
        Markup("<code>{}</code>").format(p) if n % 2 else escape(p) for n, p in enumerate(parts)
    )
    return Markup("").join(pairs)


def bundles_page(directory: Path, entries: Sequence[Mapping[str, Any]]) -> str:
    """The list of bundles that `wanlat view` shows."""
    return _render("list.html.j2", directory=str(directory), entries=entries)


def live_page(directory: Path, report: str, latest: int) -> str:
    """The page of a run that is under way, which polls its server for how far that is."""
    own = {"name": directory.name, "directory": str(directory), "report": report}
    return _render("live.html.j2", "live", **own, latest=latest, follows=True)


def _render(template: str, *scripts: str, **given: Any) -> str:
    """A page with our style and script; `scripts`: more of ours."""
    css, js = (
        "".join((PAGE / name).read_text(encoding="utf-8") for name in names)
        for names in (["page.css"], ["page.js", *(f"{script}.js" for script in scripts)])
    )
    policy = {kind: _digest(text) for kind, text in (("css", css), ("js", js))}
    own = {"css": Markup(css), "js": Markup(js), "hashes": policy}  # ours, and no bundle's
    usual: dict[str, Any] = {"strip": {"lanes": [], "why": None}, "again": None, "follows": False}
    return _environment().get_template(template).render(**{**usual, **own, **given})


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _strip(sources: Sequence[tuple[str, Run | Matrix]]) -> dict[str, Any]:
    """The samples; where a column that figures do not need is damaged, why there are none."""
    try:
        return strip_of(sources) | {"why": None}
    except BundleError as error:
        return {"lanes": [], "why": str(error)}


# -- one run -------------------------------------------------------------------------------------


def _run(summary: Summary, pictures: Sequence[Picture], letter: str = "") -> dict[str, Any]:
    """All that a template needs of a run or a matrix."""
    source, manifest = summary.source, summary.source.manifest
    document = manifest.model_dump(exclude_unset=True)
    images = _images(pictures, letter)
    grids = [grid for _, grid in summary.grids()]
    plate = list(_plate(source))
    charts = [image for image in images if image["stem"] != CALIBRATION]
    findings: dict[str, str] = {}
    for chart in charts:
        findings.setdefault(chart["title"], chart["anchor"])
    return {
        "letter": letter,
        "name": source.study,
        "topology": source.topology,
        "kind": manifest.kind,
        "directory": str(source.directory) if letter else source.directory.name,
        "about": (manifest.subject and manifest.subject.description) or "",
        "when": _instant(manifest.started),
        "plate": plate,
        "is_bad": any(bad for _, _, bad in plate),
        "charts": charts,
        "findings": list(findings.items()),
        "claims": [claim for grid in grids for claim in _claims(grid)],
        "sentences": [_named(line) for grid in grids for line in grid.lines],
        "notes": [*summary.notes, *(n for grid in grids if not grid.headers for n in grid.notes)],
        "tables": [
            (grid.title.removesuffix(f": {summary.title}"), grid) for grid in grids if grid.headers
        ],
        "facts": [*_facts(manifest), *_starts(source)],
        "systems": list(_programs(source)),
        "left_out": list(_left_out(source)),
        "calibration": _calibration(source, images),
        "definitions": {key: str(text) for key, text in _definitions(summary).items()},
        "documents": [("manifest.json", json.dumps(document, indent=2, ensure_ascii=False))],
    }


def _images(pictures: Sequence[Picture], letter: str) -> list[dict[str, Any]]:
    files = []
    for picture in pictures:
        with beneath.opened(picture.paths[0]) as file:
            files.append((picture, file.read()))
    is_large = letter != "" or sum(len(data) for _, data in files) > LARGE
    made = []
    for picture, data in files:
        small = _with_palette(data) if is_large else data
        made.append(
            {
                "stem": picture.stem,
                "anchor": f"chart-{letter}{picture.stem}",
                "title": picture.title or picture.stem,
                # Width and height stand in a PNG's header, big-endian.
                "width": int.from_bytes(data[16:20]),
                "height": int.from_bytes(data[20:24]),
                "uri": f"data:image/png;base64,{base64.b64encode(small).decode()}",
            }
        )
    return made


def _with_palette(png: bytes) -> bytes:
    from PIL import Image  # matplotlib has it

    made, image = io.BytesIO(), Image.open(io.BytesIO(png)).convert("RGB")
    few = image.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(made, "PNG")
    return made.getvalue()


def _plate(source: Run | Matrix) -> Iterator[tuple[str, str, bool]]:
    """What a reader must know first: name, value, and whether it is not as it should be."""
    is_complete = source.status == "complete"
    yield "status", source.status, not is_complete
    if isinstance(source, Run) and source.is_drill:
        from wanlat.analysis.figures.drill.read import read_drill

        failures = read_drill(source)["failures"]
        verdict = count(len(failures), "failure") if failures else "passed"
        yield "drill", verdict, bool(failures)
    if isinstance(source, Matrix):
        complete, every = len(source.complete), len(source.points)
        yield "points", f"{complete} of {every} complete", complete < every
    bundles = [bundle for _, bundle in runs_of(source)]
    series = list(dict.fromkeys(one for bundle in bundles for one in bundle.systems))
    yield "systems", ", ".join(series_labels(series, source.titles).values()) or EN_DASH, False
    rtts = [bundle.measured_rtt for bundle in bundles if bundle.measured_rtt is not None]
    steps = any(bundle.has_rtt_steps for bundle in bundles)
    if rtts and not steps:
        ends = [end for rtt in rtts for end in (rtt.low_pair_ms, rtt.high_pair_ms)]
        ends = [rtts[0].median_ms] if len(rtts) == 1 and rtts[0].is_uniform else ends
        written = dict.fromkeys(map(format_ms, (min(ends), max(ends))))
        yield "RTT between sites", f"{EN_DASH.join(written)} ms", False
    counts = _outcomes(bundles)
    if counts:
        rest = [f"{counts[name]:,} {name}" for name in OUTCOMES[1:] if counts[name]]
        outcomes = f": {', '.join(rest)}" if rest else ", all ok"
        yield "samples", f"{counts.total():,}{outcomes}", False
    verdicts = [bundle.calibration.verdict for bundle in bundles if bundle.calibration]
    if verdicts:
        failed = verdicts.count("fail")
        share = f" in {failed} of {len(verdicts)}" if failed and len(verdicts) > 1 else ""
        yield CALIBRATION, f"failed{share}" if failed else "passed", failed > 0
    elif bundles:
        yield CALIBRATION, "none stored", False
    if backend := source.manifest.backend:
        yield "backend", backend, False
    yield "seed", str(EN_DASH if source.manifest.seed is None else source.manifest.seed), False


def _outcomes(bundles: Sequence[Run]) -> Counter[str]:
    counts = Counter[str]()
    for bundle in bundles:
        rows = bundle.timed
        if bundle.is_drill:
            from wanlat.analysis.figures.drill.read import read_drill

            rows = read_drill(bundle).requests
        counts.update({str(k): int(n) for k, n in rows["outcome"].value_counts().items() if n})
    return counts


def _claims(grid: Grid) -> Iterator[dict[str, str]]:
    """The claims of a table that has verdicts on them."""
    if not {"claim", "verdict"} <= set(grid.headers):
        return
    for row in grid.rows:
        given = zip(grid.headers, row, strict=True)
        cells = {key: "" if cell == EN_DASH else cell for key, cell in given}
        yield {
            "verdict": cells["verdict"],
            "kind": _KINDS.get(cells["verdict"], "unsure"),
            "text": cells["claim"],
            "of": cells.get("of", ""),
            "found": cells.get("found", "") or cells.get("decided by", ""),
            "bound": f"bound: {cells.get('bound', '')}",
        }


def _named(line: str) -> Fact:
    """A sentence, and before it its subject: "PutObject: one round trip"."""
    name, colon, rest = line.partition(": ")
    return (name, rest) if colon else ("", line)


def _instant(text: object) -> str:
    return str(text or "").replace("T", " ").replace("+00:00", " UTC")


def _facts(manifest: Manifest) -> Iterator[Fact]:
    """Where it was measured, and how."""
    if command := manifest.command:
        yield "command", shlex.join(command)
    for key in ("reason", "started", "ended", "wanlat", "kernel"):
        if value := getattr(manifest, key):
            yield key, _instant(value)
    if cpu := manifest.cpu:
        parts = (cpu.model, cpu.cores and f"{cpu.cores} cores")
        yield "processor", ", ".join(str(part) for part in parts if part)
    if memory := manifest.memory_bytes:
        yield "memory", f"{memory / 2**30:.1f} GiB"
    for key in ("backend", "storage", "shard"):
        if value := getattr(manifest, key):
            yield key, str(value)
    for key in ("client", "target"):
        if place := getattr(manifest, key):
            named = place.model_dump(exclude_unset=True).items()
            yield key, ", ".join(f"{name} {value}" for name, value in named)
    if tcp := manifest.tcp:
        yield "TCP settings", "; ".join(f"{key} {value}" for key, value in tcp.items())


def _starts(source: Run | Matrix) -> Iterator[Fact]:
    """How each system of a run became ready."""
    if not isinstance(source, Run):
        return
    from wanlat.analysis.figures.drill.requests import read_events
    from wanlat.analysis.figures.starts import starts_of

    steps = starts_of(read_events(source.directory))
    for system in dict.fromkeys(met.system for met in steps):
        mine = ", ".join(str(met) for met in steps if met.system == system)
        yield f"start of {source.titles[system]}", mine


def _programs(source: Run | Matrix) -> Iterator[dict[str, str]]:
    """Each system and what runs beside it: version, options, hash of its program; once."""
    seen = set()
    for _, bundle in runs_of(source):
        for entry in bundle.manifest.systems:
            for program in (entry, *entry.beside):
                options = entry.options.items() if program is entry else ()
                made = {
                    "name": source.titles[program.name],
                    "version": program.version,
                    "sha256": program.sha256 or "",
                    "options": ", ".join(f"{k} {_short(v)}" for k, v in options),
                }
                if (key := tuple(made.values())) not in seen:
                    seen.add(key)
                    yield made


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _left_out(source: Run | Matrix) -> Iterator[str]:
    """What is in the bundle and in no figure."""
    phases, late, cut = Counter[str](), 0, 0
    for _, bundle in runs_of(source):
        phases.update(bundle.derived.get("uncounted", {}))
        late, cut = late + bundle.late, cut + bundle.truncated
    if phases:
        named = " and ".join(f"{n:,} of {phase}" for phase, n in phases.items())
        yield f"Requests that count in no figure: {named}."
    if late:
        yield f"{count(late, 'sample')} of moments at which the network was late."
    if cut:
        yield "The last line of samples.jsonl, which is cut short."
    if isinstance(source, Matrix) and (missing := source.missing):
        whys = [f"{point.name} ({point.why_missing})" for point in missing]
        yield f"{count(len(missing), 'point')}: {listing(whys, _NAMED_AT_MOST)}."


def _calibration(source: Run | Matrix, images: Sequence[Mapping[str, Any]]) -> Any:
    """What every pair was requested to be, and was; None of a matrix, and where none is stored."""
    calibration = source.calibration if isinstance(source, Run) else None
    if calibration is None or not calibration.pairs:
        return None
    rows = []
    for pair in calibration.pairs:
        rtt, error, requested = pair.rtt_ms, pair.error_ms, pair.requested_rtt_ms
        ends = source.titles[pair.system], pair.source, pair.destination
        wanted = EN_DASH if requested is None else f"{requested:g}"
        measured = (rtt.p50, rtt.min, rtt.max) if rtt else (None, None, None)
        figures = map(format_ms, (*measured, error.p99 if error else None))
        rows.append((*ends, wanted, *figures, pair.verdict))
    grid = Grid(
        title="Requested and measured RTT of every ordered pair",
        headers=(
            *("system", "from", "to", "requested RTT ms", "measured median ms"),
            *("least ms", "most ms", "error p99 ms", "verdict"),
        ),
        rows=tuple(rows),
        text=frozenset(("system", "from", "to", "verdict")),
        troubled=frozenset(n for n, pair in enumerate(calibration.pairs) if pair.verdict != "pass"),
    )
    charts = [image for image in images if image["stem"] == CALIBRATION]
    return {"verdict": calibration.verdict, "grid": grid, "charts": charts}


def _definitions(summary: Summary) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    for block in summary.blocks.values():
        definitions |= getattr(block, "definitions", {})
        section = getattr(block, "section", None)
        definitions |= getattr(section, "definitions", {})
    return definitions


# -- runs beside each other ----------------------------------------------------------------------


def _beside(summaries: Sequence[Summary]) -> Iterator[dict[str, Any]]:
    """Each table that runs have, figure by figure: its rows, and what each run has in them."""
    tables: dict[tuple[str, int], list[tuple[int, Grid]]] = {}
    for run, summary in enumerate(summaries):
        numbers = Counter[str]()
        for name, grid in summary.grids():
            if grid.headers:
                tables.setdefault((name, numbers[name]), []).append((run, grid))
                numbers[name] += 1
    for grids in tables.values():
        every = list(dict.fromkeys(header for _, grid in grids for header in grid.headers))
        words = [header for header in every if all(header in grid.text for _, grid in grids)]
        named = [header for header in ("claim", "of") if header in every]
        keys = named if "verdict" in every else words
        figures = [header for header in every if header not in keys]
        if not figures:
            continue
        rows: dict[tuple[str, ...], dict[int, dict[str, str]]] = {}
        for run, grid in grids:
            names = _without_versions(summaries[run])
            for row in grid.rows:
                cells = dict(zip(grid.headers, row, strict=True))
                values = [cells.get(header, EN_DASH) for header in keys]
                key = tuple(names.get(value, value) for value in values)
                rows.setdefault(key, {})[run] = cells
        likely = [n for n, figure in enumerate(figures) if "[95" in figure or figure == "verdict"]
        title = grids[0][1].title
        yield {
            "title": title.removesuffix(f": {summaries[grids[0][0]].title}"),
            "headers": keys,
            "first": likely[0] if likely else min(1, len(figures) - 1),
            "figures": [
                {
                    "name": figure,
                    "kind": "w" if figure in words else "n",
                    "rows": [
                        (key, [row.get(n, {}).get(figure, EN_DASH) for n in range(len(summaries))])
                        for key, row in rows.items()
                    ],
                }
                for figure in figures
            ],
        }


def _without_versions(summary: Summary) -> dict[str, str]:
    """The name of each system by its label: versions may be what is compared."""
    source = summary.source
    series = {one for _, bundle in runs_of(source) for one in bundle.systems}
    labels = series_labels(list(series), source.titles)
    return {label: source.titles[one.system] for one, label in labels.items()}


def _conditions(runs: Sequence[Mapping[str, Any]], summaries: Sequence[Summary]) -> Grid:
    """What each run was measured under; what differs is marked."""
    from wanlat.analysis.compare.conditions import conditions_of  # for few pages, and much of it

    stated = [conditions_of(summary.source) for summary in summaries]
    names = list(dict.fromkeys(name for conditions in stated for name in conditions))
    values = [
        tuple(_short(own[n]) if own.get(n) is not None else EN_DASH for own in stated)
        for n in names
    ]
    pairs = [(name, its) for name, its in zip(names, values, strict=True) if set(its) != {EN_DASH}]
    headers = ("condition", *(str(run["letter"]) for run in runs))
    return Grid(
        title="Conditions; those that differ are marked",
        headers=headers,
        rows=tuple((name, *its) for name, its in pairs),
        text=frozenset(headers),
        troubled=frozenset(n for n, (_, its) in enumerate(pairs) if len(set(its)) > 1),
    )

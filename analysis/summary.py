"""The summary of a run or a matrix: its report, before it is written anywhere.

Every block is made by one function of `SECTIONS` from a run, or from a matrix, and brings its entry
of summary.json, its tables and its charts. Data that a run has not got makes no block (None), and
nothing here fails for it. The notes are sentences that a reader of any figure must see with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

from wanlat.analysis.claims import claims_block
from wanlat.analysis.figures.advice import ADVICE
from wanlat.analysis.figures.clusters import CLUSTERS, CLUSTERS_ROUND_TRIPS
from wanlat.analysis.figures.envelope import ENVELOPE
from wanlat.analysis.figures.growth import GROWTH
from wanlat.analysis.figures.in_rtts import in_rtts_of
from wanlat.analysis.figures.latency import DEFINITIONS, EndpointSummary, latency_of, rounded
from wanlat.analysis.figures.load import LOAD
from wanlat.analysis.figures.placements import PLACEMENTS
from wanlat.analysis.figures.reclaim import RECLAIM
from wanlat.analysis.figures.resources import resources_of
from wanlat.analysis.figures.round_trips import ROUND_TRIPS
from wanlat.analysis.figures.rtt_steps import counts, rtt_steps
from wanlat.analysis.figures.sizes import SIZES
from wanlat.analysis.names import count, format_ms, listing, series_labels
from wanlat.analysis.report.drill import drill_report
from wanlat.analysis.section import Grid, print_grid, print_notes, runs_of
from wanlat.bundle.errors import one_line
from wanlat.bundle.identity import in_words
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run, Source, how_ended, is_late

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Block(Protocol):
    """What `report` needs of a block."""

    def to_json(self) -> Any:
        """Its entry of summary.json: finite numbers, strings, lists, objects."""
        ...

    def grids(self) -> Sequence[Grid]:
        """Its tables, in the order in which they are printed; notes are the grids'."""
        ...

    def charts(self) -> Mapping[str, Figure]:
        """Its charts by the stem of their file's name; none where there is nothing to draw."""
        ...


SECTIONS: Mapping[str, Callable[[Run | Matrix], Block | None]] = {
    "placements": PLACEMENTS.answer,
    "clusters": CLUSTERS.answer,
    "clusters_round_trips": CLUSTERS_ROUND_TRIPS.answer,
    "endpoints": latency_of,
    "in_rtts": in_rtts_of,
    "round_trips": ROUND_TRIPS.answer,
    "drill": drill_report,
    "sizes": SIZES.answer,
    "load": LOAD.answer,
    "growth": GROWTH.answer,
    "reclaim": RECLAIM.answer,
    "envelope": ENVELOPE.answer,
    "advice": ADVICE.answer,
    "resources": resources_of,
}
"""What makes each block, by its key in summary.json, in the order in which they are printed."""


def blocks_of(source: Run | Matrix) -> dict[str, Block]:
    """Every block that a run or a matrix has data for, by its key in summary.json.

    With what is claimed of their figures: the claims in a study's manifest. A drill's are evaluated
    by its own block.
    """
    made = {name: block for name, make in SECTIONS.items() if (block := make(source)) is not None}
    claims = source.manifest.claims
    if claims and source.manifest.kind != "drill":
        lacking = source.lacking if isinstance(source, Run) else None
        summary = {name: block.to_json() for name, block in made.items()}
        if (block := claims_block(claims, summary, source.titles, lacking)) is not None:
            made["claims"] = block
    return made


@dataclass(frozen=True)
class Summary:
    """The report of `source`: `blocks` by their keys in summary.json, and `notes`."""

    source: Run | Matrix
    blocks: Mapping[str, Block]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """What was run, on what."""
        return f"{self.source.study} on {self.source.topology}"

    @property
    def endpoints(self) -> tuple[EndpointSummary, ...]:
        """The endpoints that single requests were sent to, in the order of the table."""
        figures = getattr(self.blocks.get("endpoints"), "figures", None)
        return () if figures is None else tuple(figures.arrays)

    @property
    def shown(self) -> Mapping[str, Block]:
        """The blocks with tables and charts: without latencies that are in another of them."""
        if "placements" in self.blocks:
            without = {"clusters", "endpoints"}
            return {k: v for k, v in self.blocks.items() if k not in without}
        if "sizes" not in self.blocks:
            return self.blocks
        figures = getattr(self.blocks["sizes"], "figures", None)
        sized = {row["endpoint"] for row in figures.rows} if figures is not None else set()
        is_whole = {entry.endpoint for entry in self.endpoints} <= sized
        return {k: v for k, v in self.blocks.items() if not (is_whole and k == "endpoints")}

    @property
    def hidden(self) -> set[str]:
        """Keys of blocks with tables that a terminal gets only with `verbose`.

        Those are of resource usage; a drill's own tables have what is of interest of the latencies
        before its faults.
        """
        hidden = {"resources", *(["endpoints"] if "drill" in self.blocks else [])}
        return hidden & set(self.blocks)

    def grids(self) -> Iterator[tuple[str, Grid]]:
        """Every table with the key of its block, in the order in which they are printed."""
        for name, block in self.shown.items():
            yield from ((name, grid) for grid in block.grids())

    def to_json(self) -> dict[str, Any]:
        """The document of summary.json."""
        definitions = dict(DEFINITIONS)
        for block in self.blocks.values():
            definitions |= getattr(block, "definitions", {})
        return {
            "bundle": _facts(self.source),
            "definitions": definitions,
            **({} if isinstance(self.source, Run) else {"matrix": _matrix(self.source)}),
            **({"speed": speed} if (speed := speed_of(self.source)) else {}),
            "endpoints": [],
            **{name: block.to_json() for name, block in self.blocks.items()},
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """summary.json as it lies on disk: the same bytes for the same bundle."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def speed_of(source: Run | Matrix) -> dict[str, float] | None:
    """How long a study took, and that over the sum of the latencies that count.

    None where it is not known; and of a drill or a load, with a length that was requested.
    """
    bundles = [run for _, run in runs_of(source)]
    wall_s = source.manifest.wall_s
    rows = [run.timed[~is_late(run.timed)] for run in bundles]
    latencies_s = sum(float(samples["total_ns"].sum()) for samples in rows) / 1e9
    if not wall_s or not latencies_s or any(r.is_drill or r.is_load for r in bundles):
        return None
    speed = {"wall_s": wall_s, "latencies_s": round(latencies_s, 3)}
    return {**speed, "wall_over_latencies": round(wall_s / latencies_s, 3)}


def summarize(source: Run | Matrix) -> Summary:
    """Everything that `source` has data for; of a matrix, from its complete points alone."""
    blocks = blocks_of(source)
    of_blocks = [note for block in blocks.values() for note in getattr(block, "notes", ())]
    own = notes_on_run(source) if isinstance(source, Run) else notes_on_matrix(source)
    # A drill says first how it ended, and what came of it.
    is_drill = isinstance(source, Run) and source.is_drill
    notes = dict.fromkeys([*of_blocks, *own] if is_drill else [*own, *of_blocks])
    return Summary(source, blocks, tuple(notes))


def print_summary(summary: Summary, console: Console, *, verbose: bool) -> None:
    """Print the tables, then the notes; resource usage only if `verbose`."""
    hidden = () if verbose else summary.hidden
    grids = [grid for name, grid in summary.grids() if name not in hidden]
    for number, grid in enumerate(grids):
        if number:
            console.print()
        print_grid(grid, console)
    if not grids and not isinstance(summary.source, Run):
        console.print(f"{one_line(summary.source.study)}: no point is complete.", markup=False)
    print_notes(summary.notes, console)
    if speed := speed_of(summary.source):
        took = "It took {wall_s:.0f} s, {wall_over_latencies:.2f} times the sum of its latencies."
        console.print(took.format_map(speed), markup=False)


def _facts(source: Run | Matrix) -> dict[str, Any]:
    """What figures need to know of the run; of one at several RTTs none is that of all samples."""
    stated = {key: getattr(source.manifest, key) for key in ("reason", "seed", "backend", "wanlat")}
    facts = {"study": source.study, "topology": source.topology, "status": source.status}
    if not isinstance(source, Run):
        del stated["backend"]
        return {"kind": "matrix", **facts, **stated}
    rtt = None if source.has_rtt_steps else source.measured_rtt
    measured = rtt and {
        "median": rounded(rtt.median_ms),
        "pair_medians": [rounded(rtt.low_pair_ms), rounded(rtt.high_pair_ms)],
        "single": [rounded(rtt.min_ms), rounded(rtt.max_ms)],
        "pairs": rtt.pairs,
    }
    steps = {"rtt_steps": _rtt_steps(source)} if source.has_rtt_steps else {}
    verdict = source.calibration.verdict if source.calibration else None
    return {**facts, **stated, "calibration": verdict, "measured_rtt_ms": measured, **steps}


def _rtt_steps(bundle: Run) -> list[dict[str, Any]]:
    return [
        {
            "system": step.system,
            "rtt_step": step.rtt_step,
            "requested_rtt_ms": step.requested_rtt_ms,
            "measured_rtt_ms": rounded(step.measured_rtt_ms),
            "counts": counts(step),
        }
        for step in rtt_steps(bundle)
    ]


def _matrix(matrix: Matrix) -> dict[str, Any]:
    parameters = [
        {"name": parameter.name, "keys": list(parameter.keys), "values": list(parameter.values)}
        for parameter in matrix.parameters
    ]
    points = [
        {
            "point": point.entry.point,
            "name": point.name,
            "system": point.system,
            "values": dict(point.values),
            "directory": f"points/{point.directory.name}",
            "status": point.entry.status,
            "reason": point.why_missing,
            "attempts": point.entry.attempts,
        }
        for point in matrix.points
    ]
    missing = [point.name for point in matrix.missing]
    untrusted = matrix.untrusted
    hosts = {host: len(points) for host, points in matrix.hosts.items()}
    lists = {"missing": missing, "untrusted": untrusted, "hosts": hosts}
    return {"parameters": parameters, "points": points, **lists}


IDLE = "Latencies of single requests are those of the probe client alone, before the load."

_NAMED_AT_MOST = 6


def notes_on_run(bundle: Run) -> list[str]:
    """What a reader of the figures of `bundle` must know, most important first; often nothing."""
    notes = list(bundle.manifest.warnings)
    if not bundle.is_drill:  # analysis.report.drill says how it ended, and how far it got
        cut = "The last line of samples.jsonl is cut short and left out."
        notes[:0] = [*filter(None, [run_note(bundle)]), *([cut] if bundle.truncated else [])]
        seen = set(bundle.timed[["system", "version"]].value_counts().index)
        is_timed = not (bundle.is_reclaim or bundle.is_envelope)
        if is_timed and (unseen := [one for one in bundle.systems if one not in seen]):
            names = list(series_labels(unseen, bundle.titles).values())
            notes.append(f"Not one measured sample of {listing(names, _NAMED_AT_MOST)}.")
    if bundle.late and not bundle.is_drill:  # which counts those of all its phases itself
        notes.append(_on_lateness([bundle]))
    notes += filter(None, [program_note(bundle)])
    idle = [IDLE] if bundle.is_load and not bundle.timed.empty else []
    return [*notes, *_on_calibration(bundle), *idle]


def notes_on_matrix(matrix: Matrix) -> list[str]:
    """How it ended, what is missing and why, and what the run and its points warned of."""
    how = _how_ended(matrix, "The matrix")
    notes = [] if how is None else [f"{how}."]
    if missing := matrix.missing:
        whys = [f"{point.name} ({point.why_missing})" for point in missing]
        notes.append(
            f"{count(len(missing), 'point')} of {len(matrix.points)} missing, in no figure: "
            f"{listing(whys, _NAMED_AT_MOST)}. `wanlat run --resume {matrix.directory}` measures "
            "what is not complete."
        )
    if len(hosts := matrix.hosts) > 1:
        by_host = [f"{host}: {len(points)}" for host, points in hosts.items()]
        notes.append(
            f"Points were measured on {len(hosts)} hosts ({listing(by_host, _NAMED_AT_MOST)}): a "
            "difference between points of different hosts may be one between the hosts."
        )
    if untrusted := matrix.untrusted:
        notes.append(
            "Calibration failed, so that they are in no chart and no comparison: "
            f"{listing(untrusted, _NAMED_AT_MOST)}."
        )
    if mixed := matrix.mixed_programs:
        notes.append(
            "Clusters that are taken for repetitions were not of one program, so that a mean over "
            f"them is of none: {in_words(mixed)}."
        )
    bundles = dict(runs_of(matrix))
    if any(bundle.late for bundle in bundles.values()):
        notes.append(_on_lateness([*bundles.values()]))
    notes += [IDLE] if any(bundle.is_load for bundle in bundles.values()) else []
    of_points = [
        (name, text) for name, bundle in bundles.items() for text in bundle.manifest.warnings
    ]
    repeated = {f"{name}: {text}" for name, text in of_points}
    own = [text for text in matrix.manifest.warnings if text not in repeated]
    warned: dict[str, list[str]] = {text: [] for text in own}
    for name, text in of_points:
        warned.setdefault(text, []).append(name)
    for text, names in warned.items():
        notes.append(text if text in own else f"{text} ({listing(names, _NAMED_AT_MOST)})")
    return notes


def run_note(bundle: Run) -> str | None:
    """How the run ended, if it did not end as it should."""
    how = _how_ended(bundle, "The run")
    return how and f"{how}: these are the samples it had taken by then."


def program_note(bundle: Source | None) -> str | None:
    """What a program that makes the requests adds to each, where one does."""
    if not isinstance(bundle, Run):
        return None
    shares = [
        f"{bundle.titles[name]} is reached through a program; its own share of each sample is "
        f"{format_ms(own.median_ms)} ms (median of {own.n} requests to do nothing; p99 "
        f"{format_ms(own.p99_ms)} ms)."
        for name, own in bundle.manifest.program_overhead.items()
    ]
    return " ".join(shares) or None


def _how_ended(source: Run | Matrix, what: str) -> str | None:
    """Such as "The run failed (disk full)"; None of what came to its end."""
    reason = source.manifest.reason
    why = f" ({reason.rstrip('.')})" if reason else ""
    ended = how_ended(source.status, source.directory)
    return f"{what} {ended}{why}" if ended else None


def _on_lateness(bundles: Sequence[Run]) -> str:
    allowed_ms = {bundle.manifest.max_network_error_ms for bundle in bundles} - {None}
    by = f"more than {allowed_ms.pop():g} ms " if len(allowed_ms) == 1 else ""
    # A load sends no request again, nor does a user's own test.
    are_again = not any(bundle.is_load for bundle in bundles) and all(
        bundle.manifest.study and bundle.manifest.study.samples for bundle in bundles
    )
    again = ", and were resampled" if are_again else ""
    late = sum(bundle.late for bundle in bundles)
    samples, are = count(late, "sample"), "is" if late == 1 else "are"
    return (
        f"{samples} of moments at which the machine made the network {by}late {are} in no figure "
        f"of latency{again}."
    )


def _on_calibration(bundle: Run) -> list[str]:
    """Whether the network was what the topology requests."""
    if bundle.calibration is None:
        unknown = "The run stored no calibration: what RTT the network really had is not known."
        # Of a single node no packet crossed a network.
        return [unknown] if len(bundle.manifest.site_of_node) != 1 else []
    if bundle.calibration.passed:
        return []
    failed = [pair for pair in bundle.calibration.pairs if pair.verdict != "pass"]
    labs = dict.fromkeys(bundle.titles[pair.system] for pair in failed if pair.system)
    where = f" in the lab of {' and of '.join(labs)}" if labs else ""
    pairs = [f"{pair.source} → {pair.destination}" for pair in failed]
    named = f" ({listing(pairs, _NAMED_AT_MOST)})" if pairs else ""
    refused = "" if bundle.is_trusted else " No chart of latencies is drawn."
    return [
        f"Calibration failed{where}{named}: the network was not what the topology asks for."
        f"{refused}"
    ]

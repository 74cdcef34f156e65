"""What charts say in words: captions, legends, and the figures beside a row."""

from __future__ import annotations

from collections.abc import Mapping

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.calibration import MeasuredRtt
from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.rows import Cell
from wanlat.analysis.charts.style import styles
from wanlat.analysis.names import EN_DASH, count, format_ms, series_labels, series_note
from wanlat.analysis.placement import LOCAL, MEANING, REMOTE, UNKNOWN, with_placement
from wanlat.analysis.summary import EndpointSummary, Summary

EXTREMES_HEADER = f"min {EN_DASH} max ms"

_DECIMALS = ((10, 2), (100, 1))


def subtitle(bundle: Bundle) -> str:
    """What the network is and where the client stands, as far as the manifest says."""
    topology = bundle.manifest.get("topology")
    parts = []
    if isinstance(topology, Mapping):
        if topology.get("description"):
            parts.append(str(topology["description"]).strip().rstrip("."))
        elif isinstance(topology.get("sites"), list):
            parts.append(count(len(topology["sites"]), "site"))
    return " · ".join([*parts, *_where_the_client_is(bundle)])


def subtitle_of_visits(bundle: Bundle, summary: Summary) -> str:
    """What the network was while its RTT was changed: not what the topology's file describes."""
    topology = bundle.manifest.get("topology")
    sites = topology.get("sites") if isinstance(topology, Mapping) else None
    visits = summary.facts.get("rtt_steps", ())
    rtts_ms = sorted({visit["requested_rtt_ms"] for visit in visits})
    parts = []
    if isinstance(sites, list):
        nodes = sum(
            site["nodes"] if isinstance(site.get("nodes"), int) else len(site.get("nodes") or ())
            for site in sites
            if isinstance(site, Mapping)
        )
        parts.append(f"{count(len(sites), 'site')}, {count(nodes, 'node')}")
    if rtts_ms:
        listed = ", ".join(f"{rtt_ms:g}" for rtt_ms in rtts_ms)
        parts.append(f"every WAN link at RTTs of {listed} ms, {count(len(visits), 'visit')}")
    return " · ".join([*parts, *_where_the_client_is(bundle)])


def _where_the_client_is(bundle: Bundle) -> list[str]:
    client = bundle.manifest.get("client")
    if not isinstance(client, Mapping) or not client.get("site"):
        return []
    node = f", node {client['node']}" if client.get("node") else ""
    return [f"client in {client['site']}{node}"]


def rtt_sentence(bundle: Bundle, *, lines: bool = True) -> str:
    """The RTT that was measured; with `lines`, why a chart has none at its multiples."""
    if bundle.calibration is None:
        return "RTT: not calibrated, so not known."
    between, within = bundle.measured_rtt, bundle.measured_rtt_within
    parts = []
    if between is not None:
        parts.append(
            f"between sites: median {format_ms(between.median_ms)} ms{_over(between)}, single "
            f"round trips {range_ms(between.min_ms, between.max_ms)}"
        )
    if within is not None:
        parts.append(f"inside a site: median {format_ms(within.median_ms)} ms{_over(within)}")
    if not parts:
        return "RTT: no pair was calibrated, so not known."
    no_lines = (
        " No lines at its multiples, because the pairs are not equally far apart."
        if lines and between is not None and not between.is_uniform
        else ""
    )
    return f"Measured RTT {'; '.join(parts)}.{no_lines}"


def _over(rtt: MeasuredRtt) -> str:
    """Over how many pairs, and how far their medians are apart."""
    low, high = format_ms(rtt.low_pair_ms), format_ms(rtt.high_pair_ms)
    spread = f" ({low}{EN_DASH}{high} ms)" if low != high else ""
    return f" over {count(rtt.pairs, 'ordered pair')}{spread}"


def legend_of(summary: Summary) -> tuple[LegendEntry, ...]:
    """An entry a series, and one more where it has remote bars, which look different.

    Local bars and those of unknown placement look alike and are told apart at their rows; where
    all of them are local, the legend says so too.
    """
    labels, looks = series_labels(summary.series), styles(summary.series)
    entries = []
    for one in summary.series:
        placements = {group.placement for group in summary.groups if group.series == one}
        near = placements - {REMOTE}
        shown = [near.pop() if len(near) == 1 else UNKNOWN] if near else []
        shown += [REMOTE] if REMOTE in placements else []
        note = f" ({series_note(one)})" if series_note(one) else ""
        for placement in shown:
            label = with_placement(labels[one], placement)
            entries.append(LegendEntry(looks[one].at(placement), label + note))
            note = ""  # said once
    return tuple(entries)


def placement_sentences(summary: Summary) -> list[str]:
    """What the placements mean and how they are told apart; nothing where none is known."""
    present = {group.placement for group in summary.groups}
    sentences = {
        MEANING: bool(present & {LOCAL, REMOTE}),
        "Rings and open dots: remote.": REMOTE in present,
        "A bar that says neither: no key, or its system does not tell.": UNKNOWN in present,
    }
    return [" ".join(s for s, holds in sentences.items() if holds)] if present - {UNKNOWN} else []


def outcome_cell(entry: EndpointSummary) -> Cell:
    """How many succeeded; where some did not, how many of which kind, alarmingly."""
    bad = [f"{n} {kind}" for n, kind in ((entry.fail, "fail"), (entry.unknown, "unknown")) if n]
    return Cell(" · ".join([f"{entry.ok} ok", *bad]), alarming=bool(bad))


def places_for(mean_ms: float) -> int:
    """Decimals with which a row is written whose mean is `mean_ms`."""
    return next((places for below, places in _DECIMALS if mean_ms < below), 0)


def range_ms(low_ms: float, high_ms: float) -> str:
    """A range with its unit."""
    return f"{format_ms(low_ms)}{EN_DASH}{format_ms(high_ms)} ms"


def extremes_cell(low_ms: float | None, high_ms: float | None, places: int) -> Cell:
    """The smallest and the greatest of a row; a question mark for one that is not known."""
    low, high = ("?" if v is None else format_ms(v, places) for v in (low_ms, high_ms))
    return Cell(f"{low} {EN_DASH} {high}")

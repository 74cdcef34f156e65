"""What charts say in words: subtitles, captions and legends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.calibration import MeasuredRtt, sites_by_node
from wanlat.analysis.charts.style import SeriesStyle, styles
from wanlat.analysis.figures.rtt_steps import rtt_steps
from wanlat.analysis.groups import Group
from wanlat.analysis.names import EN_DASH, count, format_ms, series_labels, series_note
from wanlat.analysis.placement import LOCAL, MEANING, REMOTE, UNKNOWN, with_placement


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


def subtitle_of_rtt_steps(bundle: Bundle) -> str:
    """What the network was while its RTT was changed: not what the topology's file describes."""
    sites, steps = sites_by_node(bundle.manifest.get("topology")), rtt_steps(bundle)
    parts = []
    if sites:
        parts.append(f"{count(len(set(sites.values())), 'site')}, {count(len(sites), 'node')}")
    if steps:
        listed = ", ".join(f"{ms:g}" for ms in sorted({step.requested_rtt_ms for step in steps}))
        parts.append(f"every WAN link at RTTs of {listed} ms, {count(len(steps), 'RTT step')}")
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


def looks_of(series: Sequence[Series], groups: Iterable[Group]) -> list[tuple[SeriesStyle, str]]:
    """What a legend has: an entry a series, and one more where it has remote marks.

    Local marks and those of unknown placement look alike; where all of them are local, the legend
    says so too.
    """
    labels, looks, entries = series_labels(series), styles(series), []
    found = set(groups)
    for one in series:
        placements = {group.placement for group in found if group.series == one}
        near = placements - {REMOTE}
        shown = [near.pop() if len(near) == 1 else UNKNOWN] if near else []
        shown += [REMOTE] if REMOTE in placements else []
        note = f" ({series_note(one)})" if series_note(one) else ""
        for placement in shown:
            label = with_placement(labels[one], placement)
            entries.append((looks[one].at(placement), label + note))
            note = ""  # said once
    return entries


def placement_sentences(groups: Iterable[Group]) -> list[str]:
    """What the placements mean and how they are told apart; nothing where none is known."""
    present = {group.placement for group in groups}
    sentences = {
        MEANING: bool(present & {LOCAL, REMOTE}),
        "Rings and open dots: remote.": REMOTE in present,
        "A bar that says neither: no key, or its system does not tell.": UNKNOWN in present,
    }
    return [" ".join(s for s, holds in sentences.items() if holds)] if present - {UNKNOWN} else []


def range_ms(low_ms: float, high_ms: float) -> str:
    """A range with its unit."""
    return f"{format_ms(low_ms)}{EN_DASH}{format_ms(high_ms)} ms"

"""What charts say in words: subtitles, captions and legends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from wanlat.analysis.bundle import Bundle, Series, sites_by_node
from wanlat.analysis.charts.style import SeriesStyle, styles
from wanlat.analysis.endpoints import MEANING, REMOTE, UNKNOWN, is_known, with_placement
from wanlat.analysis.figures.rtt_steps import rtt_steps
from wanlat.analysis.names import EN_DASH, count, format_ms, series_labels, series_note, shortened
from wanlat.analysis.sweep import Sweep

Source = Bundle | Sweep | None
"""What a section is of; a run, where a chart says what its network was."""
Placed = tuple[Series, str]
"""A series, and a placement of its requests."""


def subtitle(bundle: Source) -> str:
    """What the network is, or was while its RTT was changed, and where the client stands."""
    assert isinstance(bundle, Bundle)
    topology, client = bundle.manifest.get("topology"), bundle.manifest.get("client")
    sites, steps = sites_by_node(topology), rtt_steps(bundle)
    parts = [f"{count(len(set(sites.values())), 'site')}, {count(len(sites), 'node')}"]
    if steps:
        listed = ", ".join(f"{ms:g}" for ms in sorted({step.requested_rtt_ms for step in steps}))
        parts += [f"every WAN link at RTTs of {listed} ms, {count(len(steps), 'RTT step')}"]
    elif isinstance(topology, Mapping) and topology.get("description"):
        parts = [str(topology["description"]).strip().rstrip(".")]
    if isinstance(client, Mapping) and client.get("site"):
        parts.append(f"client in {client['site']}, node {client.get('node')}")
    return " · ".join(parts)


def rtt_sentence(bundle: Source, *, lines: bool = True) -> str:
    """The RTT that was measured; with `lines`, why a chart has none at its multiples."""
    assert isinstance(bundle, Bundle)
    parts = []
    for where, rtt in (
        ("between sites", bundle.measured_rtt),
        ("inside a site", bundle.measured_rtt_within),
    ):
        if rtt is not None:
            low, high = format_ms(rtt.low_pair_ms), format_ms(rtt.high_pair_ms)
            parts.append(
                f"{where}: median {format_ms(rtt.median_ms)} ms over "
                f"{count(rtt.pairs, 'ordered pair')} ({low}{EN_DASH}{high} ms), single round trips "
                f"{format_ms(rtt.min_ms)}{EN_DASH}{format_ms(rtt.max_ms)} ms"
            )
    if not parts:
        return "RTT: not calibrated, so not known."
    is_uneven = bundle.measured_rtt is not None and not bundle.measured_rtt.is_uniform
    uneven = " No lines at its multiples, because the pairs are not equally far apart."
    return f"Measured RTT {'; '.join(parts)}.{uneven if lines and is_uneven else ''}"


def legend(
    series: Sequence[Series], placed: Collection[Placed] = ()
) -> list[tuple[SeriesStyle, str]]:
    """An entry for each of `series`, and one more where it has remote marks.

    Local marks and those of unknown placement look alike; where all of them are local, the legend
    says so too.
    """
    labels, looks, entries = series_labels(series), styles(series), []
    for one in series:
        placements = {placement for other, placement in placed if other == one} or {UNKNOWN}
        near = placements - {REMOTE}
        shown = [min(near) if len(near) == 1 else UNKNOWN] if near else []
        note = f" ({series_note(one)})" if series_note(one) else ""
        for placement in (*shown, *(placements & {REMOTE})):
            label = with_placement(labels[one], placement)
            entries.append((looks[one].at(placement), label + note))
    return entries


def caption(
    series: Sequence[Series], placed: Collection[Placed], *said: str | None
) -> tuple[str, ...]:
    """Paragraphs of a caption: what a chart says, what placements are, versions in full."""
    meaning = MEANING if any(is_known(placement) for _, placement in placed) else None
    full = "; ".join(shortened(series))
    return tuple(text for text in (*said, meaning, full and f"In full: {full}.") if text)

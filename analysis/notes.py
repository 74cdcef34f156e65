"""The sentences that must stand beside the figures, because the figures cannot say them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.names import count, display_system, listing, series_labels, short_version
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.statistics import MIN_N_FOR_MEAN_INTERVAL, MIN_N_FOR_P99

if TYPE_CHECKING:
    from wanlat.analysis.summary import EndpointSummary

QUIET = "Latencies of single requests are those of the quiet user alone, before the load."

_NAMED_AT_MOST = 6


def notes_on(bundle: Bundle, endpoints: Sequence[EndpointSummary]) -> tuple[str, ...]:
    """What a reader of the figures of `bundle` must know, most important first; often nothing."""
    return (
        *on_the_run(bundle),
        *on_calibration(bundle),
        *([QUIET] if bundle.is_load and endpoints else []),
        *_on_failures(endpoints),
        *_on_placement(endpoints),
        *_on_few_samples(endpoints),
        *_on_retransmits(endpoints),
        *_on_outliers(endpoints),
    )


def run_note(bundle: Bundle) -> str | None:
    """How the run ended, if it did not end as it should."""
    reason = bundle.manifest.get("reason")
    how = {
        "interrupted": "The run was interrupted",
        "running": "The run was killed",
        "failed": "The run failed",
    }.get(bundle.status)
    if how is None:
        return None
    why = f" ({str(reason).rstrip('.')})" if reason else ""
    return f"{how}{why}: these are the samples it had taken by then."


def is_trusted(bundle: Bundle) -> bool:
    """Whether the network was right in every lab that samples come from, as far as is known."""
    calibration = bundle.calibration
    if calibration is None:
        return True
    return all(calibration.trusts(str(name)) for name in bundle.measured["system"].unique())


def on_the_run(bundle: Bundle) -> list[str]:
    """How it ended, what it warned of, and which systems it has nothing of."""
    warnings = bundle.manifest.get("warnings")
    warned = [str(text) for text in warnings] if isinstance(warnings, list) else []
    if bundle.is_drill:
        return warned  # analysis.drill.notes tells how it ended, and how far it got
    notes = [note] if (note := run_note(bundle)) else []
    if bundle.truncated:
        notes.append("The last line of samples.jsonl is cut short and left out.")
    notes += warned
    measured = bundle.measured
    seen = set(zip(measured["system"], measured["version"], strict=True))
    unseen = [one for one in bundle.systems if one not in seen]
    if bundle.is_reclaim:
        unseen = []  # it asks for nothing whose latency would count
    if unseen:
        names = [f"{display_system(one.system)} {short_version(one.version)}" for one in unseen]
        notes.append(f"Not one measured sample of {listing(names, _NAMED_AT_MOST)}.")
    return notes


def on_calibration(bundle: Bundle) -> list[str]:
    """Whether the network was what the topology asks for."""
    if bundle.calibration is None and not bundle.has_links:
        return []  # no packet crossed a network
    if bundle.calibration is None:
        return ["The run stored no calibration: what RTT the network really had is not known."]
    if bundle.calibration.passed:
        return []
    failed = [pair for pair in bundle.calibration.pairs if not pair.passed]
    labs = dict.fromkeys(display_system(pair.system) for pair in failed if pair.system)
    where = f" in the lab of {' and of '.join(labs)}" if labs else ""
    pairs = [f"{pair.source} → {pair.destination}" for pair in failed]
    named = f" ({listing(pairs, _NAMED_AT_MOST)})" if pairs else ""
    refused = "" if is_trusted(bundle) else " No chart of latencies is drawn."
    return [
        f"Calibration failed{where}{named}: the network was not what the topology asks for."
        f"{refused}"
    ]


def _on_failures(endpoints: Sequence[EndpointSummary]) -> list[str]:
    troubled = [entry for entry in endpoints if entry.fail or entry.unknown]
    if not troubled:
        return []
    parts = [
        f"{name} {entry.fail} fail, {entry.unknown} unknown of {entry.n}"
        for name, entry in zip(_names(troubled, endpoints), troubled, strict=True)
    ]
    return [f"Failures are in no mean and no percentile: {listing(parts, _NAMED_AT_MOST)}."]


def _on_placement(endpoints: Sequence[EndpointSummary]) -> list[str]:
    """What the placements mean, and of which system only one of them was measured."""
    known = [entry for entry in endpoints if is_known(entry.placement)]
    if not known:
        return []
    labels = series_labels(list(dict.fromkeys(entry.series for entry in endpoints)))
    seen = {
        one: {entry.placement for entry in known if entry.series == one}
        for one in dict.fromkeys(entry.series for entry in known)
    }
    lone = [f"{labels[one]} {placement}" for one, (placement, *more) in seen.items() if not more]
    notes = [f"{MEANING} No figure is over both: it would be that of no request."]
    if lone:
        notes.append(
            "Every key was of one placement, so that nothing is known of the other: "
            f"{listing(lone, _NAMED_AT_MOST)}."
        )
    return notes


def _on_few_samples(endpoints: Sequence[EndpointSummary]) -> list[str]:
    notes = []
    if few := [entry for entry in endpoints if 0 < entry.ok < MIN_N_FOR_P99]:
        notes.append(
            f"p99 rests on fewer than {MIN_N_FOR_P99} successful requests, so it says hardly more "
            f"than the maximum: {_which(few, endpoints)}."
        )
    if fewer := [entry for entry in endpoints if 0 < entry.ok < MIN_N_FOR_MEAN_INTERVAL]:
        notes.append(
            f"No interval of the mean from fewer than {MIN_N_FOR_MEAN_INTERVAL} successful "
            f"requests: {_which(fewer, endpoints)}."
        )
    return notes


def _on_retransmits(endpoints: Sequence[EndpointSummary]) -> list[str]:
    total = sum(entry.retransmits for entry in endpoints)
    if not total:
        return []
    which = [entry for entry in endpoints if entry.retransmits]
    return [f"TCP sent {count(total, 'segment')} again: {_which(which, endpoints)}."]


def _on_outliers(endpoints: Sequence[EndpointSummary]) -> list[str]:
    outliers = sum(entry.latency.outliers for entry in endpoints if entry.latency)
    if not outliers:
        return []
    of = sum(entry.ok for entry in endpoints)
    return [f"{count(outliers, 'outlier')} of {of} by Tukey's fences, kept in every figure."]


def _which(some: Sequence[EndpointSummary], all_of_them: Sequence[EndpointSummary]) -> str:
    if len(some) == len(all_of_them) > 1:
        return "every row"
    return listing(_names(some, all_of_them), _NAMED_AT_MOST)


def _names(some: Sequence[EndpointSummary], among: Sequence[EndpointSummary]) -> list[str]:
    """ "Bob 2.1.0 Get, local" for each of `some`, told apart from all `among`."""
    labels = series_labels(list(dict.fromkeys(entry.series for entry in among)))
    return [
        with_placement(f"{labels[entry.series]} {entry.endpoint}", entry.placement)
        for entry in some
    ]

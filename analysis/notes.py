"""What a reader of any figure of a run or a matrix must know: how it ended, and its network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.names import count, display_system, listing, short_version

if TYPE_CHECKING:
    from wanlat.analysis.sweep import Sweep

IDLE = "Latencies of single requests are those of the probe client alone, before the load."

_NAMED_AT_MOST = 6


def notes_on_run(bundle: Bundle) -> tuple[str, ...]:
    """What a reader of the figures of `bundle` must know, most important first; often nothing."""
    idle = [IDLE] if bundle.is_load and not bundle.measured.empty else []
    return (*on_the_run(bundle), *on_calibration(bundle), *idle)


def notes_on_matrix(sweep: Sweep) -> tuple[str, ...]:
    """How it ended, what is missing and why, and what the run and its points warned of."""
    reason = sweep.manifest.get("reason")
    how = {
        "interrupted": "The matrix was interrupted",
        "running": "The matrix was killed",
        "failed": "The matrix failed",
    }.get(sweep.status)
    why = f" ({str(reason).rstrip('.')})" if reason else ""
    notes = [] if how is None else [f"{how}{why}."]
    if missing := sweep.missing:
        whys = [f"{point.name} ({point.why_missing})" for point in missing]
        notes.append(
            f"{count(len(missing), 'point')} of {len(sweep.points)} missing, in no figure: "
            f"{listing(whys, _NAMED_AT_MOST)}. `wanlat run --resume {sweep.directory}` measures "
            "what is not complete."
        )
    if untrusted := untrusted_points(sweep):
        notes.append(
            "Calibration failed, so that they are in no chart and no comparison: "
            f"{listing(untrusted, _NAMED_AT_MOST)}."
        )
    if any(point.bundle is not None and point.bundle.is_load for point in sweep.complete):
        notes.append(IDLE)
    own = _warnings(sweep.manifest)
    warned: dict[str, list[str]] = {}
    for point in sweep.complete:
        for text in _warnings(point.bundle.manifest) if point.bundle else ():
            warned.setdefault(text, []).append(point.name)
    of_points = [
        f"{text} ({listing(names, _NAMED_AT_MOST)})"
        for text, names in warned.items()
        if text not in own
    ]
    return (*notes, *own, *of_points)


def untrusted_points(sweep: Sweep) -> list[str]:
    """The names of complete points whose network was not as asked for."""
    return [point.name for point in sweep.complete if point.bundle and not is_trusted(point.bundle)]


def _warnings(manifest: Mapping[str, Any]) -> list[str]:
    warnings = manifest.get("warnings")
    return [str(text) for text in warnings] if isinstance(warnings, list) else []


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
    warned = _warnings(bundle.manifest)
    if bundle.is_drill:
        return warned  # analysis.report.drill says how it ended, and how far it got
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

"""What a reader of any figure of a run or a matrix must know: how it ended, and its network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.bundle import HOW_ENDED, Bundle
from wanlat.analysis.calibration import sites_by_node
from wanlat.analysis.names import count, display_system, listing, series_labels

if TYPE_CHECKING:
    from wanlat.analysis.sweep import Sweep

IDLE = "Latencies of single requests are those of the probe client alone, before the load."

_NAMED_AT_MOST = 6


def notes_on_run(bundle: Bundle) -> list[str]:
    """What a reader of the figures of `bundle` must know, most important first; often nothing."""
    notes = list(bundle.manifest.get("warnings", ()))
    if not bundle.is_drill:  # analysis.report.drill says how it ended, and how far it got
        cut = "The last line of samples.jsonl is cut short and left out."
        notes[:0] = [*filter(None, [run_note(bundle)]), *([cut] if bundle.truncated else [])]
        seen = set(bundle.timed[["system", "version"]].value_counts().index)
        unseen = [one for one in bundle.systems if one not in seen and not bundle.is_reclaim]
        if unseen:
            names = list(series_labels(unseen).values())
            notes.append(f"Not one measured sample of {listing(names, _NAMED_AT_MOST)}.")
    if bundle.late:
        notes.append(_on_lateness(bundle))
    idle = [IDLE] if bundle.is_load and not bundle.timed.empty else []
    return [*notes, *_on_calibration(bundle), *idle]


def notes_on_matrix(sweep: Sweep) -> list[str]:
    """How it ended, what is missing and why, and what the run and its points warned of."""
    how = _how_ended(sweep, "The matrix")
    notes = [] if how is None else [f"{how}."]
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
    bundles = {point.name: point.bundle for point in sweep.complete if point.bundle}
    notes += [IDLE] if any(bundle.is_load for bundle in bundles.values()) else []
    warned: dict[str, list[str]] = {text: [] for text in sweep.manifest.get("warnings", ())}
    own = set(warned)
    for name, bundle in bundles.items():
        for text in bundle.manifest.get("warnings", ()):
            warned.setdefault(text, []).append(name)
    for text, names in warned.items():
        notes.append(text if text in own else f"{text} ({listing(names, _NAMED_AT_MOST)})")
    return notes


def untrusted_points(sweep: Sweep) -> list[str]:
    """The names of complete points whose network was not as asked for."""
    return [point.name for point in sweep.complete if point.bundle and not is_trusted(point.bundle)]


def run_note(bundle: Bundle) -> str | None:
    """How the run ended, if it did not end as it should."""
    how = _how_ended(bundle, "The run")
    return how and f"{how}: these are the samples it had taken by then."


def is_trusted(bundle: Bundle) -> bool:
    """Whether the network was right in every lab that samples come from, as far as is known."""
    calibration = bundle.calibration
    systems = bundle.timed["system"].unique()
    return calibration is None or all(calibration.trusts(str(name)) for name in systems)


def _how_ended(source: Bundle | Sweep, what: str) -> str | None:
    """Such as "The run failed (disk full)"; None of what came to its end."""
    reason = source.manifest.get("reason")
    why = f" ({str(reason).rstrip('.')})" if reason else ""
    return f"{what} {HOW_ENDED[source.status]}{why}" if source.status in HOW_ENDED else None


def _on_lateness(bundle: Bundle) -> str:
    allowed_ms = bundle.manifest.get("max_network_error_ms")
    by = f"more than {allowed_ms:g} ms " if allowed_ms is not None else ""
    again = "" if bundle.is_drill or bundle.is_load else ", and were taken again"
    samples, are = count(bundle.late, "sample"), "is" if bundle.late == 1 else "are"
    return (
        f"{samples} of moments at which the machine made the network {by}late {are} in no figure "
        f"of latency{again}."
    )


def _on_calibration(bundle: Bundle) -> list[str]:
    """Whether the network was what the topology asks for."""
    if bundle.calibration is None:
        unknown = "The run stored no calibration: what RTT the network really had is not known."
        # Of a single node no packet crossed a network.
        return [unknown] if len(sites_by_node(bundle.manifest.get("topology"))) != 1 else []
    if bundle.calibration.passed:
        return []
    failed = [pair for pair in bundle.calibration.pairs if pair.verdict != "pass"]
    labs = dict.fromkeys(display_system(pair.system) for pair in failed if pair.system)
    where = f" in the lab of {' and of '.join(labs)}" if labs else ""
    pairs = [f"{pair.source} → {pair.destination}" for pair in failed]
    named = f" ({listing(pairs, _NAMED_AT_MOST)})" if pairs else ""
    refused = "" if is_trusted(bundle) else " No chart of latencies is drawn."
    return [
        f"Calibration failed{where}{named}: the network was not what the topology asks for."
        f"{refused}"
    ]

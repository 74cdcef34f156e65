"""A bundle as the figures need it: which of its samples count, and what its network was.

Everything is checked on the way in, so that the statistics never meet a row they have to guess
about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wanlat.bundle import beneath, documents, read
from wanlat.bundle.beneath import RECORDS
from wanlat.bundle.documents import Calibration, Manifest, MeasuredRtt, Named, Titles, titles_of
from wanlat.bundle.errors import NoSamplesError
from wanlat.bundle.samples import CHECKED, TIMED, read_samples

MEASURED_PHASE = "measure"
"""Preparation and warm-up are recorded too, and never counted."""
UNCOUNTED_PHASES = ("prepare", "warmup")
IDLE_PHASE = "idle"
"""What of a study under load shows how fast its endpoints are: the probe client before the load."""
HEALTHY_PHASE = "before"
"""What of a drill shows how fast its endpoints are: the phase in which nothing is broken yet."""

HOW_ENDED = {
    "planned": "was never begun",
    "running": "was killed",
    "interrupted": "was interrupted",
    "failed": "failed",
}
"""What became of a run or a point that is not complete, by its status."""
_WHILE_WRITTEN = {"planned": "has not begun yet", "running": "is being written"}
"""Likewise, while a run holds the bundle's lock."""


def how_ended(status: str, directory: Path) -> str | None:
    """What became of the run or the point in `directory` by its status; None of a complete one."""
    if status in _WHILE_WRITTEN and read.is_being_written(directory):
        return _WHILE_WRITTEN[status]
    return HOW_ENDED.get(status)


class Series(NamedTuple):
    """What one colour of a chart stands for: one version of one system."""

    system: str
    version: str


class Source:
    """What is reported of, a run or a matrix: what their manifests have in common."""

    directory: Path
    manifest: Manifest

    @property
    def study(self) -> str:
        """Name of the study or the drill, as its file gives it."""
        kind = "drill" if self.manifest.kind == "drill" else "study"
        return name_of(self.manifest.subject, f"unnamed {kind}")

    @property
    def status(self) -> str:
        """ "running" (or killed: see `how_ended`), "complete", "interrupted" or "failed"."""
        return self.manifest.status

    @property
    def seed(self) -> int:
        """Its seed, which is also that of every bootstrap."""
        return self.manifest.seed or 0

    @property
    def titles(self) -> Titles:
        """What its systems are called."""
        return titles_of(self.manifest)


MessagesOf = Callable[[str], Any]


@dataclass(frozen=True)
class Run(Source):
    """One run, as it lies on disk.

    `given` are its samples where they are in memory already. `calibration` is None where the run
    stored none. `truncated`: the last line of `samples.jsonl` was cut short and left out. `derived`
    is for what took long to derive, under a name of who derived it. `messages_of` gives for a
    system what labels its nodes' messages in traces, as of `wanlat.systems.base.Messages`.
    """

    directory: Path
    manifest: Manifest
    calibration: Calibration | None
    given: pd.DataFrame | None = field(default=None, compare=False, repr=False)
    truncated: bool = False
    derived: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    messages_of: MessagesOf = field(default=lambda _system: None, compare=False, repr=False)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Every request of every phase, one row each, columns as in docs/reference/bundle.md; ns.

        Raises BundleError for a damaged column.
        """
        if self.given is not None:
            return self.given
        return read_samples(self.directory, self.topology, may_lack=True)[0]

    @cached_property
    def measured(self) -> pd.DataFrame:
        """What was sent in the phase that counts: measuring; of a drill, before the faults.

        Of a run under load what the probe client sent before the load. Not what could not be sent.
        Outcomes are of all rows; latencies of those that `analysis.groups.timed` lets through.
        """
        was_sent = self.samples["outcome"] != documents.NOT_SENT
        return self.samples[_is_of_phase(self.manifest, self.samples) & was_sent]

    @property
    def timed(self) -> pd.DataFrame:
        """The same rows, and those not sent, with the columns `samples.TIMED` alone.

        Light where there are millions.
        """
        timed: pd.DataFrame | None = self.derived.get("timed")
        return self.measured if timed is None else timed

    @property
    def lacking(self) -> str | None:
        """Why samples are missing, so that what else there would be is unknown; None: none are."""
        if self.status != "complete":
            return f"the run did not complete ({self.status}), so that samples are missing"
        return "the samples are cut short" if self.truncated else None

    @property
    def late(self) -> int:
        """How many samples are in no figure, because the network was late while they were taken."""
        return int(self.derived.get("late", 0))

    @property
    def network_error_ms(self) -> tuple[float, float, float] | None:
        """Median, 99th percentile and greatest network error of the samples that count.

        None where it is not known of them: under netem, and of older bundles.
        """
        quantiles: tuple[float, float, float] | None = self.derived.get("network_error_ms")
        return quantiles

    @property
    def is_drill(self) -> bool:
        """Whether a drill left it: `wanlat.analysis.figures.drill` has more of it."""
        return self.manifest.kind == "drill"

    @property
    def is_load(self) -> bool:
        """Whether it was run under load, so that its single requests are the probe client's."""
        return _has_part(self.manifest, "load")

    @property
    def is_reclaim(self) -> bool:
        """Whether it was run to see what becomes of the space of removed objects."""
        return _has_part(self.manifest, "reclaim")

    @property
    def is_envelope(self) -> bool:
        """Whether it was run to see how far apart a cluster may be."""
        return _has_part(self.manifest, "envelope")

    @property
    def has_rtt_steps(self) -> bool:
        """Whether it was run at several RTTs, to count round trips."""
        steps = self.directory / documents.RttSteps.FILE
        return _has_part(self.manifest, "round_trips") or beneath.is_file(steps)

    @property
    def topology(self) -> str:
        """Name of the topology that the run stood on."""
        return name_of(self.manifest.topology, "unnamed topology")

    @property
    def systems(self) -> tuple[Series, ...]:
        """The systems that the run meant to measure, in the order it took them."""
        return tuple(Series(system.name, system.version) for system in self.manifest.systems)

    @property
    def is_trusted(self) -> bool:
        """Whether the network was right in every lab that samples come from, as far as is known."""
        systems, calibration = self.timed["system"].unique(), self.calibration
        return calibration is None or all(calibration.trusts(str(name)) for name in systems)

    @cached_property
    def measured_rtt(self) -> MeasuredRtt | None:
        """RTT between sites as calibration found it; None without pairs that cross sites."""
        if self.calibration is None:
            return None
        return self.calibration.between_sites(self.manifest.site_of)

    @cached_property
    def measured_rtt_within(self) -> MeasuredRtt | None:
        """RTT inside a site as calibration found it; None without such pairs."""
        if self.calibration is None:
            return None
        return self.calibration.within_sites(self.manifest.site_of)


def read_run(directory: Path | str, messages_of: MessagesOf = lambda _system: None) -> Run:
    """Read and check the bundle in `directory`; `messages_of` as of `Run`.

    Raises BundleError if it is not a bundle, is of a newer format or is damaged, and
    NoSamplesError if not one request was recorded. A drill that was cut short may have none: what
    it was about to do, and how far it got, is worth reading too; and so may a run with another
    question than single requests' latency (under load, of disk space), if it answered that.
    """
    directory = Path(directory)
    manifest = read.read_manifest(directory)
    calibration = read.read_document(directory, Calibration)
    is_cut_drill = manifest.kind == "drill" and manifest.status != "complete"
    may_lack = is_cut_drill or _has_answers_besides(directory, manifest)
    topology = name_of(manifest.topology, "")
    rows, is_whole, truncated = read_samples(directory, topology, may_lack=may_lack, names=CHECKED)
    counted = rows[_is_of_phase(manifest, rows)]
    bundle = Run(
        directory,
        manifest,
        calibration,
        given=rows if is_whole else None,
        truncated=truncated,
        derived={
            "timed": counted[list(TIMED)],
            "late": int(is_late(counted).sum()),
            "uncounted": _uncounted(rows),
            "network_error_ms": _quantiles_ms(counted.loc[~is_late(counted), "network_error_ns"]),
        },
        messages_of=messages_of,
    )
    if bundle.timed.empty and not may_lack:
        raise NoSamplesError(_why_empty(bundle, len(rows)))
    return bundle


def name_of(entry: Named | None, otherwise: str) -> str:
    """The name of a manifest's study, drill or topology."""
    return (entry and entry.name) or otherwise


def _uncounted(rows: pd.DataFrame) -> dict[str, int]:
    """How many requests of preparation and warm-up there are."""
    counts = rows["phase"].value_counts()
    return {name: int(counts[name]) for name in UNCOUNTED_PHASES if counts.get(name)}


def is_late(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which requests the network was late for; where that is not known, none."""
    return rows["late"].fillna(False).astype(bool)


def _quantiles_ms(errors_ns: pd.Series[int]) -> tuple[float, float, float] | None:
    known = errors_ns.dropna().to_numpy(float)
    if not known.size:
        return None
    median, p99, most = np.quantile(known, [0.5, 0.99, 1.0], method="inverted_cdf") / 1e6
    return float(median), float(p99), float(most)


def _is_of_phase(manifest: Manifest, rows: pd.DataFrame) -> pd.Series[bool]:
    if manifest.kind == "drill":
        return (rows["phase"] == HEALTHY_PHASE) & rows["start_ns"].notna()
    return rows["phase"] == (IDLE_PHASE if _has_part(manifest, "load") else MEASURED_PHASE)


def _has_part(manifest: Manifest, kind: str) -> bool:
    return bool(getattr(manifest.study, kind, None))


def _has_answers_besides(directory: Path, manifest: Manifest) -> bool:
    """Whether a run under load, of disk space or of the envelope left what it was run for."""
    if _has_part(manifest, "load"):
        return read.has_table(directory, "load") or any((directory / RECORDS).glob("load-*.raw"))
    if _has_part(manifest, "envelope"):
        return beneath.is_file(directory / documents.Envelopes.FILE)
    return _has_part(manifest, "reclaim") and read.has_table(directory, "resources")


def _why_empty(bundle: Run, recorded: int) -> str:
    reason = bundle.manifest.reason
    ended = how_ended(bundle.status, bundle.directory)
    how = f"It {ended} before it measured anything." if ended else "Its study measured nothing."
    if read.is_being_written(bundle.directory):
        how = "It is being written, and nothing is measured yet."
    before = f" ({recorded} of preparation and warm-up)" if recorded else ""
    why = f" The reason it gives: {reason.rstrip('.')}." if reason else ""
    return f"{bundle.directory} holds no measured samples{before}. {how}{why} Run the study again."

"""A bundle as the figures need it: which of its samples count, and what its network was.

Everything is checked on the way in, so that the statistics never meet a row they have to guess
about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wanlat.analysis.calibration import (
    Calibration,
    MeasuredRtt,
    calibration_of,
    site_of_name,
    sites_by_node,
)
from wanlat.analysis.samples import read_samples
from wanlat.bundle import documents, read
from wanlat.bundle.errors import NoSamplesError

if TYPE_CHECKING:
    import pandas as pd

MEASURED_PHASE = "measure"
"""Preparation and warm-up are recorded too, and never counted."""
IDLE_PHASE = "idle"
"""What of a study under load says how fast its endpoints are: the probe client before the load."""
HEALTHY_PHASE = "before"
"""What of a drill says how fast its endpoints are: the phase in which nothing is broken yet."""


class Series(NamedTuple):
    """What one colour of a chart stands for: one version of one system."""

    system: str
    version: str


@dataclass(frozen=True)
class Bundle:
    """One run, as it lies on disk.

    `samples` holds every request of every phase, one row each, columns as in the design;
    durations are nullable integers of nanoseconds. `calibration` is None where the run stored
    none. `truncated` says that the last line of `samples.jsonl` was cut short and left out.
    """

    directory: Path
    manifest: Mapping[str, Any]
    calibration: Calibration | None
    samples: pd.DataFrame
    truncated: bool
    derived: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What took long to derive from it, kept by who derived it, under a name of its own."""

    @property
    def is_drill(self) -> bool:
        """Whether a drill left it: `wanlat.analysis.figures.drill` has more to say of it."""
        return self.manifest.get("kind") == "drill"

    @property
    def is_load(self) -> bool:
        """Whether it was run under load, so that its single requests are the probe client's."""
        return _asks_for(self.manifest, "load")

    @property
    def is_reclaim(self) -> bool:
        """Whether it was run to see what becomes of the space of removed objects."""
        return _asks_for(self.manifest, "reclaim")

    @property
    def has_rtt_steps(self) -> bool:
        """Whether it was run at several RTTs, to count round trips."""
        return (
            _asks_for(self.manifest, "round_trips")
            or (self.directory / documents.RttSteps.FILE).exists()
        )

    @property
    def study(self) -> str:
        """Name of the study or the drill, as its file gives it."""
        if self.is_drill:
            return name_of(self.manifest.get("drill"), "unnamed drill")
        return name_of(self.manifest.get("study"), "unnamed study")

    @property
    def topology(self) -> str:
        """Name of the topology that the run stood on."""
        return name_of(self.manifest.get("topology"), "unnamed topology")

    @property
    def status(self) -> str:
        """ "running" (so it was killed), "complete", "interrupted" or "failed"."""
        return str(self.manifest.get("status", "complete"))

    @property
    def seed(self) -> int:
        """Seed of the run; it also seeds the bootstrap."""
        seed = self.manifest.get("seed")
        return seed if isinstance(seed, int) else 0

    @property
    def systems(self) -> tuple[Series, ...]:
        """The systems that the run meant to measure, in the order it took them."""
        entries = self.manifest.get("systems")
        if not isinstance(entries, list):
            return ()
        return tuple(
            Series(str(entry.get("name")), str(entry.get("version")))
            for entry in entries
            if isinstance(entry, Mapping)
        )

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The rows that count: the measuring phase; of a drill what it sent before the faults.

        Of a run under load those of the probe client before the load.
        """
        samples = self.samples
        if self.is_drill:
            return samples[(samples["phase"] == HEALTHY_PHASE) & samples["start_ns"].notna()]
        phase = IDLE_PHASE if self.is_load else MEASURED_PHASE
        return samples[samples["phase"] == phase]

    @property
    def has_links(self) -> bool:
        """Whether its lab has more than one node, so that there was a network to be calibrated."""
        return len(sites_by_node(self.manifest.get("topology"))) != 1

    @cached_property
    def measured_rtt(self) -> MeasuredRtt | None:
        """RTT between sites as calibration found it; None without pairs that cross sites."""
        if self.calibration is None:
            return None
        return self.calibration.between_sites(site_of_name(self.manifest.get("topology")))

    @cached_property
    def measured_rtt_within(self) -> MeasuredRtt | None:
        """RTT inside a site as calibration found it; None without such pairs."""
        if self.calibration is None:
            return None
        return self.calibration.within_sites(site_of_name(self.manifest.get("topology")))


def read_bundle(directory: Path | str) -> Bundle:
    """Read and check the bundle in `directory`.

    Raises BundleError if it is not a bundle, is of a newer format or is damaged, and
    NoSamplesError if not one request was recorded. A drill may have none: what it was about to
    do, and how far it got, is worth reading too; and so may a run whose question is another one
    than single requests' latency (under load, of disk space), if it answered that.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    topology = name_of(manifest.get("topology"), "")
    may_lack = manifest.get("kind") == "drill" or _has_answers_besides(directory, manifest)
    samples, truncated = read_samples(directory, topology, may_lack=may_lack)
    bundle = Bundle(
        directory=directory,
        manifest=manifest,
        calibration=_read_calibration(directory),
        samples=samples,
        truncated=truncated,
    )
    if bundle.measured.empty and not may_lack:
        raise NoSamplesError(_why_empty(bundle))
    return bundle


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of the bundle in `directory`; BundleError where it is none, or damaged."""
    return read.read_manifest(directory).model_dump(exclude_unset=True)


def _asks_for(manifest: Mapping[str, Any], kind: str) -> bool:
    study = manifest.get("study")
    return isinstance(study, Mapping) and bool(study.get(kind))


def _has_answers_besides(directory: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether a run under load or of disk space left what it was run for."""
    if _asks_for(manifest, "load"):
        return any(directory.glob("load.parquet")) or any(directory.glob("load*.raw"))
    return _asks_for(manifest, "reclaim") and any(directory.glob("resources.*"))


def _read_calibration(directory: Path) -> Calibration | None:
    found = read.read_document(directory, documents.Calibration)
    return None if found is None else calibration_of(found)


def _why_empty(bundle: Bundle) -> str:
    reason = bundle.manifest.get("reason")
    how = {
        "running": "It was killed before it measured anything.",
        "interrupted": "It was interrupted before it measured anything.",
        "failed": "It failed before it measured anything.",
    }.get(bundle.status, "Its study measured nothing.")
    recorded = len(bundle.samples)
    before = f" ({recorded} of preparation and warm-up)" if recorded else ""
    why = f" The reason it gives: {str(reason).rstrip('.')}." if reason else ""
    return f"{bundle.directory} holds no measured samples{before}. {how}{why} Run the study again."


def name_of(entry: object, otherwise: str) -> str:
    """The name in a manifest's `study` or `topology`, which is an object with a name."""
    if isinstance(entry, Mapping) and entry.get("name"):
        return str(entry["name"])
    return entry if isinstance(entry, str) and entry else otherwise

"""What a report says of the resources of a run: what each node uses, and what a request costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Series
from wanlat.analysis.statistics import Interval

if TYPE_CHECKING:
    import pandas as pd

REST, ASKED = "rest", "asked"


@dataclass(frozen=True)
class Window:
    """A stretch of a run, on the samples' clock: `kind` is REST or ASKED."""

    kind: str
    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass(frozen=True)
class Use:
    """What one subject used in the windows of a kind. None: not known, or it has no such thing.

    Bytes of memory at a time; of disks and network a second; `peak_network` is the greatest second
    of what went in and out, over their mean. `cpu_share` is of one core.
    """

    seconds: float
    rss_median: float | None
    rss_max: float | None
    cpu_share: float | None
    threads: int | None
    open_files: int | None
    read_per_s: float | None
    written_per_s: float | None
    rx_per_s: float | None
    tx_per_s: float | None
    rx_packets_per_s: float | None
    tx_packets_per_s: float | None
    peak_network: float | None
    peak_network_per_s: float | None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "seconds": round(self.seconds, 3),
            "rss_bytes": {"median": whole(self.rss_median), "max": whole(self.rss_max)},
            "cpu_share": digits(self.cpu_share),
            "threads": self.threads,
            "open_files": self.open_files,
            "read_bytes_per_s": digits(self.read_per_s),
            "written_bytes_per_s": digits(self.written_per_s),
            "rx_bytes_per_s": digits(self.rx_per_s),
            "tx_bytes_per_s": digits(self.tx_per_s),
            "rx_packets_per_s": digits(self.rx_packets_per_s),
            "tx_packets_per_s": digits(self.tx_packets_per_s),
            "network_peak_over_mean": digits(self.peak_network),
            "network_peak_bytes_per_s": digits(self.peak_network_per_s),
        }


@dataclass(frozen=True)
class Subject:
    """A node, what stands before the cluster on it (`front`), or one of our programs (`own`)."""

    kind: str
    name: str
    at_rest: Use | None
    asked: Use | None
    space_bytes: int | None
    """At the end."""
    files: int | None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "kind": self.kind,
            "name": self.name,
            "at_rest": None if self.at_rest is None else self.at_rest.to_json(),
            "asked": None if self.asked is None else self.asked.to_json(),
            "space_bytes": self.space_bytes,
            "files": self.files,
        }


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval; None where none can be given."""

    value: float
    ci95: Interval | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        ends = None if self.ci95 is None else [digits(self.ci95[0]), digits(self.ci95[1])]
        return {"value": digits(self.value), "ci95": ends}


@dataclass(frozen=True)
class RequestCost:
    """What one request costs, on average over `requests` of an endpoint (None: of all).

    Bytes on WAN links, both directions together; bytes that the nodes sent, whoever to; CPU time of
    all nodes and of what stands before them. `wan_over_object` is WAN bytes over the object's.
    """

    endpoint: str | None
    requests: int
    object_bytes: float
    wan_bytes: Estimate | None
    sent_bytes: Estimate | None
    cpu_ms: Estimate | None

    @property
    def is_known(self) -> bool:
        """Whether there is any figure."""
        return any(each is not None for each in (self.wan_bytes, self.sent_bytes, self.cpu_ms))

    @property
    def wan_over_object(self) -> float | None:
        """How many times the object's bytes crossed WAN links."""
        if self.wan_bytes is None or self.object_bytes <= 0:
            return None
        return self.wan_bytes.value / self.object_bytes

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "endpoint": self.endpoint,
            "requests": self.requests,
            "object_bytes": whole(self.object_bytes),
            **{
                name: None if value is None else value.to_json()
                for name, value in (
                    ("wan_bytes", self.wan_bytes),
                    ("sent_bytes", self.sent_bytes),
                    ("cpu_ms", self.cpu_ms),
                )
            },
            "wan_over_object_bytes": digits(self.wan_over_object),
        }


@dataclass(frozen=True)
class StoredCost:
    """What stored bytes cost: `disk_bytes` is what the directories of all nodes grew by.

    `copies` is what the system's options say that a byte must cost, in words and as a number: 3 of
    three replicas, 1.5 of 4 + 2 erasure coding; None where they do not say. `written` is what all
    nodes wrote to disks, over the bytes that were put; None where that is not known, as on tmpfs.
    """

    objects: int
    stored_bytes: int
    disk_bytes: int
    copies: float | None
    scheme: str | None
    written: float | None
    of_prefill: bool

    @property
    def per_byte(self) -> float:
        """Disk bytes a stored byte."""
        return self.disk_bytes / self.stored_bytes

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "objects": self.objects,
            "stored_bytes": self.stored_bytes,
            "disk_bytes": self.disk_bytes,
            "disk_bytes_per_stored_byte": digits(self.per_byte),
            "stated_copies": digits(self.copies),
            "scheme": self.scheme,
            "written_bytes_per_put_byte": digits(self.written),
        }


@dataclass(frozen=True)
class Resources:
    """What one system of a run used. `background_known`: what it uses at rest was taken off.

    `frame` holds the rows of resources.parquet; `rest` and `asked` are the windows.
    """

    series: Series
    windows: tuple[Window, ...]
    subjects: tuple[Subject, ...]
    requests: tuple[RequestCost, ...]
    background_known: bool
    stored: StoredCost | None
    frame: pd.DataFrame = field(repr=False, compare=False)

    @property
    def nodes(self) -> list[Subject]:
        """The nodes, in order."""
        return [each for each in self.subjects if each.kind == "node"]

    @property
    def of_all(self) -> RequestCost | None:
        """What a request costs whichever it is; None where none was sent."""
        return next((each for each in self.requests if each.endpoint is None), None)

    def memory(self, kind: str) -> float | None:
        """Median memory of a node, at REST or ASKED: the mean over nodes, bytes."""
        uses = [each.at_rest if kind == REST else each.asked for each in self.nodes]
        found = [use.rss_median for use in uses if use is not None and use.rss_median is not None]
        return sum(found) / len(found) if found else None

    def to_json(self, origin_ns: int) -> dict[str, Any]:
        """The entry of summary.json; instants are seconds after `origin_ns`."""
        return {
            "system": self.series.system,
            "version": self.series.version,
            "windows": [
                {
                    "kind": window.kind,
                    "begin_s": round((window.begin_ns - origin_ns) / 1e9, 3),
                    "end_s": round((window.end_ns - origin_ns) / 1e9, 3),
                }
                for window in self.windows
            ],
            "subjects": [each.to_json() for each in self.subjects],
            "background_taken_off": self.background_known,
            "requests": [each.to_json() for each in self.requests],
            "stored": None if self.stored is None else self.stored.to_json(),
        }


@dataclass(frozen=True)
class Sampling:
    """What the manifest says of how resources were looked at."""

    every_s: float | None
    cost_cpu_share: float | None
    late_p99_ms: float | None
    stretched: str | None
    failed: str | None

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Sampling:
        """Read it; a run that was killed has none."""
        found = manifest.get("resources")
        said = found if isinstance(found, Mapping) else {}
        return cls(
            said.get("every_s"),
            said.get("cost_cpu_share"),
            said.get("late_p99_ms"),
            said.get("stretched"),
            said.get("failed"),
        )

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "every_s": self.every_s,
            "cost_cpu_share": self.cost_cpu_share,
            "late_p99_ms": self.late_p99_ms,
            "stretched": self.stretched,
            "failed": self.failed,
        }


def digits(value: float | None) -> float | None:
    """With six digits; None stays None."""
    return None if value is None else float(f"{value:.6g}")


def whole(value: float | None) -> int | None:
    """Rounded; None stays None."""
    return None if value is None else round(value)

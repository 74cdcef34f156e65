"""What a bundle has on resources: samples of nodes and links, and the requests meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.bundle.documents import Prefills, Reclaims
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document, read_table

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle

_KINDS = ("node", "front", "link")
_WORDS = ("system", "kind", "subject")
_REQUEST = ("system", "outcome", "object_bytes", "begin_ns", "end_ns")


def read_rows(directory: Path) -> pd.DataFrame:
    """Every row of nodes, fronts and links in order of time; empty where nothing was sampled.

    Figures are floats, NaN where there is none. Raises BundleError for a file that is damaged.
    """
    import pandas as pd

    from wanlat.bundle.tables import RESOURCES

    figures = [name for name in RESOURCES.names if name not in ("t_ns", *_WORDS)]
    found = read_table(directory, "resources")
    if found is None or found[0].empty:
        return pd.DataFrame(columns=["t_ns", *_WORDS, *figures])
    frame, path, _ = found
    missing = {"t_ns", *_WORDS} - set(frame.columns)
    if missing:
        raise BundleError(f"{path} is damaged: it has no {', '.join(sorted(missing))}.")
    frame = frame[frame["kind"].isin(_KINDS)].reindex(columns=["t_ns", *_WORDS, *figures])
    types = {"t_ns": "int64", **dict.fromkeys(figures, "float64")}
    return frame.astype(types).sort_values("t_ns", kind="stable", ignore_index=True)


def requests_of(bundle: Bundle) -> pd.DataFrame:
    """Every request that counts, one row each: `_REQUEST`; of a run under load those of the load.

    Warm-up requests use as much as measured ones, so they are in it; preparing is not.
    """
    import pandas as pd

    samples = bundle.samples
    counted = samples[(samples["phase"] != "prepare") & samples["start_ns"].notna()]
    if bundle.is_load:
        counted = counted[counted["phase"] == "loaded"]
    parts = [counted.assign(taken_ns=counted["total_ns"].fillna(counted["elapsed_ns"]))]
    if (load := read_table(bundle.directory, "load")) is not None:
        parts.append(load[0].assign(taken_ns=load[0]["elapsed_ns"]))
    return pd.concat([_spans(part) for part in parts], ignore_index=True)


def are_all_known(bundle: Bundle) -> bool:
    """Whether these are all that was sent: of a load that was killed only its probes are."""
    return not bundle.is_load or (bundle.directory / "load.parquet").is_file()


def prefill_entry(directory: Path, system: str) -> Mapping[str, Any] | None:
    """What prefill.json says of `system`. Raises BundleError where it is damaged."""
    return _entry(read_document(directory, Prefills), system)


def reclaim_entry(directory: Path, system: str) -> Mapping[str, Any] | None:
    """What reclaim.json says of `system`. Raises BundleError where it is damaged."""
    return _entry(read_document(directory, Reclaims), system)


def manifest_entry(manifest: Mapping[str, Any], system: str) -> Mapping[str, Any]:
    """What the manifest says of the sampling of `system`."""
    said = manifest.get("resources")
    systems = said.get("systems", {}) if isinstance(said, Mapping) else {}
    found: Mapping[str, Any] = systems.get(system, {})
    return found


def _entry(found: Prefills | Reclaims | None, system: str) -> Mapping[str, Any] | None:
    entries = found.systems if found is not None else ()
    return next((each.model_dump() for each in entries if each.system == system), None)


def _spans(requests: pd.DataFrame) -> pd.DataFrame:
    begin_ns = requests["start_ns"].astype("int64")
    return requests.assign(
        object_bytes=requests["object_bytes"].fillna(0).astype("int64"),
        begin_ns=begin_ns,
        end_ns=begin_ns + requests["taken_ns"].fillna(0).astype("int64"),
    )[list(_REQUEST)]

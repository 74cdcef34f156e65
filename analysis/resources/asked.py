"""What was asked of a system while its resources were sampled: requests, however they were sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.resources.windows import Span

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle

_NOT_ASKED = ("prepare",)
_COLUMNS = ("system", "endpoint", "outcome", "object_bytes", "begin_ns", "end_ns")


def requests_of(bundle: Bundle) -> pd.DataFrame:
    """Every request that counts, one row each: `_COLUMNS`; of a run under load those of the load.

    Warm-up requests cost as much as measured ones, so they are in it; preparing is not.
    """
    import pandas as pd

    samples = bundle.samples
    counted = samples[~samples["phase"].isin(_NOT_ASKED) & samples["start_ns"].notna()]
    if bundle.is_load:
        counted = counted[counted["phase"] == "loaded"]
    taken = counted["total_ns"].fillna(counted["elapsed_ns"]).fillna(0)
    frame = pd.DataFrame(
        {
            "system": counted["system"],
            "endpoint": counted["endpoint"],
            "outcome": counted["outcome"],
            "object_bytes": counted["object_bytes"].fillna(0).astype("int64"),
            "begin_ns": counted["start_ns"].astype("int64"),
            "end_ns": (counted["start_ns"] + taken).astype("int64"),
        }
    )
    load = _of_load(bundle)
    return frame if load is None else pd.concat([frame, load], ignore_index=True)


def are_all_known(bundle: Bundle) -> bool:
    """Whether these are all that was sent: of a load that was killed only its quiet user's are."""
    return not bundle.is_load or (bundle.directory / "load.parquet").is_file()


def spans_of(bundle: Bundle, system: str, requests: pd.DataFrame) -> list[Span]:
    """When `system` was asked: from its first request that counts to the last one's end.

    In a study of disk space that is given back: while it was filled, and while it removed.
    """
    reclaimed = reclaim_entry(bundle.directory, system)
    if reclaimed is not None:
        spans = (reclaimed.get("filled_ns"), reclaimed.get("removed_ns"))
        return [(int(span[0]), int(span[1])) for span in spans if span]
    own = requests[requests["system"] == system]
    return [] if own.empty else [(int(own["begin_ns"].min()), int(own["end_ns"].max()))]


def prefill_entry(directory: Path, system: str) -> Mapping[str, Any] | None:
    """What prefill.json says of `system`."""
    return _entry(directory / "prefill.json", system)


def reclaim_entry(directory: Path, system: str) -> Mapping[str, Any] | None:
    """What reclaim.json says of `system`."""
    return _entry(directory / "reclaim.json", system)


def _entry(path: Path, system: str) -> Mapping[str, Any] | None:
    try:
        entries: Sequence[Any] = json.loads(path.read_text("utf-8"))["systems"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return next((e for e in entries if isinstance(e, Mapping) and e.get("system") == system), None)


def _of_load(bundle: Bundle) -> pd.DataFrame | None:
    import pandas as pd

    path = bundle.directory / "load.parquet"
    if not path.is_file():
        return None
    load = pd.read_parquet(path)
    if "elapsed_ns" not in load:
        load["elapsed_ns"] = load["total_ns"]
    if "system" not in load:
        load["system"] = bundle.systems[0].system if bundle.systems else ""
    load["begin_ns"] = load["start_ns"].astype("int64")
    load["end_ns"] = load["begin_ns"] + load["elapsed_ns"].fillna(0).astype("int64")
    load["object_bytes"] = load["object_bytes"].fillna(0).astype("int64")
    return load[list(_COLUMNS)]

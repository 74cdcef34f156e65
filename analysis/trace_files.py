"""A trace as files: the diagram as SVG and PNG, and trace.json with every message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.charts import sequence, style
from wanlat.analysis.endpoints import is_known
from wanlat.analysis.groups import Group
from wanlat.analysis.report import replace_text
from wanlat.analysis.trace import Trace, traces_of


def write_trace(trace: Trace, stem: Path) -> list[Path]:
    """Write `stem`.svg, `stem`.png and `stem`.json, and return the three; only the last of a
    request that crossed no WAN link.

    Raises BundleError where they cannot be written.
    """
    pictures = style.save(sequence.draw(trace), stem) if trace["chain"] else []
    document = stem.with_name(f"{stem.name}.json")
    replace_text(document, json.dumps(trace, indent=2, ensure_ascii=False) + "\n")
    return [*sorted(pictures, reverse=True), document]


def charts_of(bundle: Bundle, groups: Sequence[Group]) -> dict[str, Figure]:
    """The diagrams of the typical requests of `groups` that cross WAN links, by their files' stem.

    Of a group that the packet record has no request of there is none.
    """
    traces = [trace for trace in traces_of(bundle, groups) if trace["chain"]]
    return {stem(trace): sequence.draw(trace) for trace in traces}


def stem(trace: Trace) -> str:
    """The name of its files among a bundle's charts: "trace-quorum-Get-local"."""
    placement = trace["placement"]
    known = (placement,) if is_known(placement) else ()
    return "-".join(("trace", trace["system"], trace["endpoint"].replace("/", "."), *known))

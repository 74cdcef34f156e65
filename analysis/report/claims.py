"""What publications claim, on one page: of every claim its verdict by all bundles together.

The figures are those of the summary.json of each bundle.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from wanlat.analysis.claims import DECIDED_BY, Verdict, corrected_for, evaluated, table_of
from wanlat.analysis.files import replace_text
from wanlat.analysis.report.index import PAGE
from wanlat.analysis.section import markdown
from wanlat.bundle.documents import titles_of
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import bundles_below, read_json, read_manifest
from wanlat.bundle.run import name_of


def write_claims(places: Sequence[Path], publications: Sequence[Any], out: Path) -> Path:
    """Write README.md into `out`: a verdict on every claim of `publications`; return its path.

    Publications are as `wanlat.experiments.config.claims` has them, as plain values. All claims of
    one are corrected for together. Raises BundleError where there is no bundle below `places`, one
    has no summary.json, or `out` cannot be written.
    """
    manifests = {path: read_manifest(path) for place in places for path in bundles_below(place)}
    titles = titles_of(*manifests.values())
    # Of a point its matrix may have the documents.
    lies_in = {
        os.path.relpath(bundle, out): os.path.relpath(bundle.parents[1], out)
        for bundle in manifests
        if not (bundle / "manifest.json").is_file()
    }
    # The points of a matrix are in its summary; drills of one bundle have one each.
    matrices = {path for path, its in manifests.items() if its.kind == "matrix"}
    bundles = [path for path, its in manifests.items() if its.kind != "drills"]
    whole = [path for path in bundles if not matrices & {*path.parents}]
    if not whole:
        where = ", ".join(map(str, places))
        raise BundleError(f"There is no bundle below {where}. `wanlat run` makes one.")
    claims = [claim for publication in publications for claim in publication["claims"]]
    wanted = {one for claim in claims for one in _about(claim)}
    summaries = [_summary(bundle, out) for bundle in whole if wanted & _measured(bundle)]
    verdicts, used, sections = Counter[Verdict](), set[str](), list[str]()
    for publication in publications:
        data, specs = dict[str, Any](), list[Any]()
        for claim in publication["claims"]:
            studies, key = _studies(claim), claim["id"]
            data[key] = [summary for summary in summaries if summary["study"] in studies]
            used |= {summary["bundle"] for summary in data[key]}
            specs.append(claim | {"rows": f"{key}.{claim.get('rows')}"})
        results = evaluated(specs, data)
        verdicts.update(result["verdict"] for result in results)
        notes = [corrected_for(results)]
        sections += [f"## {publication['title']}\n", f"Source: {publication['source']}\n"]
        if publication.get("conditions"):
            sections.append(f"{publication['conditions']}\n")
        sections.append(markdown(table_of(results, titles, "Verdicts", notes)))
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict)
    text = [
        "# What was published, and whether it holds here\n",
        "Made by `wanlat report --claims`; not written by hand. The claims on time, space and "
        "faults of the publications that this toolkit grew from, and of etcd's guide: the bound "
        "that we put to the words of each, what the stored bundles say, and a verdict. "
        "Only ratios are compared with published ones: machine, versions and network are not "
        "theirs. [How a claim is judged](../../reference/claims.md).\n",
        f"**{verdicts.total()} verdicts: {counts}.**\n",
        f"{DECIDED_BY} A page that judges a claim by fewer bundles corrects for fewer comparisons, "
        "and may decide more.\n",
        *sections,
        "## Bundles\n",
        *(f"- [{path}]({lies_in.get(path, path)})" for path in sorted(used)),
    ]
    out.mkdir(parents=True, exist_ok=True)
    replace_text(out / PAGE, "\n".join(text) + "\n")
    return out / PAGE


def _studies(claim: Mapping[str, Any]) -> list[str]:
    names = claim.get("study") or []
    return [names] if isinstance(names, str) else list(names)


def _about(claim: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The studies and the systems that a claim is about."""
    system = (claim.get("where") or {}).get("system", [])
    return {*product(_studies(claim), [system] if isinstance(system, str) else system)}


def _measured(directory: Path) -> set[tuple[str, str]]:
    """Which study of which systems a bundle is."""
    manifest = read_manifest(directory)
    study = name_of(manifest.subject, "unknown")
    return {(study, system.name) for system in manifest.systems}


def _summary(directory: Path, out: Path) -> dict[str, Any]:
    """The summary.json of a bundle, with what distinguishes it from the others.

    `bundle`: its path, from `out`; `study`; `run`: that path without the name of its topology, so
    that what was measured together on two networks has one; `place`: the last two names of it.
    """
    path = directory / "summary.json"
    try:
        summary = read_json(path)
        study = summary["bundle"]["study"]
        bundle = run = os.path.relpath(directory, out)
        manifest = read_manifest(directory)
        for topology in manifest.topologies or [name_of(manifest.topology, "unknown")]:
            run = run.replace(topology, "*")
        where = {"topology": summary["bundle"].get("topology"), "bundle": bundle, "run": run}
        where["place"] = "/".join(directory.resolve().parts[-2:])
        return {**summary, **where, "study": study}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(
            f"{path} cannot be read: {type(error).__name__} {error}. "
            f"`wanlat report {directory}` writes it again."
        ) from error

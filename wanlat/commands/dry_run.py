"""``--dry-run``: what would run, on what, and for how long; nothing is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wanlat.output import remark, show_document
from wanlat.systems.engine.progress import elapsed

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study
    from wanlat.experiments.drill.prepare import PreparedDrill
    from wanlat.experiments.matrix_points import Batch, PreparedPoints
    from wanlat.experiments.prepare import Prepared


def show_study(study: Study, how: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a study would run, measured so: each of its points, if it is a matrix."""
    from wanlat.experiments.matrix_points import StudyPoints, points_of, prepare_points
    from wanlat.experiments.prepare import prepare
    from wanlat.experiments.run import estimate, summed

    whole: Prepared | PreparedPoints
    points: list[tuple[str | None, Prepared]]
    if not study.has_points:
        whole = prepare(study, **how)
        points = [(None, whole)]
    else:
        whole = matrix = prepare_points(StudyPoints(study), **how)
        known: dict[str, Any] = {}
        points = [(p.name, matrix.prepare(p, known)) for p in points_of(study)]
    rows = [
        {"point": name, **estimate(prepared, subject)}
        for name, prepared in points
        for subject in prepared.subjects
    ]
    times = summed([row["takes_s"] for row in rows])
    document = {
        "study": study.name,
        "backend": whole.backend or "auto",
        "directory": str(whole.directory),
        "seed": study.seed,
        "samples": sum(row["samples"] for row in rows),
        "points": rows,
        "takes_s": times,
    }
    show_document(document, as_json=as_json)
    remark(f"{_range(*times['total'])} Nothing was started.")


def _range(least_s: float, most_s: float) -> str:
    return f"It takes {elapsed(least_s)} to {elapsed(most_s)}."


def show_drills(batch: Batch, how: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a drill would do to each system, and which claims it would check."""
    from wanlat.experiments.matrix_points import prepare_points

    if batch.is_one:
        prepared = [batch.prepare(**how)]
    else:
        every = prepare_points(batch, **how)
        prepared = [every.prepare(point) for point in every.selected]
    documents = [_drill(drill) for drill in prepared]
    one = len(documents) == 1
    show_document(documents[0] if one else {"drills": documents}, as_json=as_json)
    total_s = sum(drill.stated.total_s for drill in prepared)
    remark(f"{_range(sum(drill.least_s for drill in prepared), total_s)} Nothing was started.")


def _drill(prepared: PreparedDrill) -> dict[str, Any]:
    phases = prepared.drill.phases
    faults = []
    for step in prepared.steps:
        words = filter(None, (step.fault.kind, step.fault.subject, step.fault.detail))
        until_s = None if step.until_ns is None else step.until_ns / 1e9
        faults.append({"fault": " ".join(words), "from_s": step.at_ns / 1e9, "until_s": until_s})
    return {
        "drill": prepared.drill.name,
        "system": prepared.system.name,
        "version": prepared.binary.version,
        "topology": prepared.plan.name,
        "backend": prepared.backend or "auto",
        "directory": str(prepared.directory),
        "seed": prepared.seed,
        "roles": {name: list(nodes) for name, nodes in prepared.roles.items()},
        "clients": [
            {"client": p.name, "node": p.node, "target": p.target} for p in prepared.places
        ],
        "phases_s": {key: getattr(phases, key).s for key in ("before", "during", "after")},
        "faults": faults,
        "remarks": prepared.system.indispensable_sites(prepared.plan, prepared.options),
        "claims": [{"id": claim.id, "claim": claim.claim} for claim in prepared.claims],
        "at_least_s": round(prepared.least_s, 1),
        "at_most_s": {**prepared.stated._asdict(), "total": prepared.stated.total_s},
    }

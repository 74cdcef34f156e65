"""What is compared: clusters of OLD and NEW, which system with which, and whether alike."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from wanlat.analysis.figures.rtt_steps import counts, rtt_steps
from wanlat.analysis.names import listing, series_order
from wanlat.bundle.errors import BundleError
from wanlat.bundle.identity import in_words, unlike
from wanlat.bundle.matrix import REPEATED, Matrix, read_source
from wanlat.bundle.run import Run, Series

Pair = tuple[Series | None, Series | None]
"""The same system in OLD and in NEW; None where only the other one measured it."""

USUAL_RTT_MS = 100.0
"""The RTT that figures of distant datacenters are usually given for."""

_MUST_BE_EQUAL = {
    "topology": ("topology", "name"),
    "sites": ("topology", "sites"),
    "links": ("topology", "links"),
    "object size": ("study", "object_size"),
    "keys": ("study", "key_mode"),
    "connection": ("study", "connection"),
    "deadline": ("study", "deadline"),
    "client's node": ("client", "node"),
    "target's node": ("target", "node"),
    "backend": ("backend",),
    "storage": ("storage",),
    "jitter": ("study", "round_trips", "jitter"),
}
"""What changes what a request does, or how it may end; samples and warm-up do not."""
_MAY_DIFFER = {
    "host": ("host",),
    "processor": ("cpu",),
    "kernel": ("kernel",),
    "TCP settings": ("tcp",),
    "version of wanlat": ("wanlat",),
    "RTTs": ("study", "round_trips", "rtts"),
    "seed": ("seed",),
}
_BEYOND = 1.05
"""What a link measures is a little more than what was requested."""
_LONGEST_SHOWN = 48


_CLUSTERS = "clusters"


def read(directory: Path) -> Run:
    """Read a run, or replicates as if they were one run with several clusters.

    Raises BundleError where a matrix varies anything else, and where no cluster can be used.
    """
    if isinstance(matrix := read_source(directory), Run):
        return matrix
    varied = [parameter.name for parameter in matrix.parameters if matrix.varies(parameter.name)]
    if others := [name for name in varied if name not in REPEATED]:
        raise BundleError(
            f"{directory} is a matrix over {listing(others, 6)}. Compared are runs and replicates: "
            f"give a point, {directory}/points/NAME."
        )
    if mixed := matrix.mixed_programs:
        raise BundleError(
            f"{directory}: its clusters were not of one program ({in_words(mixed)}). Give one of "
            f"them, {directory}/points/NAME."
        )
    left_out = matrix.untrusted
    points = [point for point in matrix.complete if point.name not in left_out]
    clusters = [point.bundle for point in points if point.bundle is not None]
    if not clusters:
        raise BundleError(f"{directory} has no complete cluster whose network was right.")
    own = {
        **{key: getattr(matrix.manifest, key) for key in ("status", "started", "seed")},
        "host": ", ".join(sorted(matrix.hosts)) or None,
        "systems": [
            *{entry.name: entry for one in clusters for entry in one.manifest.systems}.values()
        ],
    }
    return Run(
        directory,
        clusters[0].manifest.model_copy(update=own),
        calibration=clusters[0].calibration,
        given=pd.concat([one.samples for one in clusters], ignore_index=True),
        derived={_CLUSTERS: clusters},
    )


def clusters_of(bundle: Run) -> Sequence[Run]:
    """The clusters of replicates; of a single run that one."""
    clusters: Sequence[Run] = bundle.derived.get(_CLUSTERS, (bundle,))
    return clusters


def are_of_round_trips(old: Run, new: Run) -> bool:
    """Whether both are. Raises BundleError where one is and one is not, or one is of a drill."""
    if old.is_drill or new.is_drill:
        raise BundleError("Only studies are compared; `wanlat drill matrix` puts drills together.")
    if old.has_rtt_steps is not new.has_rtt_steps:
        raise BundleError(
            f"Of {old.directory} and {new.directory} one is of a study of round trips: they have "
            "no figure in common. Run the same study for both."
        )
    return old.has_rtt_steps


def series_of(bundle: Run) -> dict[str, Series]:
    """The systems of which `bundle` has measured samples, by their names, in the run's order."""
    pairs = bundle.measured[["system", "version"]].drop_duplicates().itertuples(index=False)
    series = series_order((Series(*map(str, pair)) for pair in pairs), bundle.systems)
    by_name = {one.system: one for one in series}
    if len(by_name) < len(series):
        raise BundleError(
            f"{bundle.directory} holds several versions of a system: which is to be compared "
            "cannot be told. Measure each in a run of its own."
        )
    return by_name


def pair_systems(old: Run, new: Run, renamed: Mapping[str, str]) -> list[Pair]:
    """The systems of both, by name, or where each bundle has one, that one.

    `renamed` names systems of OLD, and with which of NEW each is compared. Raises BundleError where
    it names what is not there, or where nothing is in both.
    """
    before, after = series_of(old), series_of(new)
    alike = {name: name for name in before if name in after and name not in renamed.values()}
    matched = alike | dict(renamed)
    if not matched and len(before) == len(after) == 1:
        matched = dict(zip(before, after, strict=True))
    if not matched or not {*matched} <= {*before} or not {*matched.values()} <= {*after}:
        raise BundleError(
            f"{old.directory} has samples of {', '.join(before)} and {new.directory} of "
            f"{', '.join(after)}. Say which of these are to be compared: --as OLD=NEW."
        )
    if len(set(matched.values())) < len(matched):
        raise BundleError("--as: two systems of OLD are compared with one of NEW.")
    pairs: list[Pair] = [
        (one, after[matched[name]] if name in matched else None) for name, one in before.items()
    ]
    alone = [one for name, one in after.items() if name not in matched.values()]
    return [*pairs, *((None, one) for one in alone)]


def what_differs(old: Run, new: Run) -> tuple[str, ...]:
    """Each condition in which the bundles are not alike, "object size: 1KiB against 4KiB".

    A condition that one of the manifests does not have is no difference.
    """
    failed = [
        f"the network: {side}'s calibration failed"
        for side, bundle in (("OLD", old), ("NEW", new))
        if bundle.calibration and not all(map(bundle.calibration.trusts, series_of(bundle)))
    ]
    before, after = (_stated(bundle, _MUST_BE_EQUAL) | _of_systems(bundle) for bundle in (old, new))
    sides = (("OLD", old), ("NEW", new))
    lacking = [f"{side}: {bundle.lacking}" for side, bundle in sides if bundle.lacking]
    lacking += [
        f"{side} stored no calibration: what RTT its network really had is not known"
        for side, bundle in sides
        # Of a single node no packet crossed a network.
        if bundle.calibration is None and len(bundle.manifest.site_of_node) != 1
    ]
    return (*_unlike(before, after), *failed, *lacking)


def what_to_know(old: Run, new: Run) -> Iterator[str]:
    """Sentences on what else differs: it changes no round trip, but may change other figures."""
    if others := _unlike(_stated(old, _MAY_DIFFER), _stated(new, _MAY_DIFFER)):
        yield (
            "What else differs may change intercepts, latencies, bytes and the shares of ways, but "
            f"no round trip: {'; '.join(others)}."
        )
    if programs := other_programs(old, new):
        yield f"Of one version, and not the same programs: {in_words(programs)}."
    if tools := unlike(*(bundle.manifest.instruments for bundle in (old, new))):
        yield f"wanlat's own programs, which measure, are not the same: {in_words(tools)}."


def other_programs(old: Run, new: Run) -> dict[str, list[str]]:
    """What differs in systems of the same name and version: a reader takes them for one."""
    before, after = old.manifest.systems, new.manifest.systems
    versions = {(entry.name, entry.version) for entry in before}
    return unlike(before, [entry for entry in after if (entry.name, entry.version) in versions])


def conditions_of(source: Run | Matrix) -> dict[str, Any]:
    """Every condition that a run or a matrix states, by name; None of what it does not."""
    return {
        **_stated(source, _MUST_BE_EQUAL),
        **_of_systems(source),
        **_stated(source, _MAY_DIFFER),
    }


def reference_rtt_ms(old: Run, new: Run, wanted_ms: float | None) -> float:
    """The RTT at which the latencies of two studies of round trips are compared.

    `wanted_ms`, or the greatest RTT up to USUAL_RTT_MS that was requested in both; else the least,
    or without any RTT in common the smaller of the two greatest ones. Raises BundleError where
    `wanted_ms` is beyond what either measured.
    """
    one, other = (
        {step.requested_rtt_ms for step in rtt_steps(bundle) if counts(step)}
        for bundle in (old, new)
    )
    reach_ms = min(max(one, default=0.0), max(other, default=0.0))
    if wanted_ms is None:
        usual = [rtt_ms for rtt_ms in one & other if rtt_ms <= USUAL_RTT_MS]
        return max(usual, default=min(one & other, default=reach_ms))
    if wanted_ms > reach_ms * _BEYOND:
        raise BundleError(
            f"at_rtt_ms {wanted_ms:g}: both measured up to {reach_ms:g} ms, and a line says "
            "nothing of where nobody measured."
        )
    return wanted_ms


def _unlike(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    differences = []
    for name, value in old.items():
        other = new.get(name)
        if None in (value, other) or value == other:
            continue
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            differences += [f"{name}.{inner}" for inner in _unlike_inside(value, other)]
        else:
            differences.append(f"{name}: {_shown(value)} against {_shown(other)}")
    return differences


def _unlike_inside(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What differs inside of a condition, with the keys that lead there."""
    for key in {**old, **new}:
        value, other = old.get(key), new.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            yield from (f"{key}.{inner}" for inner in _unlike_inside(value, other))
        elif value != other:
            yield f"{key}: {_shown(value)} against {_shown(other)}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _of_systems(bundle: Run | Matrix) -> dict[str, Any]:
    """What the manifest has of each system: its API, and its options."""
    stated = {}
    for entry in bundle.manifest.systems:
        options = {f"option {key}": value for key, value in entry.options.items()}
        for key, value in {"API": entry.api, **options}.items():
            stated[f"{key} of {entry.name}"] = value
    return stated


def _stated(bundle: Run | Matrix, paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What the manifest has under paths of keys; None where one is not there."""
    stated: dict[str, Any] = {}
    document = bundle.manifest.model_dump(exclude_unset=True)
    for name, path in paths.items():
        stated[name] = document
        for key in path:
            stated[name] = stated[name].get(key) if isinstance(stated[name], Mapping) else None
    return stated

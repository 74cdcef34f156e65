"""Which system of OLD is compared with which of NEW, and whether the two were measured alike."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.figures.rtt_steps import counts, rtt_steps
from wanlat.analysis.names import listing, series_order
from wanlat.bundle.errors import BundleError

Pair = tuple[Series | None, Series | None]
"""The same system in OLD and in NEW; None where only the other one measured it."""

USUAL_RTT_MS = 100.0
"""The RTT that figures of distant datacenters are usually given for."""

_MUST_BE_EQUAL = {
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
_ENDED = {"running": "was killed", "interrupted": "was interrupted", "failed": "failed"}
_BEYOND = 1.05
"""What a link measures is a little more than what was requested."""
_NAMED_AT_MOST = 4
_LONGEST_SHOWN = 48


class NotAlikeError(BundleError):
    """The bundles were not measured alike, so that a difference may not be the store's."""


def are_of_round_trips(old: Bundle, new: Bundle) -> bool:
    """Whether both are. Raises BundleError where one is and one is not, or one is of a drill."""
    for bundle in (old, new):
        if bundle.is_drill:
            raise BundleError(
                f"{bundle.directory} is of a drill, and only studies are compared. "
                "`wanlat drill matrix` puts drills side by side."
            )
    if old.has_rtt_steps is not new.has_rtt_steps:
        one, other = (old, new) if old.has_rtt_steps else (new, old)
        raise BundleError(
            f"{one.directory} is of a study of round trips and {other.directory} is not: they have "
            "no figure in common. Run the same study for both."
        )
    return old.has_rtt_steps


def series_of(bundle: Bundle) -> dict[str, Series]:
    """The systems of which `bundle` has measured samples, by their names, in the run's order."""
    measured = bundle.measured[["system", "version"]].drop_duplicates()
    seen = {Series(str(one.system), str(one.version)) for one in measured.itertuples()}
    found: dict[str, Series] = {}
    for one in series_order(seen, bundle.systems):
        if one.system in found:
            raise BundleError(
                f"{bundle.directory} holds two versions of {one.system}, "
                f"{found[one.system].version} and {one.version}: which is to be compared cannot be "
                "told. Measure each in a run of its own."
            )
        found[one.system] = one
    return found


def pair_systems(old: Bundle, new: Bundle, renamed: Mapping[str, str]) -> list[Pair]:
    """The systems of both, by name, or where each bundle has one, that one.

    `renamed` names systems of OLD, and with which of NEW each is compared. Raises BundleError where
    it names what is not there, or where nothing is in both.
    """
    before, after = series_of(old), series_of(new)
    for bundle, names, known in ((old, renamed.keys(), before), (new, renamed.values(), after)):
        for name in names:
            if name not in known:
                raise BundleError(
                    f"--as: {bundle.directory} has no samples of {name}; it has of "
                    f"{', '.join(known) or 'none'}."
                )
    if len(set(renamed.values())) < len(renamed):
        raise BundleError("--as: two systems of OLD are compared with one of NEW.")
    alike = {name: name for name in before if name in after and name not in renamed.values()}
    matched = alike | dict(renamed)
    if not matched and len(before) == len(after) == 1:
        matched = {next(iter(before)): next(iter(after))}
    if not matched:
        raise BundleError(
            f"No system is in both: {old.directory} has samples of {', '.join(before)} and "
            f"{new.directory} of {', '.join(after)}. Say which are to be compared: --as OLD=NEW."
        )
    pairs: list[Pair] = [
        (one, after[matched[name]] if name in matched else None) for name, one in before.items()
    ]
    left = [one for name, one in after.items() if name not in matched.values()]
    return [*pairs, *((None, one) for one in left)]


def what_differs(old: Bundle, new: Bundle, both: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Each condition in which the bundles are not alike, "object size: 1KiB against 4KiB".

    `both` are the pairs of names that are compared. A condition that one of the manifests does not
    say is no difference.
    """
    before, after = old.manifest, new.manifest
    found = [_topology(before.get("topology"), after.get("topology"))]
    found += [
        _unlike(name, _in(before, *keys), _in(after, *keys))
        for name, keys in _MUST_BE_EQUAL.items()
    ]
    for one, other in both:
        mine, theirs = _entry(before, one), _entry(after, other)
        found.append(_unlike(f"API of {other}", mine.get("api"), theirs.get("api")))
        if one == other:  # options of two systems are two languages
            found.append(_options(one, mine.get("options"), theirs.get("options")))
    return tuple(each for each in found if each is not None)


def what_to_know(old: Bundle, new: Bundle, both: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Sentences on what else differs: it changes no round trip, but may change other figures."""
    before, after = old.manifest, new.manifest
    for side, bundle in (("OLD", old), ("NEW", new)):
        if bundle.status != "complete":
            how = _ENDED.get(bundle.status, bundle.status)
            yield f"{side} {how}: compared is what it had measured by then."
    machine = {"processor": "cpu", "kernel": "kernel", "TCP settings": "tcp"}
    if others := [
        name for name, key in machine.items() if _unlike("", before.get(key), after.get(key))
    ]:
        yield (
            f"Another {' and another '.join(others)}: intercepts, latencies and bytes may differ "
            "by that alone. Round trips do not."
        )
    if text := _unlike("wanlat", before.get("wanlat"), after.get("wanlat")):
        yield f"Measured by different versions of {text.replace(':', ',', 1)}."
    rtts = [_in(manifest, "study", "round_trips", "rtts") for manifest in (before, after)]
    if text := _unlike("RTTs", *rtts):
        yield f"{text}. Bytes and packets of a request may depend on the RTT."
    if before.get("seed") != after.get("seed"):
        yield (
            "The seeds differ, and so do the keys that were drawn. Where a store places objects by "
            "key, other shares of its modes may be due to that; give both runs the same --seed."
        )
    same = []
    for one, other in both:
        first, second = (_entry(before, one).get("sha256"), _entry(after, other).get("sha256"))
        same += [one] if first is not None and first == second else []
    if same:
        yield f"The same program in both bundles (by its SHA-256): {', '.join(same)}."
    for side, bundle, position in (("OLD", old, 0), ("NEW", new, 1)):
        if bundle.calibration is None:
            yield f"{side} stored no calibration: what RTT its network really had is not known."
        elif not all(bundle.calibration.trusts(pair[position]) for pair in both):
            yield f"{side}: calibration failed, so the network was not what was requested."


def api_of(bundle: Bundle, system: str) -> str:
    """The API that was measured, as far as the manifest says so."""
    return str(_entry(bundle.manifest, system).get("api") or "an unknown API")


def reference_rtt_ms(
    old: Bundle, new: Bundle, both: Sequence[tuple[str, str]], wanted_ms: float | None
) -> float:
    """The RTT at which the latencies of two studies of round trips are compared.

    `wanted_ms`, or the greatest RTT up to USUAL_RTT_MS that was requested in both; else the least.
    Raises BundleError where `wanted_ms` is beyond what either measured: a line says nothing of
    where nobody measured. Without any RTT in common it is the smaller of the two greatest ones.
    """
    requested = [
        {
            step.requested_rtt_ms
            for step in rtt_steps(bundle)
            if counts(step) and step.system in {pair[side] for pair in both}
        }
        for side, bundle in enumerate((old, new))
    ]
    if wanted_ms is not None:
        for bundle, rtts_ms in zip((old, new), requested, strict=True):
            if wanted_ms > max(rtts_ms, default=0.0) * _BEYOND:
                reach = f"up to {max(rtts_ms):g} ms" if rtts_ms else "no RTT"
                raise BundleError(
                    f"--at {wanted_ms:g}ms: {bundle.directory} measured {reach}, and a line says "
                    "nothing of where nobody measured."
                )
        return wanted_ms
    common = requested[0] & requested[1]
    usual = [rtt_ms for rtt_ms in common if rtt_ms <= USUAL_RTT_MS]
    if common:
        return max(usual, default=min(common))
    return min((max(rtts_ms) for rtts_ms in requested if rtts_ms), default=USUAL_RTT_MS)


def _topology(old: object, new: object) -> str | None:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return _unlike("topology", old, new)
    if old.get("name") != new.get("name"):
        return _unlike("topology", old.get("name"), new.get("name"))
    # What it is called and described as may stay while a link changes.
    keys = sorted(({*old} & {*new}) - {"name", "description"})
    if changed := [key for key in keys if old[key] != new[key]]:
        return f"topology: both are named {old.get('name')}, and differ in {' and '.join(changed)}"
    return None


def _options(system: str, old: object, new: object) -> str | None:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return None
    unlike = [
        f"{key} {_shown(old.get(key))} against {_shown(new.get(key))}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    return f"options of {system}: {listing(unlike, _NAMED_AT_MOST)}" if unlike else None


def _unlike(name: str, old: object, new: object) -> str | None:
    if old is None or new is None or old == new:
        return None
    return f"{name}: {_shown(old)} against {_shown(new)}"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _entry(manifest: Mapping[str, Any], system: str) -> Mapping[str, Any]:
    """What the manifest says of a system."""
    entries = manifest.get("systems") or ()
    return next((entry for entry in entries if entry.get("name") == system), {})


def _in(entry: object, *keys: str) -> Any:
    """What lies under `keys`, one in the other; None where one of them is not there."""
    for key in keys:
        entry = entry.get(key) if isinstance(entry, Mapping) else None
    return entry

"""What must be equal for two bundles to differ by the store alone, and what had better be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.names import listing

_OF_THE_STUDY = {
    "object_size": "object size",
    "connection": "connection",
    "deadline": "deadline",
}
"""Those that change what a request does or how it may end; samples and warm-up do not."""

_NAMED_AT_MOST = 4
_LONGEST_SHOWN = 48


def what_differs(old: Bundle, new: Bundle, systems: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Each condition in which the bundles are not alike, "object size: 1KiB against 4KiB".

    `systems` are the pairs of names that are held against each other. A condition that one of the
    manifests does not tell is not held against it.
    """
    before, after = old.manifest, new.manifest
    found = [_topology(before.get("topology"), after.get("topology"))]
    for key, name in _OF_THE_STUDY.items():
        found.append(_unlike(name, _in(before, "study", key), _in(after, "study", key)))
    for role in ("client", "target"):
        found.append(_unlike(f"{role}'s node", _in(before, role, "node"), _in(after, role, "node")))
    for key in ("backend", "storage"):
        found.append(_unlike(key, before.get(key), after.get(key)))
    found.append(
        _unlike(
            "jitter",
            _in(before, "study", "round_trips", "jitter"),
            _in(after, "study", "round_trips", "jitter"),
        )
    )
    for one, other in systems:
        found += _of_system(one, other, _entry(before, one), _entry(after, other))
    return tuple(each for each in found if each is not None)


def what_to_know(old: Bundle, new: Bundle, systems: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Sentences on what else differs: it changes no round trip, but may change other figures."""
    before, after = old.manifest, new.manifest
    notes = []
    for side, bundle in (("OLD", old), ("NEW", new)):
        if bundle.status != "complete":
            how = {"running": "was killed", "interrupted": "was interrupted", "failed": "failed"}
            notes.append(
                f"{side} {how.get(bundle.status, bundle.status)}: compared is what it had "
                "measured by then."
            )
    machine = [
        name
        for name, one, other in (
            ("processor", before.get("cpu"), after.get("cpu")),
            ("kernel", before.get("kernel"), after.get("kernel")),
            ("TCP settings", before.get("tcp"), after.get("tcp")),
        )
        if one is not None and other is not None and one != other
    ]
    if machine:
        notes.append(
            f"Another {' and another '.join(machine)}: own times, latencies and bytes may differ "
            "by that alone. Round trips do not."
        )
    if (text := _unlike("wanlat", before.get("wanlat"), after.get("wanlat"))) is not None:
        notes.append(f"Measured by different versions of {text.replace(':', ',', 1)}.")
    rtts = [_in(manifest, "study", "round_trips", "rtts") for manifest in (before, after)]
    if (text := _unlike("RTTs", *rtts)) is not None:
        notes.append(f"{text}. Bytes and packets of a request may depend on the RTT.")
    if before.get("seed") != after.get("seed"):
        notes.append(
            "The seeds differ, and so do the keys that were drawn. Where a store places objects by "
            "key, other shares of its modes may be due to that; give both runs the same --seed."
        )
    hashes = [
        (one, _in(_entry(before, one), "sha256"), _in(_entry(after, other), "sha256"))
        for one, other in systems
    ]
    same = [name for name, first, second in hashes if first is not None and first == second]
    if same:
        notes.append(f"The same program in both bundles (by its SHA-256): {', '.join(same)}.")
    return tuple(notes)


def api_of(bundle: Bundle, system: str) -> str | None:
    """The API that was measured, where the manifest says so."""
    api = _in(_entry(bundle.manifest, system), "api")
    return api if isinstance(api, str) else None


def _topology(old: object, new: object) -> str | None:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return _unlike("topology", old, new)
    if old.get("name") != new.get("name"):
        return _unlike("topology", old.get("name"), new.get("name"))
    # What it is called and described as may stay while a link changes.
    changed = [
        key
        for key in sorted({*old, *new} - {"name", "description"})
        if key in old and key in new and old[key] != new[key]
    ]
    if not changed:
        return None
    return f"topology: both are named {old.get('name')}, and differ in {' and '.join(changed)}"


def _of_system(
    old_name: str, new_name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> list[str | None]:
    found = [_unlike(f"API of {new_name}", old.get("api"), new.get("api"))]
    if old_name != new_name:
        return found  # Options of two systems are two languages.
    before, after = old.get("options"), new.get("options")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return found
    unlike = [
        f"{key} {_shown(before.get(key))} against {_shown(after.get(key))}"
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]
    if unlike:
        found.append(f"options of {new_name}: {listing(unlike, _NAMED_AT_MOST)}")
    return found


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
    entries = manifest.get("systems")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("name") == system:
            return entry
    return {}


def _in(entry: object, *keys: str) -> Any:
    """What lies under `keys`, one in the other; None where one of them is not there."""
    for key in keys:
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(key)
    return entry

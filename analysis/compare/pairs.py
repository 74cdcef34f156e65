"""Which system of OLD is held against which of NEW."""

from __future__ import annotations

from collections.abc import Mapping

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.names import series_order
from wanlat.bundle.errors import BundleError


def series_of(bundle: Bundle) -> dict[str, Series]:
    """The systems of which `bundle` has measured samples, by their names, in the run's order."""
    measured = bundle.measured
    seen = {
        Series(str(system), str(version))
        for system, version in zip(measured["system"], measured["version"], strict=True)
    }
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


def pair_systems(
    old: Bundle, new: Bundle, renamed: Mapping[str, str]
) -> list[tuple[Series | None, Series | None]]:
    """The systems of both, those that only one of them has with None on the other side.

    `renamed` holds what was measured as its key in OLD against what was measured as its value in
    NEW. Without it, systems are the same by name, or where each bundle has one, that one. Raises
    BundleError where `renamed` names what is not there or nothing is in both.
    """
    before, after = series_of(old), series_of(new)
    for side, names, known in (
        (old, renamed.keys(), before),
        (new, renamed.values(), after),
    ):
        for name in names:
            if name not in known:
                raise BundleError(
                    f"--as: {side.directory} has no samples of {name}; it has of "
                    f"{', '.join(known) or 'none'}."
                )
    if len(set(renamed.values())) < len(renamed):
        raise BundleError("--as: two systems of OLD are held against one of NEW.")
    matched = dict(renamed)
    taken = set(matched.values())
    matched |= {
        name: name for name in before if name in after and name not in matched and name not in taken
    }
    if not matched and len(before) == len(after) == 1:
        matched = {next(iter(before)): next(iter(after))}
    if not matched:
        raise BundleError(
            f"No system is in both: {old.directory} has samples of {', '.join(before)} and "
            f"{new.directory} of {', '.join(after)}. Say which are to be held against each other: "
            "--as OLD=NEW."
        )
    pairs: list[tuple[Series | None, Series | None]] = [
        (one, after[matched[name]] if name in matched else None) for name, one in before.items()
    ]
    taken = set(matched.values())
    return [*pairs, *((None, one) for name, one in after.items() if name not in taken)]

"""Whether two manifests name the same programs: what is not the same, in words.

A program is its own file, all that was installed with it, what its definition states, and what else
takes part; two of one version may differ in any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from wanlat.bundle.documents import Program
from wanlat.topologies.wording import listing, printable, show

Entry = Mapping[str, Any]
"""A system, or another program, as it stands in a manifest."""

_SHOWN = 3


def differences(old: Entry, new: Entry) -> list[str]:
    """Return what of a program is not the same. What one of them does not state is left out."""
    return [*_of_program(old, new), *_of_files(old, new), *_of_companions(old, new)]


def unlike(old: Sequence[Entry | Program], new: Sequence[Entry | Program]) -> dict[str, list[str]]:
    """Return what differs by names of programs, of those in both. One may be in either several
    times, with other options, and has then to be like one of the other's.
    """
    differing = dict[str, list[str]]()
    before = [_stated(program) for program in old]
    for entry in map(_stated, new):
        known = [program for program in before if program["name"] == entry["name"]]
        candidates = [differences(program, entry) for program in known]
        if known and all(candidates):
            differing.setdefault(entry["name"], min(candidates, key=len))
    return differing


def in_words(differs: Mapping[str, Sequence[str]]) -> str:
    """Return what `unlike` found as one text."""
    return "; ".join(f"{name}: {listing(texts, at_most=_SHOWN)}" for name, texts in differs.items())


def _stated(program: Entry | Program) -> Entry:
    return program.model_dump(exclude_unset=True) if isinstance(program, Program) else program


def _of_program(old: Entry, new: Entry) -> Iterator[str]:
    if _differ(old, new, "sha256"):
        was, is_ = (f"{e.get('version')} (sha256 {e['sha256'][:12]})" for e in (old, new))
        made = [listing(program.get("toolchain") or ()) for program in (old, new)]
        tools = f", made by {made[0]} against {made[1]}" if made[0] != made[1] else ""
        yield f"its program, {was} against {is_}{tools}"
    elif _differ(old, new, "files_sha256"):
        yield "files that were installed with its program"
    before, after = old.get("packages"), new.get("packages")
    if before is not None and after is not None:
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                was, is_ = before.get(name, "none"), after.get(name, "none")
                yield f"package {name}, {was} against {is_}"


def _of_files(old: Entry, new: Entry) -> Iterator[str]:
    before, after = old.get("files"), new.get("files")
    if before is None or after is None:
        return
    for name in sorted({*before, *after}):
        if before.get(name) == after.get(name):
            continue
        if None in (before.get(name), after.get(name)):
            yield f"`{printable(name)}`, which only one of them has"
            continue
        texts = [(program.get("definition") or {}).get(name) for program in (old, new)]
        yield f"`{printable(name)}`{'' if None in texts else _first_line(*map(str, texts))}"


def _first_line(old: str, new: str) -> str:
    lines = zip_longest(old.splitlines(), new.splitlines(), fillvalue="")
    for number, (was, is_) in enumerate(lines, start=1):
        if was != is_:
            return f", line {number}: {show(was.strip())} against {show(is_.strip())}"
    return ""


def _of_companions(old: Entry, new: Entry) -> Iterator[str]:
    before, after = (
        {companion["name"]: companion for companion in program.get("beside") or ()}
        for program in (old, new)
    )
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            yield f"{show(name)}, which stands before one of them alone"
        else:
            yield from (
                f"{name}: {difference}" for difference in differences(before[name], after[name])
            )


def _differ(old: Entry, new: Entry, key: str) -> bool:
    return None not in (old.get(key), new.get(key)) and old[key] != new[key]

"""What a bundle that is resumed would use of this machine, besides the bundle.

Whoever made the bundle chose it: programs, arguments, files. `wanlat.experiments.resume`
refuses to resume it unless the user trusts the bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wanlat.bundle.documents import Manifest
from wanlat.experiments.config.study import Study
from wanlat.experiments.drill.model import Drill
from wanlat.systems import registry
from wanlat.systems.engine.definition import Option
from wanlat.topologies.load import shipped
from wanlat.topologies.wording import show

_LONGEST = 120
_PATHS = ("/", "./", "../", "~")


def reach(manifest: Manifest, parts: Sequence[Study | Drill]) -> list[str]:
    """Return what the studies or drills of a manifest name outside the bundle, in words."""
    named = dict.fromkeys(line for part in parts for line in _of(part, manifest.topologies))
    paths = (manifest.how or {}).get("claims", ())
    named |= dict.fromkeys(f"claims {show(str(path))}" for path in paths)
    study = manifest.study and manifest.study.model_dump(exclude_unset=True)
    written = [study, manifest.drills, *manifest.topologies.values()]
    named |= dict.fromkeys(
        show(text) for text in _paths(written) if text not in manifest.topologies
    )
    return [line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…" for line in named]


def _of(part: Study | Drill, topologies: Mapping[str, Any]) -> Iterator[str]:
    known = {*topologies, *shipped()}
    if part.topology not in known:
        yield f"topology {show(part.topology)}"
    if isinstance(part, Study) and part.kind.outside not in {None, *shipped()}:
        yield f"regions {show(str(part.kind.outside))}"
    for system in part.systems:
        options = registry.get(system).definition.options
        for name, value in part.options.get(system, {}).items():
            option = options.get(name)
            if option is None or _is_free(option):
                yield f"{system}.{name} {show(str(value))}"


def _is_free(option: Option) -> bool:
    """Whether it takes any file, or any text, which may be a command."""
    return option.type == "path" or (option.type == "text" and option.expected is None)


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith(_PATHS):
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _paths(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _paths(inner)

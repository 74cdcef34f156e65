"""What a cluster leaves in its nodes' directories, so that a later start goes on where it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show

MARK = "ready.json"
"""In each node's directory once its cluster was ready for the first time: what it is."""


@dataclass(frozen=True)
class Begun:
    """One cluster, by what must be the same for its data to be of use: see ``identity``.

    ``homes`` are its nodes' directories, by node.
    """

    homes: Mapping[str, Path]
    identity: Mapping[str, Any]

    def is_there(self) -> bool:
        """Return whether this very cluster was ready here before.

        Raises UserError where another one was, or where nodes have lost what they had.
        """
        found = {name: self._read(home) for name, home in self.homes.items()}
        marks = {name: mark for name, mark in found.items() if mark is not None}
        lost = [name for name in found if name not in marks and self._is_empty(self.homes[name])]
        if marks and lost:
            raise UserError(
                f"The directories of {listing(lost)} are empty, and those of {listing(marks)} are "
                f"not, {next(iter(self.homes.values()))} for one: a cluster cannot go on without "
                "them. Start it anew, or remove the other nodes' directories too."
            )
        if len(marks) < len(found):
            return False  # it died while they were written: nobody has had the cluster yet
        wanted = dict(_leaves(json.loads(json.dumps(dict(self.identity)))))
        for name, mark in marks.items():
            had = dict(_leaves(mark))
            differs = [key for key in {**wanted, **had} if had.get(key) != wanted.get(key)]
            if differs:
                was, now = show(had.get(differs[0])), show(wanted.get(differs[0]))
                raise UserError(
                    f"The data of node {name} in {self.homes[name]} are another cluster's: "
                    f"{differs[0]} was {was} and is {now} now. Start it as it was, or anew."
                )
        return True

    def empty(self) -> None:
        """Remove what a former start left."""
        for home in self.homes.values():
            if home.exists():
                shutil.rmtree(home)

    def mark(self) -> None:
        """Note that the cluster was ready."""
        text = json.dumps(dict(self.identity), indent=1) + "\n"
        for home in self.homes.values():
            home.mkdir(parents=True, exist_ok=True)
            temporary = home / f".{MARK}"
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(home / MARK)

    @staticmethod
    def _is_empty(home: Path) -> bool:
        return not home.exists() or not any(home.iterdir())

    @staticmethod
    def _read(home: Path) -> dict[str, Any] | None:
        try:
            mark: dict[str, Any] = json.loads((home / MARK).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return mark


def _leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a tree of mappings holds, each under its dotted path: ``options.parity``."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value

"""The commands `list`, `show` and `validate`, alike for topologies, studies and drills."""

# Not `from __future__ import annotations`: Typer reads an annotation that names a local.
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any

import typer

from wanlat import options as o
from wanlat.commands import completion
from wanlat.output import emit, inform, remark, show_list
from wanlat.topologies.findings import Finding


@dataclass(frozen=True)
class Kind:
    """A kind of YAML file that comes with wanlat, by name, or is a user's own, by path."""

    noun: str
    files: Callable[[], ModuleType]
    """Imports the module with its `shipped` and `find`."""
    loader: Callable[[], ModuleType]
    """Imports the module with its `load`, and with it the model."""
    row: Callable[[Any], dict[str, Any]]
    """Its columns in the list, besides name and description."""
    facts: Callable[[Any], Iterable[str]]
    """The lines that follow the YAML of one: what follows from it."""
    extent: Callable[[Any], str]
    """What makes up a valid one."""
    complete: completion.Complete
    check: Callable[[Any], Iterable[Finding]] | None = None
    """Finds, for `validate`, what reading one does not."""

    @property
    def plural(self) -> str:
        """Several of them."""
        return f"{self.noun}s".replace("ys", "ies")

    def load(self, name: str, **more: Any) -> Any:
        """Return one, by name or path, looked up before its model is imported."""
        self.files().find(name)
        return self.loader().load(name, **more)

    def show_list(self, *, as_json: bool) -> None:
        """Print a row for each shipped one."""
        rows = [
            {"name": file.name, **self.row(file), "description": file.description}
            for file in map(self.load, self.files().shipped())
        ]
        show_list(rows, as_json=as_json)

    def add_to(self, app: typer.Typer) -> None:
        """Add the three commands to a group."""

        def list_(as_json: o.Json = False) -> None:
            self.show_list(as_json=as_json)

        def show(
            name: Annotated[
                str,
                o.argument(
                    self.noun.upper(),
                    f"A shipped {self.noun}, or the path of a YAML file",
                    self.complete,
                ),
            ],
            as_json: o.Json = False,
            _quiet: o.Quiet = False,
        ) -> None:
            read = self.load(name)
            if as_json:
                emit(read.to_dict())
                return
            path = self.files().find(name)
            typer.echo(path.read_text(encoding="utf-8-sig").rstrip("\n"))
            for line in self.facts(read):
                remark(line)

        def validate(file: o.File) -> None:
            read = self.load(file, **({"also": self.check} if self.check else {}))
            inform(f"{file}: {read.name} is valid: {self.extent(read)}")

        article = f"a {self.noun}"
        app.command("list", help=f"List the shipped {self.plural}.")(list_)
        app.command("show", help=f"Print the YAML of {article}, and what follows from it.")(show)
        checks = f"Check {article}; every mistake is reported with its line."
        app.command("validate", help=checks)(validate)

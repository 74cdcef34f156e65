"""Which independent clients there are, what each speaks, and what it needs to be installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.wording import did_you_mean, listing

Speaks = Literal["s3", "bob"]


@dataclass(frozen=True)
class Program:
    """A client: how it is started. ``speaks`` is None where only its user knows."""

    name: str
    argv: tuple[str, ...]
    speaks: Speaks | None
    needs: tuple[str, ...] = ()
    """Python packages, by the names they are imported by."""

    def check(self) -> None:
        """Raise MachineError when something that it needs is not installed."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            raise MachineError(
                f"The client {self.name} needs the Python package {listing(missing)}, which is not "
                "installed. `pip install 'wanlat[clients]'` installs it; in a checkout, "
                "`make setup`."
            )
        if self.name == "grpcurl" and _grpcurl() is None:
            raise MachineError(
                "The client grpcurl is not installed. `wanlat systems install grpcurl` builds it; "
                "one on PATH or named by WANLAT_GRPCURL_BINARY will do too."
            )

    def environment(self) -> dict[str, str]:
        """Return the variables that it needs on a node, where HOME is another directory."""
        # Whoever runs wanlat may find the packages that way: a lab inherits no environment.
        paths = [str(SEARCH_PATH), *filter(None, [os.environ.get("PYTHONPATH")])]
        variables = {"PYTHONPATH": os.pathsep.join(paths)}
        if self.name == "grpcurl" and (found := _grpcurl()):
            variables["WANLAT_GRPCURL_BINARY"] = str(found)
        return variables

    @property
    def is_there(self) -> bool:
        """Tell whether everything that it needs is installed."""
        try:
            self.check()
        except MachineError:
            return False
        return True


def _grpcurl() -> Path | None:
    from wanlat.systems.grpcurl import find_grpcurl

    return find_grpcurl()


def _ours(module: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"wanlat.probes.independent.{module}")


PROGRAMS = (
    Program("boto3", _ours("boto3_client"), "s3", ("boto3",)),
    Program("minio-py", _ours("minio_client"), "s3", ("minio",)),
    Program("grpcurl", _ours("grpcurl_client"), "bob", ("hpack",)),
    Program("grpcio", _ours("grpcio_client"), "bob", ("grpc", "grpc_tools", "hpack")),
)


def named(name: str) -> Program:
    """Return a client by its name, or the program at a path. Raises UserError."""
    for program in PROGRAMS:
        if program.name == name:
            return program
    if "/" not in name:
        names = [program.name for program in PROGRAMS]
        raise UserError(
            f"There is no client {name!r}{did_you_mean(name, names)}; there are {listing(names)}, "
            "and any other is given as the path of a program (with a `/` in it)."
        )
    path = Path(name).resolve()
    if path.suffix == ".py" and path.is_file():
        return Program(path.stem, (sys.executable, str(path)), None)
    if not os.access(path, os.X_OK) or path.is_dir():
        raise UserError(f"--client {name}: there is no program at that path.")
    return Program(path.stem, (str(path),), None)


def speaking(api: str) -> list[Program]:
    """Return the clients of an API that are installed here."""
    return [program for program in PROGRAMS if program.speaks == api and program.is_there]

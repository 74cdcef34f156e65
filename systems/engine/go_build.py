"""Build a Go command into GOBIN: `python go_build.py PACKAGE VERSION`.

By `go install`. That refuses a command with a module that replaces others, as many do: such a one
is built in an empty module that requires it, with the same replacements.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main(package: str, version: str) -> int:
    """Build it in the working directory; return an exit code."""
    install = ["go", "install", "-v", "-trimpath"]
    code = subprocess.call([*install, f"{package}@{version}"])
    module = _module_of(package, version) if code else None
    if module is None:
        return code
    print("`go install` refuses it: building it in an empty module that requires it", flush=True)
    Path("go.mod").write_text("".join(f"{line}\n" for line in _go_mod(module)), "utf-8")
    return subprocess.call([*install, "-mod=mod", package])


def _module_of(package: str, version: str) -> dict[str, Any] | None:
    """Return what `go mod download` reports of the module that a package is in."""
    parts = package.split("/")
    for end in range(len(parts), 1, -1):
        module = _json_of("go", "mod", "download", "-json", f"{'/'.join(parts[:end])}@{version}")
        if module is not None and "GoMod" in module:
            return module
    return None


def _go_mod(module: dict[str, Any]) -> Iterator[str]:
    own = _json_of("go", "mod", "edit", "-json", module["GoMod"]) or {}
    yield "module build"
    if "Go" in own:
        yield f"go {own['Go']}"
    yield f"require {module['Path']} {module['Version']}"
    for replacement in own.get("Replace") or []:
        old, new = replacement["Old"], replacement["New"]
        if "Version" in new:  # else a directory beside it, which was released as a module, too
            before = f"{old['Path']} {old.get('Version', '')}"
            yield f"replace {before} => {new['Path']} {new['Version']}"


def _json_of(*command: str) -> dict[str, Any] | None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return None if done.returncode else dict(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

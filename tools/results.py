"""Measure what docs/results/results.yaml lists, and pack all bundles into one archive.

    python -m tools.results [NAME...]    all that is listed (`make results`), or these

Each bundle is measured below results/, by its name; what is complete is skipped, what was
interrupted is resumed. The archive, dist/wanlat-results-VERSION.tar.gz, has every bundle of the
list that is complete, without packet captures, and its SHA-256 lies beside it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shlex
import sys
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from wanlat.bundle.beneath import partial_name
from wanlat.bundle.read import ASIDE
from wanlat.emulator.reaper import run
from wanlat.topologies.version import VERSION
from wanlat.topologies.wording import listing

CHECKOUT = Path(__file__).resolve().parents[1]
LISTED = CHECKOUT / "docs" / "results" / "results.yaml"
NAME = f"wanlat-results-{VERSION}"
_LEFT_OUT = ("capture", "packets.parquet")
"""Packets, of which `chains.json` keeps what was found."""


def listed() -> dict[str, str]:
    """Return the command of each bundle, by its name."""
    commands: dict[str, str] = yaml.safe_load(LISTED.read_text("utf-8"))
    return commands


def arguments(command: str, bundle: Path) -> list[str]:
    """Return what wanlat is called with: to begin a bundle, or to resume the one that is there."""
    words = shlex.split(command)
    jobs = words[words.index("--jobs") + 1] if "--jobs" in words else "auto"
    if not bundle.exists():
        rest = words if "--jobs" in words else [*words, "--jobs", jobs]
        return [*rest, "--out", str(bundle)]
    kind = ["drill", "run"] if words[0] == "drill" else ["run"]
    return [*kind, "--jobs", jobs, "--resume", str(bundle)]


def is_complete(bundle: Path) -> bool:
    """Return whether a bundle is there, and came to its end."""
    try:
        manifest: dict[str, Any] = json.loads((bundle / "manifest.json").read_text("utf-8"))
    except FileNotFoundError:
        return False
    return manifest["status"] == "complete"


def measure(commands: dict[str, str], root: Path) -> int:
    """Measure one after the other what is not complete below `root`. Return an exit code."""
    left = [name for name in commands if not is_complete(root / name)]
    print(f"{len(left)} of {len(commands)} bundles are to be measured: {listing(left) or '-'}")
    for number, name in enumerate(left, start=1):
        words = arguments(commands[name], root / name)
        print(f"[{number}/{len(left)}] {name}: wanlat {shlex.join(words)}", flush=True)
        code = run([sys.executable, "-m", "wanlat", *words]).returncode
        if not is_complete(root / name):  # a drill that does not pass ends with 1, and is a result
            return code or 1
    return 0


def files_of(bundle: Path) -> list[Path]:
    """Return what the archive has of a bundle: not packets, nor what attempts left."""
    return sorted(
        file
        for file in bundle.rglob("*")
        if file.is_file()
        and not any(part in _LEFT_OUT or ASIDE in part for part in file.relative_to(bundle).parts)
    )


def pack(names: Iterable[str], root: Path, archive: Path) -> str:
    """Write the bundles `names` of `root` into `archive`, and return its SHA-256.

    The same files give the same bytes. The digest is in `ARCHIVE.sha256` too, as sha256sum has it.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_name(partial_name(f".{archive.name}"))
    try:
        with (
            partial.open("wb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w") as tar,
        ):
            for name in sorted(names):
                print(f"packing {name}", flush=True)
                for file in files_of(root / name):
                    entry = tarfile.TarInfo(f"{NAME}/{file.relative_to(root)}")
                    entry.size = file.stat().st_size
                    with file.open("rb") as content:
                        tar.addfile(entry, content)
        with partial.open("rb") as whole:
            digest = hashlib.file_digest(whole, "sha256").hexdigest()
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)
    archive.with_name(f"{archive.name}.sha256").write_text(f"{digest}  {archive.name}\n", "utf-8")
    return digest


def main(names: Sequence[str]) -> int:
    """Measure what is named, or all; pack what of the list is complete. Return an exit code."""
    commands, root = listed(), Path("results")  # relative: a manifest has no path of this machine
    if unknown := [name for name in names if name not in commands]:
        print(f"{LISTED} lists no {listing(unknown)}, but {listing(commands)}.", file=sys.stderr)
        return 2
    if code := measure({name: commands[name] for name in names or commands}, root):
        return code
    complete = [name for name in commands if is_complete(root / name)]
    archive = Path("dist", f"{NAME}.tar.gz")
    digest = pack(complete, root, archive)
    size_mib = archive.stat().st_size / 2**20
    print(f"{archive}: {len(complete)} of {len(commands)} bundles, {size_mib:.1f} MiB")
    print(f"SHA-256: {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

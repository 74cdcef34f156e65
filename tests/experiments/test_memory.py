"""Whatever the objects' size, our own processes stay small: all of them together, at their peaks.

A store's memory is the store's own; the reference store is one.
"""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.experiments.commands import command, samples_of, study

pytestmark = pytest.mark.minutes

AT_MOST_BYTES = 300 * 2**20
SIZE = 100 * 2**20
STORES = {"quorum"}


class Peaks:
    """The peaks (VmHWM) of a process and its descendants, as long as they live."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.together = 0
        """Of those that lived at once, the most."""
        self.by_name: dict[str, int] = defaultdict(int)

    def look(self) -> None:
        """Read /proc once."""
        parents = {
            int(directory.name): stat
            for directory in Path("/proc").glob("[0-9]*")
            if (stat := _parent(directory)) is not None
        }
        family, grew = {self._root}, True
        while grew:
            more = {pid for pid, parent in parents.items() if parent in family} - family
            family |= more
            grew = bool(more)
        peaks = [(name, peak) for pid in family for name, peak in _peak(pid)]
        for name, peak in peaks:
            self.by_name[name] = max(self.by_name[name], peak)
        own = sum(peak for name, peak in peaks if name not in STORES)
        self.together = max(self.together, own)


def _parent(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return None


def _peak(pid: int) -> list[tuple[str, int]]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []
    fields = dict(line.split(":", 1) for line in lines)
    if "VmHWM" not in fields:  # it has ended, and its parent does not know yet
        return []
    return [(fields["Name"].strip(), int(fields["VmHWM"].split()[0]) * 1024)]


@pytest.mark.parametrize(("api", "reads"), [("s3", "GetObject"), ("bob", "Get")])
def test_objects_of_a_hundred_mebibytes_take_at_most_300_mebibytes_of_our_own(
    tmp_path: Path, api: str, reads: str
) -> None:
    file = study(
        tmp_path,
        f"endpoints: [GetObject, PutObject, Get, Put]\noptions: {{quorum: {{api: {api}}}}}\n"
        "samples: 2\nwarmup: 0\nkey_mode: same\nobject_size: 100MiB\ndeadline: 200s\n",
        rtt="1ms",
        sites=2,
    )
    started = subprocess.Popen(
        command("run", file, "--out", str(tmp_path / "b")), stderr=subprocess.PIPE, text=True
    )
    peaks = Peaks(started.pid)
    deadline = time.monotonic() + 400
    while started.poll() is None and time.monotonic() < deadline:
        peaks.look()
        time.sleep(0.05)
    _, said = started.communicate(timeout=300)
    assert started.returncode == 0, said
    samples = samples_of(tmp_path / "b")
    assert set(samples.outcome) == {"ok"}
    assert set(samples.object_bytes) == {SIZE}
    assert samples[samples.endpoint == reads].verify_ns.min() > 0, "the column is in the bundle"
    assert {"wire", "oneshot"} <= set(peaks.by_name), "all of ours were seen"
    assert peaks.together <= AT_MOST_BYTES, dict(peaks.by_name)
    assert peaks.by_name["oneshot"] <= SIZE // 4, "no body is held"
    assert peaks.by_name["wire"] <= SIZE

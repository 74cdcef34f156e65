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
from wanlat.emulator import family

AT_MOST_BYTES = 300 * 2**20
SIZE = 100 * 2**20


def peaks_of(root: int) -> list[tuple[str, int]]:
    """The peak (VmHWM, bytes) of a process and of each of its descendants, by their names."""
    found = []
    for pid in family.members(Path("/proc"), root):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:  # it has ended
            continue
        fields = dict(line.split(":", 1) for line in lines)
        if "VmHWM" in fields:
            found.append((fields["Name"].strip(), int(fields["VmHWM"].split()[0]) * 1024))
    return found


@pytest.mark.minutes
@pytest.mark.parametrize(("api", "reads"), [("s3", "GetObject"), ("bob", "Get")])
def test_objects_of_a_hundred_mebibytes_take_at_most_300_mebibytes_of_our_own(
    tmp_path: Path, api: str, reads: str
) -> None:
    text = (
        f"endpoints: [GetObject, PutObject, Get, Put]\noptions: {{quorum: {{api: {api}}}}}\n"
        "samples: 2\nwarmup: 0\nkey_mode: same\nobject_size: 100MiB\ndeadline: 200s\n"
    )
    file = study(tmp_path, text, rtt="1ms", sites=2)
    argv = command("run", file, "--out", str(tmp_path / "b"))
    started = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    together, by_name = 0, defaultdict[str, int](int)
    while started.poll() is None:
        peaks = peaks_of(started.pid)
        together = max(together, sum(peak for name, peak in peaks if name != "quorum"))
        for name, peak in peaks:
            by_name[name] = max(by_name[name], peak)
        time.sleep(0.05)
    _, said = started.communicate()
    assert started.returncode == 0, said
    samples = samples_of(tmp_path / "b")
    assert (set(samples.outcome), set(samples.object_bytes)) == ({"ok"}, {SIZE})
    assert samples[samples.endpoint == reads].verify_ns.min() > 0, "the column is in the bundle"
    assert {"wire", "oneshot"} <= set(by_name), "all of ours were seen"
    assert together <= AT_MOST_BYTES, dict(by_name)
    assert by_name["oneshot"] <= SIZE // 4, "no body is held"
    assert by_name["wire"] <= SIZE

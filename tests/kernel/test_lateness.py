"""How late netem was: what its sentinel says, and what samples have of it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from tests.emulator.plans import mesh, ms
from tests.experiments.commands import measure, samples_of, study
from wanlat.bundle.lateness import BIN_NS
from wanlat.emulator.backends import LateBin
from wanlat.emulator.lab import Lab

MS = 10**6


def test_what_makes_the_sentinels_packets_late_is_found_in_its_time() -> None:
    """Its netem is made 40 ms longer behind its back, for half a second."""
    bins: list[LateBin] = []
    with Lab(mesh(2, wan=ms(20)), backend="netem") as lab, lab.lateness.watched(bins.append):

        def delay(milliseconds: int) -> int:
            put = f"tc qdisc change dev lo root netem delay {milliseconds}ms limit 1000"
            done = lab.run("n1", ["ip", "netns", "exec", "core", *put.split()])
            assert done.returncode == 0, done.stderr
            return time.monotonic_ns()

        began_ns = time.monotonic_ns()
        time.sleep(1)
        planted_ns = delay(60)
        time.sleep(0.5)
        ended_ns = delay(20)
        time.sleep(1)
        assert lab.lateness.during(planted_ns, ended_ns) is not None
        over_ns = time.monotonic_ns()
    late = np.array([each.start_ns for each in bins if each.max_ns >= 38 * MS])
    within = (late > planted_ns) & (late < ended_ns + 100 * MS)
    assert {each.direction for each in bins} == {None}

    def share(count: int, of_ns: int) -> float:
        return count * BIN_NS / of_ns

    lasted_ns = ended_ns + 100 * MS - planted_ns
    outside = share(int((~within).sum()), over_ns - began_ns - lasted_ns)
    assert share(int(within.sum()), lasted_ns) > 3 * outside


def test_samples_on_netem_know_their_networks_error() -> None:
    text = "endpoints: [GetObject]\nsamples: 5\nwarmup: 1\nresources: false\n"
    # Temporary files are below /run in this kernel, and a lab has one of its own.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        outcome = measure(study(Path(name), text), Path(name, "out"))
        assert outcome.status == "complete", outcome.reason
        samples = samples_of(Path(name, "out"))
    measured = samples[samples.phase == "measure"]
    assert measured.network_error_ns.notna().all() and measured.late.notna().all()

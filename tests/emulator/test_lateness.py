"""How late the network was: what is planted is found where and when it is, and nowhere else."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from wanlat.bundle.lateness import BIN_NS, Lateness
from wanlat.emulator.backends import LateBin, LatenessReport
from wanlat.emulator.calibration import Limits, Tolerance, calibrate
from wanlat.emulator.lab import Lab
from wanlat.emulator.lateness import LatenessLog, realtime_offset_ns
from wanlat.emulator.links import wan
from wanlat.emulator.prober import Prober

MS, S = 10**6, 10**9
PAIRS = [("n1", "n2"), ("n2", "n1")]


def test_a_request_has_the_greatest_lateness_of_what_was_held_up_while_it_was_on_its_way() -> None:
    known = Lateness([(1000 * BIN_NS, 10 * BIN_NS), (1001 * BIN_NS, 3 * BIN_NS), (9 * BIN_NS, 5)])
    spans = [(0, 7), (0, 10), (10, 989), (985, 990), (999, 2000), (1001, 1001), (1002, 1002)]
    begins, ends = (BIN_NS * np.array(each) for each in zip(*spans, strict=True))
    found = [round(each / BIN_NS, 1) for each in known.during(begins, ends).tolist()]
    assert found == [0, 0, 0, 10, 10, 3, 0]
    assert known.during(begins[:2], ends[:2]).tolist() == [0, 5]
    assert Lateness().during(begins, ends).tolist() == [0] * len(spans)


def test_bins_that_were_forgotten_are_an_error_and_a_backend_may_not_know() -> None:
    told = [LatenessReport([LateBin(S, None, 1, MS, MS)], 5), LatenessReport([], 9)]
    log = LatenessLog(lambda _: told.pop(0))
    assert log.during(0, S) == MS
    with pytest.raises(RuntimeError, match="forgot"):
        log.update()
    assert LatenessLog(lambda _: None).during(0, S) is None


def test_a_planted_lateness_is_found_in_exactly_what_flew_then() -> None:
    late_ns, lasts_ns, link = 5 * MS, 2 * S, wan("dc1", "dc2")
    bins: list[LateBin] = []
    with Lab(mesh(2, wan=ms(20)), backend="wire") as lab, Prober(lab, ["n1", "n2"]) as prober:
        with lab.lateness.watched(bins.append):
            time.sleep(0.2)
            began_ns = lab._call("plant_lateness", link, late_ns, lasts_ns)[0]
            echoes = prober.measure(PAIRS, 400, 0.01, 1.0)[PAIRS[0]]
        sent_ns = echoes.sent_ns - realtime_offset_ns()
        back_ns = echoes.arrived_ns - realtime_offset_ns()
        found_ns = lab.lateness.of_all(sent_ns, back_ns)
    planted = [each for each in bins if each.direction == link and each.max_ns >= late_ns]
    within = (sent_ns > began_ns) & (back_ns < began_ns + lasts_ns)
    assert within.sum() > 100
    assert (found_ns[within] >= late_ns).all()
    assert (back_ns - sent_ns)[within].min() >= 45 * MS - 0.1 * MS
    # Others are late where the machine was, of which the sentinel or the other links tell too.
    others = Lateness((each.start_ns, each.max_ns) for each in bins if each not in planted)
    edge_ns = late_ns + BIN_NS
    far = (back_ns < began_ns) | (sent_ns > began_ns + lasts_ns + 20 * MS + edge_ns)
    far &= others.during(sent_ns - edge_ns, back_ns + edge_ns) < late_ns
    assert (found_ns[far] < late_ns).all()
    # What is told while it happens is the same.
    told = Lateness((each.start_ns, each.max_ns) for each in planted)
    assert (told.during(sent_ns[within], back_ns[within]) >= late_ns).all()


def test_what_the_machine_holds_up_refuses_no_network_and_a_wrong_one_is_refused() -> None:
    """A second of lateness in the middle of calibration, on a right network and a wrong one."""
    tolerance, limits = Tolerance(p99_ms=20, edge_ms=20), Limits(longest_s=60)
    right, wrong = mesh(2, wan=ms(20)), mesh(2, wan=ms(24))
    with Lab(right, backend="wire") as lab:

        def plant(stage: str, _: float) -> None:
            if stage == "bare path":  # the next is that of delays
                lab._call("plant_lateness", wan("dc1", "dc2"), 50 * MS, S // 4)

        def measured(against: object) -> dict[str, object]:
            settings = {"tolerance": tolerance, "limits": limits, "on_progress": plant}
            document = calibrate(lab, pairs=PAIRS, against=against, **settings)  # type: ignore[arg-type]
            assert sum(pair["late"] for pair in document["pairs"]) > 20
            return document

        found = measured(right)
        assert found["verdict"] == "pass", found
        found = measured(wrong)
        assert found["verdict"] == "fail"
        assert not any(pair["only_late"] for pair in found["pairs"])


def test_where_the_machine_is_late_all_the_time_nothing_is_learned_and_that_is_said() -> None:
    tolerance, limits = Tolerance(p99_ms=20, edge_ms=20), Limits(longest_s=2)
    with Lab(mesh(2, wan=ms(20)), backend="wire") as lab:
        lab._call("plant_lateness", wan("dc1", "dc2"), 50 * MS, 60 * S)
        found = calibrate(lab, pairs=PAIRS, tolerance=tolerance, limits=limits)
    assert [pair["verdict"] for pair in found["pairs"]] == ["fail"] * 2
    assert all(pair["only_late"] for pair in found["pairs"]), found["pairs"]

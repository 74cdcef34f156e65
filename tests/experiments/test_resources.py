"""Counting what processes and directories use, and what the counting itself may cost."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from wanlat.experiments.config.reclaim import ReclaimSpec, ranges
from wanlat.experiments.resources.processes import (
    CpuClocks,
    Meter,
    ProcessStat,
    ProcessTable,
    families,
    parse_stat,
)
from wanlat.experiments.resources.sampler import LARGEST_SHARE, SamplingBudget
from wanlat.experiments.resources.space import SpaceScanner, StoredBytes, space_of
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample

SECOND = 10**9


def stat(pid: int, parent: int, cpu_ns: int, reaped_ns: int = 0, begun: int = 0) -> ProcessStat:
    return ProcessStat(pid, "S", parent, begun, 1, 4096, cpu_ns, reaped_ns)


@pytest.fixture
def table():
    opened = ProcessTable("/proc")
    yield opened
    opened.close()


def test_a_name_with_brackets_and_spaces_shifts_no_field() -> None:
    fields = " ".join(str(number) for number in range(4, 60))
    plain = parse_stat(f"7 (store) S {fields}".encode())
    odd = parse_stat(f"7 (a) S 9 (b) S {fields}".encode())
    assert (odd.parent, odd.threads, odd.begun) == (plain.parent, plain.threads, plain.begun)
    assert odd.pid == 7


def test_a_process_counts_as_the_kernel_counts_it(table: ProcessTable) -> None:
    before = time.process_time_ns()
    while time.process_time_ns() - before < 60_000_000:
        pass
    mine = table.stat(os.getpid())
    assert mine is not None
    assert mine.own_cpu_ns == pytest.approx(time.process_time_ns(), abs=40_000_000)
    status = Path("/proc/self/status").read_text()
    rss_kib = int(status.split("VmRSS:")[1].split()[0])
    assert mine.rss_bytes == pytest.approx(rss_kib * 1024, rel=0.05)
    assert (
        abs((table.open_files(os.getpid()) or 0) - len(list(Path("/proc/self/fd").iterdir()))) <= 2
    )


def test_cpu_time_is_read_from_a_clock_finer_than_ticks(table: ProcessTable) -> None:
    mine = table.stat(os.getpid())
    assert mine is not None
    clocks = CpuClocks(table)
    clocks.learn({mine.pid: mine})
    before = time.process_time_ns()
    read = clocks.own_cpu_ns(mine)
    assert before <= read <= time.process_time_ns()
    gone = stat(9_000_009, 1, 5 * SECOND)
    clocks.learn({gone.pid: gone})
    assert clocks.own_cpu_ns(gone) == 5 * SECOND


def test_a_family_is_all_that_descends_from_its_root() -> None:
    processes = {
        each.pid: each
        for each in (stat(10, 1, 0), stat(11, 10, 0), stat(12, 11, 0), stat(20, 1, 0))
    }
    found = families(processes, (10, 20, 99))
    assert [each.pid for each in found[10]] == [10, 11, 12]
    assert [each.pid for each in found[20]] == [20]
    assert found[99] == []


def test_cpu_time_goes_on_counting_over_a_restart_and_is_never_counted_twice(
    table: ProcessTable,
) -> None:
    meter = Meter()
    assert meter.take([stat(9_000_001, 1, 5 * SECOND)], table).cpu_ns == 5 * SECOND
    # Killed, and started again under another number.
    assert meter.take([], table).cpu_ns == 5 * SECOND
    assert meter.take([stat(9_000_002, 1, SECOND)], table).cpu_ns == 6 * SECOND
    # A child whose time its parent was handed by the kernel when it waited for it.
    both = [stat(9_000_002, 1, SECOND), stat(9_000_003, 9_000_002, 2 * SECOND)]
    assert meter.take(both, table).cpu_ns == 8 * SECOND
    after = [stat(9_000_002, 1, SECOND, reaped_ns=2 * SECOND)]
    assert meter.take(after, table).cpu_ns == 8 * SECOND


def test_samples_are_stretched_until_they_cost_less_than_a_hundredth_of_a_core() -> None:
    budget = SamplingBudget(interval_ns=SECOND)
    elapsed = sum(budget.wait_after(spent_ns=30_000_000, late_ns=0) for _ in range(50))
    assert budget.cpu_ns / elapsed <= 1.02 * LARGEST_SHARE < 0.01
    said = budget.stretched("24 nodes")
    assert said is not None
    assert "24 nodes" in said
    assert "3.8 s apart" in said

    cheap = SamplingBudget(interval_ns=SECOND)
    assert cheap.wait_after(spent_ns=1_000_000, late_ns=0) == SECOND
    assert cheap.stretched("24 nodes") is None


def test_one_dear_sample_after_cheap_ones_makes_no_gap() -> None:
    budget = SamplingBudget(interval_ns=SECOND)
    for _ in range(10):
        budget.wait_after(spent_ns=2_000_000, late_ns=0)
    assert budget.wait_after(spent_ns=30_000_000, late_ns=0) == SECOND
    # That used up what was saved.
    assert budget.wait_after(spent_ns=30_000_000, late_ns=0) > SECOND


def test_directories_get_less_time_the_dearer_the_sample_was() -> None:
    budget = SamplingBudget(interval_ns=SECOND)
    assert budget.space_ns(0) > budget.space_ns(7_000_000) > 0


def test_space_is_what_du_says(tmp_path: Path) -> None:
    root = tmp_path / "node"
    for number in range(150):
        (root / f"object-{number}" / "part").mkdir(parents=True)
        (root / f"object-{number}" / "part" / "1").write_bytes(b"x" * 100 * number)
    (root / "one").write_bytes(b"y" * 200_000)
    (root / "two").hardlink_to(root / "one")
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(10**9)
    (root / ".minio.sys" / "tmp" / ".trash").mkdir(parents=True)
    (root / ".minio.sys" / "tmp" / ".trash" / "gone").write_bytes(b"z" * 50_000)

    du = subprocess.run(
        ["du", "-s", "--block-size=1", str(root)], capture_output=True, text=True, check=True
    )
    before_ns = time.monotonic_ns()
    space = space_of(root)
    assert before_ns <= space.began_ns <= time.monotonic_ns()
    assert space.bytes == int(du.stdout.split()[0])
    assert 50_000 <= space.trash_bytes < 60_000
    found: dict[str, int] = {}
    scanner = SpaceScanner({"n1": root, "n2": tmp_path / "missing"})
    for _ in range(100):  # a little at a time, it comes to the same
        found |= {name: each.bytes for name, each in scanner.advance(1).items()}
    assert found["n1"] == space.bytes
    assert {name: each.bytes for name, each in scanner.all(SECOND).items()} == found


def test_half_of_the_objects_is_half_and_no_other_half_for_the_same_seed() -> None:
    spec = ReclaimSpec(objects=1001, remove=0.5)
    chosen = spec.chosen(7)
    assert len(chosen) == len(set(chosen)) == spec.removed == 500
    assert chosen == spec.chosen(7) != spec.chosen(8)
    assert 150 < sum(number < 500 for number in chosen) < 350
    assert ReclaimSpec(objects=10, which="oldest").chosen(7) == [0, 1, 2, 3, 4]
    assert ranges([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 6), (7, 9)]


def answered(outcome: str = "ok") -> Sample:
    blank = dict.fromkeys(Sample.__dataclass_fields__)
    return Sample(**(blank | {"outcome": outcome}))  # type: ignore[arg-type]


def test_stored_bytes_are_those_acknowledged_and_not_removed() -> None:
    stored = StoredBytes()
    for key, size in (("a", 100), ("b", 100), ("a", 300)):
        put = Request(0, "measure", "PutObject", "bucket", key, object_bytes=size)
        stored.take(put, answered())
    stored.take(Request(0, "measure", "RemoveObject", "bucket", "b"), answered())
    stored.take(Request(0, "measure", "GetObject", "bucket", "a"), answered("fail"))
    assert stored.facts() == {
        "stored_objects": 1,
        "stored_bytes": 300,
        "stored_is_known": True,
        "put_bytes": 500,
    }
    put = Request(0, "measure", "PutObject", "bucket", "c", object_bytes=1)
    stored.take(put, answered("unknown"))
    assert not stored.is_known

"""Counting what processes and directories use, and what the counting itself may cost."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.experiments.config.load import ReclaimSpec, ranges
from wanlat.experiments.resources.processes import (
    LabProcesses,
    Meter,
    ProcessStat,
    families,
    parse_stat,
)
from wanlat.experiments.resources.sampler import LARGEST_SHARE, SamplingBudget
from wanlat.experiments.resources.space import SpaceScanner, StoredBytes
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample

SECOND = 10**9


def stat(pid: int, parent: int, cpu_ns: int, reaped_ns: int = 0) -> ProcessStat:
    return ProcessStat(pid, parent, 0, 1, 4096, cpu_ns, reaped_ns)


def test_a_name_with_brackets_and_spaces_shifts_no_field() -> None:
    fields = " ".join(str(number) for number in range(4, 60))
    plain = parse_stat(f"7 (store) S {fields}".encode())
    assert parse_stat(f"7 (a) S 9 (b) S {fields}".encode()) == plain
    assert (plain.pid, plain.parent) == (7, 4)


def test_a_process_counts_as_the_kernel_counts_it_and_finer_than_ticks() -> None:
    processes = LabProcesses(os.getpid())  # as if it led a lab: its own PID namespace
    before = time.process_time_ns()
    mine = processes.all()[os.getpid()]
    assert before <= processes.cpu_ns(mine) <= time.process_time_ns()
    assert mine.own_cpu_ns == pytest.approx(time.process_time_ns(), abs=40_000_000)
    rss_kib = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
    assert mine.rss_bytes == pytest.approx(rss_kib * 1024, rel=0.05)
    files = len(list(Path("/proc/self/fd").iterdir()))
    assert abs((processes.open_files(os.getpid()) or 0) - files) <= 2
    assert processes.cpu_ns(stat(9_000_009, 1, 5 * SECOND)) == 5 * SECOND, "it has ended"


def test_counters_go_on_over_a_restart_and_count_nothing_twice() -> None:
    lab: Any = SimpleNamespace(
        cpu_ns=lambda stat: stat.own_cpu_ns,
        disk_bytes=lambda pid: None if pid == 3 else (pid, 10 * pid),
        open_files=lambda _: 4,
    )
    tree = {each: stat(each, parent, 0) for each, parent in ((10, 1), (11, 10), (12, 11), (20, 1))}
    found = families(tree, (10, 99))
    assert {root: [each.pid for each in its] for root, its in found.items()} == {
        **{10: [10, 11, 12], 99: []}
    }
    meter = Meter()
    course = [
        ([stat(1, 0, 5 * SECOND)], 5, 1),
        ([], 5, 1),  # killed, and started again under another number
        ([stat(2, 0, SECOND)], 6, 3),
        # A child whose time its parent was handed by the kernel when it waited for it.
        ([stat(2, 0, SECOND), stat(3, 2, 2 * SECOND)], 8, 3),
        ([stat(2, 0, SECOND)], 8, 3),  # for a moment it is nobody's
        ([stat(2, 0, SECOND, reaped_ns=2 * SECOND)], 8, 3),
    ]
    for processes, cpu_s, read in course:
        usage = meter.take(processes, lab)
        assert (usage.cpu_ns, usage.read_bytes, usage.written_bytes) == (
            cpu_s * SECOND,
            read,
            10 * read,
        )
        assert (usage.threads, usage.open_files) == (len(processes), 4 * len(processes))


def test_samples_are_stretched_until_they_cost_less_than_a_hundredth_of_a_core() -> None:
    budget = SamplingBudget(interval_ns=SECOND)
    elapsed = sum(budget.wait_after(spent_ns=30_000_000, late_ns=0) for _ in range(50))
    assert budget.cpu_ns / elapsed <= 1.02 * LARGEST_SHARE < 0.01
    assert "3.8 s apart" in (budget.stretched("24 nodes") or "")
    assert SamplingBudget(interval_ns=SECOND).wait_after(2_000_000, 0) == SECOND
    assert budget.space_ns(0) > budget.space_ns(7_000_000) > 0, "directories get what is left"


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
    du = subprocess.check_output(["du", "-s", "--block-size=1", str(root)], text=True)
    scanner = SpaceScanner({"n1": root, "n2": tmp_path / "missing"})
    before_ns = time.monotonic_ns()
    at_once = scanner.all(60 * SECOND)
    space = at_once["n1"]
    assert before_ns <= space.space_began_ns <= time.monotonic_ns()
    assert space.space_bytes == int(du.split()[0])
    assert 50_000 <= space.trash_bytes < 60_000
    found: dict[str, int] = {}
    for _ in range(100):  # a little at a time, it comes to the same
        found |= {name: each.space_bytes for name, each in scanner.advance(1).items()}
    assert found == {name: each.space_bytes for name, each in at_once.items()}


def test_half_of_the_objects_is_half_and_no_other_half_for_the_same_seed() -> None:
    spec = ReclaimSpec(objects=1001, remove=0.5)
    chosen = spec.chosen(7)
    assert len(chosen) == len(set(chosen)) == spec.removed == 500
    assert chosen == spec.chosen(7) != spec.chosen(8)
    assert 150 < sum(number < 500 for number in chosen) < 350
    assert ReclaimSpec(objects=10, which="oldest").chosen(7) == [0, 1, 2, 3, 4]
    assert ranges([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 6), (7, 9)]


def test_stored_bytes_are_those_acknowledged_and_not_removed() -> None:
    stored, blank = StoredBytes(), dict.fromkeys(Sample.__dataclass_fields__)

    def take(endpoint: str, key: str, size: int | None = None, outcome: str = "ok") -> None:
        request = Request(0, "measure", endpoint, "bucket", key, object_bytes=size)
        stored.take(request, Sample(**(blank | {"outcome": outcome})))  # type: ignore[arg-type]

    for key, size in (("a", 100), ("b", 100), ("a", 300)):
        take("PutObject", key, size)
    take("RemoveObject", "b")
    take("GetObject", "a", outcome="fail")
    numbers = {"stored_objects": 1, "stored_bytes": 300, "put_bytes": 500}
    assert stored.facts() == {**numbers, "stored_is_known": True}
    take("PutObject", "c", 1, outcome="unknown")
    assert not stored.is_known

"""Counting what processes and directories use, and what the counting itself may cost."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.command_line import ran
from wanlat.experiments.resources import (
    LabProcesses,
    Meter,
    ProcessStat,
    families,
    parse_stat,
    space_of,
)

SECOND = 10**9


def stat(pid: int, parent: int, cpu_ns: int, reaped_ns: int = 0) -> ProcessStat:
    return ProcessStat((pid, 0), parent, 1, 4096, cpu_ns, reaped_ns)


def test_a_name_with_brackets_and_spaces_shifts_no_field() -> None:
    fields = " ".join(str(number) for number in range(4, 60))
    plain = parse_stat(f"7 (store) S {fields}".encode())
    assert parse_stat(f"7 (a) S 9 (b) S {fields}".encode()) == plain
    assert (plain.pid, plain.parent) == (7, 4)


def test_a_process_counts_as_the_kernel_counts_it_and_finer_than_ticks() -> None:
    processes = LabProcesses(os.getpid())  # as if it led a lab: its own PID namespace
    before = time.process_time_ns()
    mine = processes.all()[os.getpid()]
    own_ns = processes.counters(mine)[0] - mine.reaped_cpu_ns
    assert before <= own_ns <= time.process_time_ns()
    assert mine.own_cpu_ns == pytest.approx(time.process_time_ns(), abs=40_000_000)
    rss_kib = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
    assert mine.rss_bytes == pytest.approx(rss_kib * 1024, rel=0.05)
    files = len(list(Path("/proc/self/fd").iterdir()))
    assert abs((processes.open_files(os.getpid()) or 0) - files) <= 2
    gone = stat(9_000_009, 1, 5 * SECOND)
    assert processes.counters(gone) == (5 * SECOND, 0, 0), "it has ended"


def test_counters_go_on_over_a_restart_and_count_nothing_twice() -> None:
    def counters(stat: ProcessStat) -> tuple[int, int, int]:
        read = 0 if stat.pid == 3 else stat.pid
        return stat.own_cpu_ns + stat.reaped_cpu_ns, read, 10 * read

    lab: Any = SimpleNamespace(counters=counters, counts_disk=True, open_files=lambda _: 4)
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


def test_space_is_what_du_says(tmp_path: Path) -> None:
    trash = tmp_path / ".minio.sys" / "tmp" / ".trash"
    trash.mkdir(parents=True)
    for place, size in ((tmp_path / "a", 100_000), (trash / "b", 50_000)):
        place.write_bytes(os.urandom(size))
    (tmp_path / "c").hardlink_to(tmp_path / "a")
    found = space_of(tmp_path)
    told = ran("du", "-s", "-B1", tmp_path, check=True)
    assert found.space_bytes == int(told.stdout.split()[0])
    assert 50_000 <= found.trash_bytes < 100_000
    assert found.files == 3
    whole, entries = found.space_bytes, 0

    def rest() -> None:  # what vanishes meanwhile is left out
        nonlocal entries
        entries += 1
        (trash / "b").unlink(missing_ok=True)

    assert space_of(tmp_path, rest).space_bytes < whole
    assert entries > 4

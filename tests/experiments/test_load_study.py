"""What a study may say of its load, and what is said of a load's client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.probes.null_store import null_store
from tests.probes.test_load_records import header, rows_of
from wanlat.experiments.config.load import LoadSpec
from wanlat.experiments.config.study import StudyError, load
from wanlat.experiments.matrix_points import points_of
from wanlat.experiments.prepare import prepare
from wanlat.experiments.workloads.load_result import account_of, add_rows, raw_path
from wanlat.probes.load import End, LoadJob, run_job
from wanlat.probes.process import Process, spawn_here
from wanlat.topologies.errors import UserError

STUDY = """\
name: test
topology: one-site
endpoints: [GetObject]
prefill: {objects: 10}
"""


def mistakes(directory: Path, text: str) -> str:
    file = directory / "study.yaml"
    file.write_text(text)
    with pytest.raises(StudyError) as caught:
        load(str(file))
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("load: {mix: {GetObject: 0.5, PutObject: 0.4}}", "5: load.mix: shares add up to 1"),
        ("load: {mix: {GetObjekt: 1.0}}", "5: load.mix.GetObjekt: .*did you mean .*GetObject"),
        ("load: {mix: {GetObject: 1.5, PutObject: -0.5}}", "5: .*from 0 to 1, not 1.5"),
        ("load: {duration: 0s}", "5: load.duration: .*nothing"),
        ("load: {probe_interval: 0s}", "5: load.probe_interval: .*nothing"),
        ("load: {rate: 0}", "5: load.rate"),
        ("load: {workers: 0}", "5: load.workers"),
        ("load: {object_size: 1KiB}", "5: .*it is the study's"),
        ("load: {}\nround_trips: {}", "a study is of one kind"),
        ("load: {}\nbudget: {bytes: 1GiB}", "a budget is of single requests"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, line: str, said: str) -> None:
    assert re.search(said, mistakes(tmp_path, f"{STUDY}{line}\n"))


def test_a_load_that_would_read_nothing_is_a_mistake(tmp_path: Path) -> None:
    none = STUDY.replace("prefill: {objects: 10}\n", "")
    assert "there is nothing to read" in mistakes(tmp_path, f"{none}load: {{}}\n")
    empty = STUDY.replace("10", "0")
    assert "prefill.objects" in mistakes(tmp_path, f"{empty}load: {{}}\n")
    other = STUDY.replace("10", "10, object_size: 2KiB")
    assert "objects of one size" in mistakes(tmp_path, f"{other}load: {{}}\n")


def test_a_load_that_only_writes_needs_no_prefill(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    none = STUDY.replace("prefill: {objects: 10}\n", "")
    file.write_text(f"{none}load: {{mix: {{PutObject: 0.9, RemoveObject: 0.1}}}}\n")
    assert load(str(file)).load is not None


def test_a_mix_has_the_names_of_the_api_that_is_asked() -> None:
    spec = LoadSpec(mix={"Get": 0.5, "PutObject": 0.25, "Put": 0.25})
    assert spec.mix_of("s3") == {"GetObject": 0.5, "PutObject": 0.5}
    assert spec.mix_of("bob") == {"Get": 0.5, "Put": 0.5}


SHOP = """\
syntax = "proto3";
package shop;
message Item { string name = 1; }
service Catalogue { rpc Count (Item) returns (Item) { } }
"""


@pytest.mark.parametrize(
    ("kind", "endpoint"),
    [
        ("load: {mix: {Put: 1.0}}", "Put"),
        ("load: {mix: {PutObject: 1.0}}", "PutObject"),
        ("reclaim: {}", "Put and Delete"),
    ],
)
def test_a_service_is_not_asked_for_endpoints_that_it_has_not(
    tmp_path: Path, kind: str, endpoint: str
) -> None:
    (tmp_path / "shop.proto").write_text(SHOP)
    (tmp_path / "study.yaml").write_text(
        "name: test\ntopology: one-site\nsystems: [service]\nendpoints: [shop.Catalogue/Count]\n"
        "options: {service: {command: [sleep, '60'], protos: [shop.proto]}}\n" + f"{kind}\n"
    )
    with pytest.raises(UserError) as caught:
        prepare(load(str(tmp_path / "study.yaml")), directory=tmp_path / "bundle")
    assert caught.value.exit_code == 2
    assert f"asks for {endpoint}, which S3 or Bob's API has. System service" in str(caught.value)
    assert not (tmp_path / "bundle").exists()


def test_the_shipped_study_is_the_published_test_and_garage() -> None:
    study = load("mixed-load")
    assert study.load is not None
    assert study.prefill is not None
    assert (study.load.workers, study.load.duration.s) == (16, 600)
    assert (study.prefill.objects, study.prefill.buckets) == (10_000, 2)
    assert study.object_size.bytes == 512_000
    deployed = [(p.system, p.study.nodes, p.study.options) for p in points_of(study)]
    assert deployed == [
        ("minio", 1, {"minio": {"drives": 1}}),
        ("minio", 1, {"minio": {"drives": 4}}),
        ("minio-nginx", 4, {"minio-nginx": {"drives": 4}}),
        ("garage", 4, {}),
    ]


JOB = LoadJob("mix", Path("r"), ["b"], 1, 1, 1, workers=4, duration_ms=10_000, ramp_ms=2_000)
S = 10**9
# Ten seconds of four workers that wait for their store, after a ramp of two.
END = End(
    **{"end": "complete", "reason": None, "began_ns": 0, "ended_ns": 10 * S, "done": 4000},
    **{"ok": 4000, "failed": 0, "bytes_read": 1, "bytes_written": 1, "left_out": 0},
    **{"unanswered": 0, "threads": 5, "cores": 2, "user_ns": S // 2, "system_ns": S // 2},
    **{"cpu_ns": S, "thread_cpu_ns": (S // 4,) * 4, "thread_waited_ns": (S // 10,) * 4},
    **{"in_flight_ns": 36 * S, "verify_ns": S // 100, "errors": {}, "examples": {}},
)


def test_shares_are_of_the_time_that_they_say() -> None:
    account, warnings = account_of(JOB, END)
    client = account["client"]
    assert client["cpu_share"] == 0.05  # 1 s of 2 x 10 s
    assert client["busiest_thread_share"] == client["computed_share"] == 0.025
    assert client["waited_share"] == 0.01
    # The workers began 0, 0.5, 1 and 1.5 s late: 37 s there were, 36 s of them in flight.
    assert client["between_share"] == round(1 - 36 / 37, 4)
    assert account["achieved_per_s"] == 400
    assert (account["bottleneck"], warnings) == (None, [])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cpu_ns": 17 * S}, "85 % of its 2 cores"),
        ({"thread_cpu_ns": (9 * S, S, S, S)}, "computing 90 % of the time"),
        ({"thread_waited_ns": (6 * S,) * 4}, "waiting for a core, 62 %"),
        ({"in_flight_ns": 20 * S}, "no request in flight in 46 %"),
    ],
)
def test_a_client_that_was_the_bottleneck_is_told_and_warned_of(
    changes: dict[str, Any], why: str
) -> None:
    account, warnings = account_of(JOB, replace(END, **changes))
    assert why in account["bottleneck"]
    assert len(warnings) == 1
    assert warnings[0].startswith("the client was the bottleneck")


def test_workers_that_were_idle_on_purpose_are_no_bottleneck() -> None:
    idle = replace(END, in_flight_ns=S)
    assert account_of(replace(JOB, rate=5.0), idle)[0]["bottleneck"] is None
    # Nor are those that paused because the store had refused them.
    assert account_of(JOB, replace(idle, failed=10))[0]["bottleneck"] is None


def test_a_shared_machine_and_a_rate_that_was_not_reached_are_warned_of() -> None:
    _, contention = account_of(JOB, replace(END, thread_waited_ns=(3 * S,) * 4))
    assert "store and client share" in contention[0]
    _, missed = account_of(replace(JOB, rate=1000.0), replace(END, left_out=6000))
    assert "6,000 of 10,000" in missed[0]


def test_a_load_without_last_words_claims_nothing() -> None:
    account, warnings = account_of(JOB, None)
    assert account["offered"] == {"workers": 4, "rate": None}
    assert account["achieved_per_s"] is account["client"] is account["bottleneck"] is None
    assert warnings == []


def test_a_client_that_gets_no_core_is_found_out(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    core = min(allowed)

    def starved(argv: list[str], *fds: int) -> Process:
        return spawn_here(["nice", "-n", "19", "taskset", "-c", str(core), *argv], *fds)

    job = LoadJob(
        **{"job": "mix", "records": tmp_path / "r", "buckets": ["b0"], "objects": 1, "seed": 1},
        **{"object_bytes": 1_000_000, "workers": 4, "duration_ms": 800, "mix": {"GetObject": 1.0}},
    )
    # Of its one core it gets what somebody less polite leaves it, a twentieth, and the store has
    # all others. So the store waits for its client, whatever else the machine does.
    greedy = ["taskset", "-c", str(core), sys.executable, "-S", "-c", "while True: pass"]
    with ExitStack() as stack:
        os.sched_setaffinity(0, allowed - {core} or allowed)
        try:
            store = stack.enter_context(null_store(1, object_bytes=1_000_000))
        finally:
            os.sched_setaffinity(0, allowed)
        other = stack.enter_context(subprocess.Popen(greedy))
        stack.callback(other.kill)
        account, warnings = account_of(job, run_job(starved, store.s3, job))
    assert account["client"]["cores"] == 1
    assert account["bottleneck"] is not None, account
    assert "the client was the bottleneck" in warnings[0]


def test_the_table_has_the_rows_of_each_system_once(tmp_path: Path) -> None:
    def record(system: str, count: int) -> None:
        raw_path(tmp_path, system).write_bytes(header() + rows_of(count).tobytes())
        add_rows(tmp_path, system, "1")

    def counted() -> dict[str, int]:
        systems = pq.read_table(tmp_path / "load.parquet")["system"].to_pylist()
        return {name: systems.count(name) for name in systems}

    record("minio", 5)
    record("minio-nginx", 7)
    assert counted() == {"minio": 5, "minio-nginx": 7}
    assert not list(tmp_path.glob("*.raw"))
    record("minio", 3)  # measured anew
    assert counted() == {"minio": 3, "minio-nginx": 7}
    assert not list(tmp_path.glob("*.raw"))


def test_where_there_is_no_room_the_records_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    raw = raw_path(tmp_path, "minio")
    raw.write_bytes(header() + rows_of(2).tobytes())
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    add_rows(tmp_path, "minio", "1")
    assert raw.exists()
    assert [path.name for path in tmp_path.iterdir()] == [raw.name]

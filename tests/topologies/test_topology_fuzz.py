"""Topology files, right, spoilt and hostile: a plan or a clear error, and nothing else."""

import os
from pathlib import Path

import pytest

from tests.topologies import fuzz
from wanlat.topologies.load import TopologyError

FEW, MANY = 1500, int(os.environ.get("WANLAT_FUZZ_FILES", "10000"))
# The few are the same every time, the many are others; what fails can be run again with the seed
# that is printed.
FEW_SEED = 1
SEED = int(os.environ.get("WANLAT_FUZZ_SEED", "0")) or None


@pytest.mark.parametrize(
    ("files", "usual_seed"),
    [
        pytest.param(FEW, FEW_SEED, id="few"),
        pytest.param(MANY, None, marks=pytest.mark.minutes, id="many"),
    ],
)
def test_any_file_gives_a_plan_or_a_clear_error_in_time(
    files: int, usual_seed: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = SEED or usual_seed or fuzz.new_seed()
    with capsys.disabled():
        print(
            f"\n{files} topology files from seed {seed}: python -m tests.topologies.fuzz", end=" "
        )
    outcomes, slowest_s, failures = fuzz.run(files, seed)
    assert not failures, "\n".join(f"--seed {seed} {failure}" for failure in failures[:10])
    assert outcomes.total() == files
    assert slowest_s < 2 * fuzz.SLOWEST_S
    # Every kind was there, and each outcome: a fuzzer whose files are all alike tests nothing.
    assert {kind.partition(":")[0] for kind in outcomes} == set(fuzz.KINDS)
    for kind in ("right: plan", "spoilt: plan", "spliced: plan", "mangled: plan", "hostile: plan"):
        assert outcomes[kind] > files / 2000, kind
    assert outcomes["spoilt: error"] > files / 10


def test_a_file_is_the_same_for_the_same_seed_and_no_other() -> None:
    assert [fuzz.file_of(3, i) for i in range(50)] == [fuzz.file_of(3, i) for i in range(50)]
    assert [fuzz.file_of(3, i) for i in range(50)] != [fuzz.file_of(4, i) for i in range(50)]


def _traceback(_: object) -> None:
    raise KeyError("sites")


def _unprintable(_: object) -> None:
    raise TopologyError("a \x1b[31mred\x1b[0m error")


def _endless(_: object) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("broken", "reason"),
    [(_traceback, "KeyError"), (_unprintable, "AssertionError"), (_endless, "takes longer than")],
)
def test_the_fuzzer_sees_a_loader_that_is_broken(
    broken: object, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "load", broken)
    monkeypatch.setattr(fuzz, "SLOWEST_S", 0.2)
    monkeypatch.setattr(fuzz, "limit_memory", lambda: None)  # it would stay with the test runner
    outcomes, _, failures = fuzz.run_chunk(1, 7, 1, str(tmp_path))
    (failure,) = failures
    assert reason in failure.reason
    assert failure.content == fuzz.file_of(1, 7)[1]
    assert "--first 7 --files 1" in str(failure)
    assert outcomes == {f"{failure.kind}: failure": 1}

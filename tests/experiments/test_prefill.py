"""What of an interrupted prefill is gone on with, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.experiments.prefill.kept import Kept, kept_bytes, move_kept
from wanlat.experiments.prefill.model import PrefillSpec
from wanlat.experiments.prefill.settle import Settled, settle
from wanlat.experiments.prefill.verify import sampled
from wanlat.experiments.study import Study

PREFILL = {"objects": 100}


def kept(bundle: Path, *, sha256: str = "a", seed: int = 1, **fields: Any) -> Kept | None:
    """Return what a system keeps in a bundle, taken over from whoever was there before."""
    given = {
        **{"name": "s", "topology": "t", "endpoints": ["GetObject"], "storage": "disk"},
        **{"prefill": PREFILL, **fields},
    }
    prepared: Any = SimpleNamespace(
        study=Study.model_validate(given),
        seed=seed,
        plan=SimpleNamespace(nodes=[SimpleNamespace(name="n1", address="10.1.0.1")]),
    )
    system = SimpleNamespace(name="store", effective=lambda *_: {"copies": 3})
    subject: Any = SimpleNamespace(
        system=system, binary=SimpleNamespace(sha256=sha256), options=None
    )
    return Kept.of(prepared, subject, bundle)


def begun(bundle: Path, **fields: Any) -> Kept:
    """Return the same, with some data in it."""
    made = kept(bundle, **fields)
    assert made is not None
    made.note("filling")
    (made.nodes / "n1").mkdir(parents=True)
    (made.nodes / "n1" / "data").write_bytes(bytes(100_000))
    made.next_records().write_bytes(b"1")
    return made


def test_data_are_kept_on_disk_and_only_where_there_is_a_prefill(tmp_path: Path) -> None:
    assert kept(tmp_path) is not None
    assert kept(tmp_path, storage="memory") is None
    assert kept(tmp_path, prefill=None) is None
    assert not list(tmp_path.iterdir())


def test_the_next_attempt_takes_over_what_is_there(tmp_path: Path) -> None:
    begun(tmp_path)
    again = kept(tmp_path)
    assert again is not None
    assert (again.is_fresh, again.is_of_use, again.why_anew) == (False, True, None)
    assert (again.nodes / "n1" / "data").exists()
    assert [path.name for path in again.records] == ["filled-1.raw"]
    assert again.next_records().name == "filled-2.raw"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sha256": "b"}, "the store's program has changed"),
        ({"seed": 2}, "the seed has changed"),
        ({"prefill": {"objects": 101}}, "the prefill has changed"),
        ({"object_size": "2KiB"}, "the objects' size has changed"),
    ],
)
def test_data_of_another_prefill_are_thrown_away(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    begun(tmp_path)
    again = kept(tmp_path, **changed)
    assert again is not None
    assert (again.is_fresh, again.why_anew) == (True, why)
    assert kept_bytes(tmp_path) == 0


def test_a_bucket_that_a_load_has_written_to_is_not_the_prefilled_one(tmp_path: Path) -> None:
    for fields, is_fresh in (({}, False), ({"load": {}}, True)):
        begun(tmp_path / str(len(fields)), **fields).note("measuring")
        again = kept(tmp_path / str(len(fields)), **fields)
        assert again is not None
        assert again.is_fresh == is_fresh
        again.remove()


def test_what_never_became_anything_is_removed_without_a_word(tmp_path: Path) -> None:
    made = begun(tmp_path)
    (made.directory / "kept.json").unlink()
    again = kept(tmp_path)
    assert again is not None
    assert (again.is_fresh, again.why_anew) == (True, None)
    assert not made.directory.exists()


def test_a_system_that_is_through_leaves_nothing(tmp_path: Path) -> None:
    made = begun(tmp_path)
    assert kept_bytes(tmp_path) >= 100_000
    made.remove()
    assert not list(tmp_path.iterdir())


def test_an_attempt_hands_its_data_to_the_next(tmp_path: Path) -> None:
    first, second = tmp_path / "point.attempt-1", tmp_path / "point"
    begun(first)
    second.mkdir()
    move_kept(first, second)
    again = kept(second)
    assert again is not None
    assert not again.is_fresh
    assert not list(first.iterdir())


@pytest.mark.parametrize("total", [1, 2, 3, 50, 100, 101, 100_000])
def test_the_first_and_the_last_object_are_read_back_and_others_between(total: int) -> None:
    spec = PrefillSpec.model_validate({"objects": total})
    read = sampled(spec, 1024, seed=1)
    assert len(read) == len(set(read)) == min(total, 100)
    assert {("wanlat", 0), ("wanlat", total - 1)} <= set(read)


def test_all_buckets_are_read_back_and_fewer_objects_where_they_are_large() -> None:
    spec = PrefillSpec.model_validate({"objects": 1000, "buckets": 3})
    assert {bucket for bucket, _ in sampled(spec, 1024, 1)} == {"wanlat", "wanlat-2", "wanlat-3"}
    assert len(sampled(spec, 100 << 20, 1)) == 2
    assert sampled(PrefillSpec.model_validate({"objects": 0}), 1024, 1) == []


def settled(use: Callable[[float], float], *, before: float = 0.0, limit_s: float = 60) -> Settled:
    """Wait for nodes that use so many cores at each instant (s), on a clock of our own."""
    now_s, used_s = 0.0, 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s, used_s
        used_s += seconds * use(now_s)
        now_s += seconds

    told: list[float] = []
    return settle(
        lambda: used_s,
        before,
        limit_s,
        lambda waited_s, _: told.append(waited_s),
        clock=lambda: now_s,
        sleep=sleep,
    )


def test_nodes_are_at_rest_once_they_were_idle_for_a_while() -> None:
    assert settled(lambda _: 0.02) == Settled(2.0, 0.0, 0.02, is_quiet=True)
    # Busy for 10 s, and idle over a whole window after that.
    assert settled(lambda t: 1.5 if t < 10 else 0.02).seconds == 12.0


def test_nodes_that_are_never_idle_are_at_rest_when_they_are_as_before() -> None:
    assert settled(lambda t: 1.9 if t < 5 else 1.2, before=1.0).seconds == 7.0


def test_nobody_waits_for_ever_and_what_goes_on_is_known() -> None:
    assert settled(lambda _: 0.5, before=0.1, limit_s=8) == Settled(8.0, 0.1, 0.5, is_quiet=False)

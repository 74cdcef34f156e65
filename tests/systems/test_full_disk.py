"""A node's disk that is full: it is said first, with the way out, whatever the store says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from tests.needs import lab_of
from wanlat.systems import registry
from wanlat.systems.engine.space import what_is_full
from wanlat.systems.errors import SystemFailed


@pytest.mark.parametrize(
    ("blocks", "free", "inodes", "free_inodes", "says"),
    [
        (1_000_000, 5_000, 10, 5, "is full: 19 MiB of 3906 MiB are left"),
        (1_000, 200, 10, 5, "is full: 0 MiB of 3 MiB"),  # of so small a one 1 % is next to nothing
        (1_000_000, 500_000, 10, 0, "is full: it has no inodes left"),
        (1_000_000, 500_000, 0, 0, None),  # of btrfs, which has no fixed number of them
        (1_000_000, 10_001, 10, 5, None),
        (0, 0, 0, 0, None),  # of /proc and the like
    ],
)
def test_full_is_less_than_a_hundredth_or_a_mebibyte_or_no_inode(
    monkeypatch: pytest.MonkeyPatch,
    blocks: int,
    free: int,
    inodes: int,
    free_inodes: int,
    says: str | None,
) -> None:
    found = SimpleNamespace(
        f_frsize=4096, f_blocks=blocks, f_bavail=free, f_files=inodes, f_favail=free_inodes
    )
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    said = what_is_full([Path("/data/n1")])
    if says is None:
        assert said is None
    else:
        assert said is not None
        assert re.search(rf"The disk of /data/n1 {says}", said)


def test_a_directory_that_is_gone_is_not_a_full_one(tmp_path: Path) -> None:
    assert what_is_full([tmp_path / "gone"]) is None


def test_the_node_whose_disk_is_full_is_named_and_its_death_says_so_too(tmp_path: Path) -> None:
    quorum = registry.get("quorum")
    with lab_of("one-site", volumes={"n2": 8 << 20}) as lab:
        cluster = quorum.start(lab, quorum.parse_options(), tmp_path, 60, print)
        cluster.check_space()
        assert cluster.full() is None
        filler = (lab.node("n2").host_directory / "filler").open("wb", buffering=0)
        with filler, pytest.raises(OSError, match="No space left"):
            while True:
                filler.write(bytes(1 << 20))
        assert "n2/quorum, which is the lab's own, is full" in (cluster.full() or "")
        with pytest.raises(SystemFailed, match=r"node n2: it has no room left\. .*Make room there"):
            cluster.check_space()
        told: SimpleQueue[str] = SimpleQueue()
        cluster.when_one_died(told.put)
        cluster.nodes["n3"].stop()  # on purpose: nothing to tell
        node = cluster.nodes["n2"]
        assert node.process is not None
        node.process.kill()
        message = told.get(timeout=300)
        assert told.empty()
        with pytest.raises(SystemFailed) as caught:
            cluster.check()
        assert str(caught.value) == message
        assert "node n2: its process was ended by SIGKILL. The disk of" in message
        assert "--storage memory or disk" in message
        assert "ready" in message, "the end of its log"
        assert f"The whole log: {tmp_path / 'quorum-n2.log'}" in message

"""Starting a cluster on data that are there already: what stays, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lab_bob import body_of, calls, key, put
from lab_s3 import client
from systems_doubles import StandInLab, Toy

from tests.needs import lab_of, needs
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.begun import MARK
from wanlat.topologies.errors import UserError

READY_S = 90.0


# -- what counts as the same cluster --------------------------------------------------------


def start(lab: StandInLab, logs: Path, *, fresh: bool, **options: str) -> Cluster:
    toy = Toy()
    given = toy.parse_options(options)
    return toy.start(lab, given, logs, 20, lambda _: None, fresh=fresh)  # type: ignore[arg-type]


def again(lab: StandInLab) -> StandInLab:
    """The same nodes in a later lab, with what the former one left in their directories."""
    lab.close()
    return lab


def test_a_cluster_goes_on_where_it_was_and_one_that_is_asked_to_be_fresh_does_not(
    lab: StandInLab, tmp_path: Path
) -> None:
    homes = [node.host_directory / "toy" for node in lab.nodes]
    assert not start(lab, tmp_path, fresh=False).goes_on, "there is nothing to go on with"
    (homes[1] / "object").write_text("acknowledged")
    assert start(again(lab), tmp_path, fresh=False).goes_on
    assert (homes[1] / "object").read_text() == "acknowledged"
    assert not start(again(lab), tmp_path, fresh=True).goes_on
    assert [sorted(path.name for path in home.iterdir()) for home in homes] == [[MARK]] * 3


def test_a_start_that_never_got_ready_leaves_nothing_to_go_on_with(
    lab: StandInLab, tmp_path: Path
) -> None:
    homes = [node.host_directory / "toy" for node in lab.nodes]
    start(lab, tmp_path, fresh=True)
    for home in homes:
        (home / "half-made").touch()
    (homes[2] / MARK).unlink()  # as if it had died after it was written on the first two
    assert not start(again(lab), tmp_path, fresh=False).goes_on
    assert not (homes[0] / "half-made").exists()


def test_a_cluster_that_lost_a_node_s_directory_is_not_quietly_begun_anew(
    lab: StandInLab, tmp_path: Path
) -> None:
    start(lab, tmp_path, fresh=True)
    lost = lab.node("n2").host_directory / "toy"
    (lost / MARK).unlink()
    with pytest.raises(UserError, match=r"directories of n2 are empty, and those of n1 and n3"):
        start(again(lab), tmp_path, fresh=False)
    assert (lab.node("n1").host_directory / "toy" / MARK).exists(), "and nothing is removed"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"options": {"parity": 2}}, r"options\.parity was nothing and is `2` now"),
        ({"version": "1.1"}, r"version was `1\.0` and is `1\.1` now"),
        ({"nodes": {"n1": "10.0.9.1"}}, r"nodes\.n1 was `127\.0\.1\.1` and is `10\.0\.9\.1`"),
    ],
)
def test_the_data_of_another_cluster_are_refused_with_what_differs(
    lab: StandInLab, tmp_path: Path, changed: dict[str, Any], says: str
) -> None:
    toy = Toy()
    start(lab, tmp_path, fresh=True)
    found = json.loads((lab.node("n1").host_directory / "toy" / MARK).read_text())
    begun = toy._begun(lab, toy.parse_options(), toy.find())  # type: ignore[arg-type]
    assert begun.identity == found and begun.is_there()
    identity = {
        key: {**value, **changed.get(key, {})} if isinstance(value, dict) else value
        for key, value in (found | {"version": changed.get("version", "1.0")}).items()
    }
    with pytest.raises(UserError, match=says):
        type(begun)(begun.homes, identity).is_there()


# -- real ones, killed with their lab -------------------------------------------------------

OPTIONS: dict[str, dict[str, object]] = {"quorum-bob": {"api": "bob"}, "minio": {"drives": 2}}
REAL = [pytest.param(name, marks=pytest.mark.stores) for name in ("garage", "minio", "bob")]


COUNT = 12


@pytest.mark.parametrize("which", ["quorum", "quorum-bob", *REAL])
def test_what_was_acknowledged_before_the_lab_ended_is_there_in_the_next_one(
    tmp_path: Path, which: str
) -> None:
    system = registry.get(which.partition("-")[0])
    needs(system.name)
    options = system.parse_options(OPTIONS.get(which, {}))
    for life in range(2):
        logs = tmp_path / f"logs-{life}"
        with lab_of("one-site", storage="disk", keep=tmp_path / "kept") as lab:
            cluster = system.start(lab, options, logs, READY_S, print, fresh=False)
            assert cluster.goes_on == (life == 1)
            if life == 0:
                make_buckets(cluster)
                write(cluster, range(COUNT))
                continue  # which ends its processes with SIGKILL, right after the last answer
            found = read(cluster, list(cluster.nodes), COUNT)
            assert found == [content(number) for number in range(COUNT)] * 3
            write(cluster, range(COUNT, COUNT + 3))


def content(number: int) -> bytes:
    return b"body %d " % number * 1000


def bucket(number: int) -> str:
    return f"bucket-{number % 2}"


def s3(cluster: Cluster, node: str) -> Any:
    return client(cluster.lab, node, cluster.s3(node))


def make_buckets(cluster: Cluster) -> None:
    """Two, each as a study makes it."""
    if cluster.api == "s3":
        for name in (bucket(0), bucket(1)):
            cluster.create_bucket(name)
            if cluster.system != "garage":  # there its administrator has made it
                s3(cluster, "n1").create_bucket(Bucket=name)


def write(cluster: Cluster, numbers: range) -> None:
    nodes = [list(cluster.nodes)[number % 3] for number in numbers]
    if cluster.api == "s3":
        for node, number in zip(nodes, numbers, strict=True):
            what = {"Bucket": bucket(number), "Key": f"k{number}", "Body": content(number)}
            s3(cluster, node).put_object(**what)
        return
    blobs = [put(number.to_bytes(8, "little"), content(number)) for number in numbers]
    puts = [(node, "Put", blob) for node, blob in zip(nodes, blobs, strict=True)]
    assert calls(cluster, "n1", puts) == [{}] * len(puts)


def read(cluster: Cluster, nodes: list[str], count: int) -> list[bytes]:
    wanted = [(node, number) for node in nodes for number in range(count)]
    if cluster.api == "s3":
        at = {node: s3(cluster, node) for node in nodes}
        got = [at[node].get_object(Bucket=bucket(n), Key=f"k{n}") for node, n in wanted]
        return [each["Body"].read() for each in got]
    gets = [(node, "Get", {"key": key(n.to_bytes(8, "little"))}) for node, n in wanted]
    return [body_of(answer) for answer in calls(cluster, "n1", gets)]

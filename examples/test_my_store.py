"""A store's fault tolerance as tests of your own repository: copy this file and change it.

    pip install wanlat-*.whl                       # `make wheel` in wanlat's checkout builds it
    pytest test_my_store.py                        # -n 4 with pytest-xdist

A test that fails leaves its bundle under results/tests; `wanlat report` shows it.
"""

import pytest


@pytest.mark.wanlat_topology("four-sites")
@pytest.mark.wanlat_system("quorum", "garage")  # once on each; one that is absent is skipped
def test_a_write_is_read_while_one_node_is_dead(wanlat_probe, wanlat_fault):
    key = wanlat_probe.put().key
    with wanlat_fault("kill", "n4"):
        answer = wanlat_probe.at("n3").get(key)
    assert answer.ok, answer


@pytest.mark.wanlat_topology("four-sites")
def test_no_side_of_an_even_partition_acknowledges_a_write(wanlat_probe, wanlat_fault):
    sides = [wanlat_probe.at("n1", deadline_s=2), wanlat_probe.at("n3", deadline_s=2)]
    assert all(side.put().ok for side in sides)
    with wanlat_fault("partition", ["dc1,dc2", "dc3,dc4"]):
        answers = [side.put() for side in sides]
    assert not any(answer.ok for answer in answers), answers


@pytest.mark.wanlat_topology("four-sites")
def test_a_read_waits_for_the_majority_and_not_for_the_slowest_node(wanlat_probe, wanlat_fault):
    key = wanlat_probe.put().key
    usual_ms = min(wanlat_probe.get(key).latency_ms for _ in range(5))
    with wanlat_fault("slow", "n4", rtt="500ms"):
        slower_ms = min(wanlat_probe.get(key).latency_ms for _ in range(5))
    assert slower_ms < usual_ms + 100


@pytest.mark.wanlat_system("quorum")  # add your own: "garage", "minio", "bob"
def test_a_whole_drill_loses_nothing(wanlat_drill):
    result = wanlat_drill("one-node-killed", scale=0.1)
    assert result.passed, result.failures
    assert result.availability("read", client="survivor") > 0.9

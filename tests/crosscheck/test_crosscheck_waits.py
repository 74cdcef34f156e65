"""From events to what a client waited for, and whether that explains its time."""

from __future__ import annotations

import random

import pytest

from tests.crosscheck.test_crosscheck_packets import GET, OK, PUT, call
from tests.crosscheck.wire import MS, RTT, Wire, http2_frame
from wanlat.experiments.crosscheck.compare import Seen, compare
from wanlat.experiments.crosscheck.waits import Extra, Wait, Waited, split, waits_of
from wanlat.experiments.crosscheck.wording import explain

SHORTEST = RTT // 2 * MS
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0)
BARE_PUT = b"PUT /b/k HTTP/1.1\r\nContent-Length: 4\r\n\r\n"
DONE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def waited(wire: Wire, start: float, end: float) -> list[tuple[str, float]]:
    found = waits_of(wire.events(), round(start * MS), round(end * MS), SHORTEST)
    return [(wait.kind, wait.ns / MS) for wait in found]


def kept(first: float = 0) -> Wire:
    """A connection that is there already."""
    wire = Wire()
    wire.connect(first - 300)
    return wire


def test_a_kept_connection_waits_for_the_answer_alone():
    wire = kept()
    wire.out(1, GET)
    wire.came(101, OK)
    assert waited(wire, 0, 102) == [("answer", 100)]


def test_a_new_connection_is_waited_for_first():
    wire = Wire()
    wire.connect(1)
    wire.out(101, GET)
    wire.came(201, OK)
    assert waited(wire, 0, 202) == [("connect", 100), ("answer", 100)]


def test_permission_is_waited_for_before_the_body():
    wire = kept()
    wire.out(1, PUT)
    wire.came(101, b"HTTP/1.1 100 Continue\r\n\r\n")
    wire.out(101, b"body")
    wire.came(201, DONE)
    assert waited(wire, 0, 202) == [("continue", 100), ("answer", 100)]


def test_permission_that_never_comes_is_waited_for_in_vain():
    wire = kept()
    wire.out(1, PUT)
    wire.came(101)
    wire.out(1001, b"body")
    wire.came(1101, DONE)
    assert waited(wire, 0, 1102) == [("no continue", 1000), ("answer", 100)]


def test_a_body_sent_at_once_waits_for_nothing():
    wire = kept()
    wire.out(1, BARE_PUT)
    wire.out(1.2, b"body")
    wire.came(101)
    wire.came(201, DONE)
    assert waited(wire, 0, 202) == [("answer", 199.8)]


def test_the_rest_of_a_request_may_wait_for_an_acknowledgement():
    wire = kept()
    wire.out(1, BARE_PUT)
    wire.came(101)
    wire.out(101.1, b"body")
    wire.came(201, DONE)
    assert waited(wire, 0, 202) == [("acknowledgement", 100.1), ("answer", 99.9)]


def test_settings_count_as_waited_for_where_the_request_was_held_back():
    hpack = pytest.importorskip("hpack")

    def wire(held_back: bool) -> Wire:
        made = Wire()
        made.connect(1)
        request = call(hpack.Encoder(), 1, "/bob_storage.BobApi/Put")
        made.out(101, PREFACE if held_back else PREFACE + request)
        made.came(201, http2_frame(4, 0, 0))
        if held_back:
            made.out(201, request)
            made.came(301, http2_frame(1, 0x4, 1, b"\x88"))
        else:
            made.came(202, http2_frame(1, 0x4, 1, b"\x88"))
        return made

    patient = [("connect", 100), ("settings", 100), ("answer", 100)]
    assert waited(wire(held_back=True), 0, 302) == patient
    assert waited(wire(held_back=False), 0, 203) == [("connect", 100), ("answer", 101)]


def test_an_answer_that_came_in_parts_is_waited_for_to_its_end():
    wire = kept()
    wire.out(1, GET)
    wire.came(101, OK[:-2])
    wire.came(201, OK[-2:])
    assert waited(wire, 0, 202) == [("answer", 200)]


def test_a_client_that_does_nothing_pauses():
    wire = kept()
    wire.out(71, GET)
    wire.came(171, OK)
    assert waited(wire, 0, 251) == [("pause", 71), ("answer", 100), ("pause", 80)]


def test_another_request_before_the_endpoints_own_is_extra():
    wire = kept()
    wire.out(1, b"GET /b?location HTTP/1.1\r\n\r\n")
    wire.came(101, OK)
    wire.out(101, GET)
    wire.came(201, OK)
    waits = waits_of(wire.events(), 0, 202 * MS, SHORTEST)
    found = split(waits, "GetObject", RTT * MS)
    assert found.answer == 100 * MS
    assert found.extras == found.network == {Extra("answer", "GetBucketLocation"): 100 * MS}


def test_a_request_sent_twice_is_extra_once():
    wire = kept()
    for now in (1, 101):
        wire.out(now, GET)
        wire.came(now + 100, OK)
    found = split(waits_of(wire.events(), 0, 202 * MS, SHORTEST), "GetObject", RTT * MS)
    assert (found.answer, found.extras) == (100 * MS, {Extra("answer", "GetObject"): 100 * MS})


def test_of_a_wait_for_the_server_one_round_trip_is_the_networks():
    waits = [Wait("connect", "", 100), Wait("continue", "", 500), Wait("pause", "", 300)]
    far = split([*waits, Wait("answer", "PUT /b/k", 400)], "PutObject", 100)
    assert far.network == {Extra("connect"): 100, Extra("continue"): 100, Extra("pause"): 300}
    assert far.store == 400 + 400
    near = split([*waits, Wait("answer", "PUT /b/k", 400)], "PutObject", 0)
    assert near.network == {Extra("connect"): 0, Extra("continue"): 0, Extra("pause"): 300}


# -- verdicts ------------------------------------------------------------------------------------

CONNECT = Extra("connect")


def waited_for(answer: float, extras: dict[Extra, float] | None = None, rtt: float = RTT) -> Waited:
    held = {extra: round(ms * MS) for extra, ms in (extras or {}).items()}
    network = {
        extra: ns if extra.kind == "pause" else min(ns, round(rtt * MS))
        for extra, ns in held.items()
    }
    return Waited(round(answer * MS), held, network)


def times(
    around: float,
    *,
    answer: float = 0,
    extras: dict[Extra, float] | None = None,
    seed: int = 0,
    rtt: float = RTT,
) -> list[Seen]:
    draw = random.Random(seed)
    waited = waited_for(answer, extras, rtt)
    return [Seen(around + draw.uniform(-0.5, 0.5), waited) for _ in range(20)]


def verdict_of(client: list[Seen], oneshot: list[Seen], near: float = 3, near_oneshot: float = 1):
    return compare(
        client, oneshot, times(near, seed=8), times(near_oneshot, seed=9), rtt_ms=RTT, seed=1
    )


def test_a_clients_own_overhead_is_no_disagreement():
    found = verdict_of(times(103, seed=1), times(101, seed=2))
    assert found.verdict == "agree"
    assert found.figures.overhead == pytest.approx(2, abs=0.5)


def test_a_round_trip_that_was_seen_is_explained_and_named():
    found = verdict_of(times(203, extras={CONNECT: 100}, seed=1), times(101, seed=2))
    assert found.verdict == "explained"
    (one,) = found.explanations
    assert explain("it", "GetObject", one, RTT) == "it opens a new connection: 1 round trip"


def test_a_round_trip_that_was_not_seen_is_not_explained():
    assert verdict_of(times(203, seed=1), times(101, seed=2)).verdict == "unexplained"


def test_a_pause_explains_nothing():
    paused = times(203, extras={Extra("pause"): 100}, seed=1)
    assert verdict_of(paused, times(101, seed=2)).verdict == "unexplained"


def test_what_was_seen_must_be_as_long_as_what_is_extra():
    found = verdict_of(times(303, extras={CONNECT: 100}, seed=1), times(101, seed=2))
    assert found.verdict == "unexplained"
    assert "100.0 ms" in (found.reason or "")


def test_what_oneshot_waits_for_as_well_explains_nothing():
    both = {CONNECT: 100.0}
    found = verdict_of(times(303, extras=both, seed=1), times(201, extras=both, seed=2))
    assert found.verdict == "unexplained"
    assert found.explanations == ()


def test_what_is_seen_rarely_is_told_and_explains_nothing():
    rarely = times(103, seed=1)
    rarely[0] = Seen(203, waited_for(0, {CONNECT: 100}))
    found = verdict_of(rarely, times(101, seed=2))
    assert found.verdict == "agree"
    assert [one.requests for one in found.rarely] == [1]


def test_what_the_store_does_while_it_is_waited_for_is_no_part_of_the_distance():
    """It works for 400 ms before its `100 Continue`, wherever the client stands."""
    permission = Extra("continue")
    far = times(1103, answer=600, extras={permission: 500}, seed=1)
    near = times(1003, answer=600, extras={permission: 400}, seed=3, rtt=0)
    found = compare(
        *(far, times(1001, answer=1000, seed=2), near, times(1001, answer=1000, seed=4)),
        rtt_ms=RTT,
        seed=1,
    )
    assert found.verdict == "explained"
    assert found.explained_ms == pytest.approx(100)
    said = explain("it", "PutObject", found.explanations[0], RTT)
    assert said.endswith("(5.0, the store being at work meanwhile): 1 round trip")


def unsteady(own: float, seed: int, *, permission: float = 0, rtt: float = RTT) -> list[Seen]:
    """Requests to a store that takes none to four round trips, as it pleases.

    With ``permission``, that long and as many more before it gives its permission.
    """
    draw = random.Random(seed)
    made = []
    for _ in range(20):
        answer, before = (draw.choice((0, 100, 200, 300)) + draw.uniform(0, 1) for _ in range(2))
        held = {Extra("continue"): permission + before} if permission else {}
        waited = waited_for(answer, held, rtt)
        made.append(Seen(answer + own + sum(held.values()), waited))
    return made


def test_an_unsteady_store_is_taken_out_of_the_comparison():
    near, near_oneshot = unsteady(2, 3, rtt=0), unsteady(0.1, 4, rtt=0)
    oneshot = unsteady(0.1, 2)
    same = compare(unsteady(2, 1), oneshot, near, near_oneshot, rtt_ms=RTT, seed=1)
    assert (same.verdict, same.compared) == ("agree", "times without the store's")
    slower = unsteady(2, 1, permission=100)
    near_slower = unsteady(2, 3, permission=0.1, rtt=0)
    more = compare(slower, oneshot, near_slower, near_oneshot, rtt_ms=RTT, seed=1)
    assert (more.verdict, more.compared) == ("explained", "times without the store's")
    assert more.explained_ms == pytest.approx(100)
    hidden = [Seen(one.without_store_ms, waited_for(0)) for one in slower]
    none = compare(hidden, oneshot, near, near_oneshot, rtt_ms=RTT, seed=1)
    assert none.verdict == "unexplained"


def test_times_that_tell_nothing_never_agree():
    draw = random.Random(1)
    wild = [Seen(draw.choice((50, 450)), waited_for(0)) for _ in range(20)]
    found = compare(wild, wild, wild, wild, rtt_ms=RTT, seed=1)
    assert found.verdict == "unexplained"
    assert "unsteady" in (found.reason or "")

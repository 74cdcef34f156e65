//! Round-trip times, against those of a cable without `wire` in the same run.

use serde_json::json;

use crate::frames::{Address, DIRECT_LEFT, DIRECT_RIGHT, LEFT, RIGHT, echo_request};
use crate::lab::Lab;
use crate::noise::{Noise, hold, in_one_round_of};
use crate::sandbox::inside;
use crate::station::{LEAD_NS, PATIENCE_NS, Station, quantile};

const MILLISECOND: u64 = 1_000_000;
const ECHOES: u32 = 200;

/// Round-trip times of echo requests, one every `apart_ns`.
fn round_trips(station: &mut Station, (from, to): (Address, Address), apart_ns: u64) -> Vec<i64> {
    let requests = (0..ECHOES).map(|number| echo_request(from, to, number));
    let sent_ns = station.send_all(requests, apart_ns);
    let replies = station.receive(ECHOES as usize, PATIENCE_NS);
    // The kernel, which answers, drops a reply when it is busy answering another (icmp_xmit_lock
    // in net/ipv4/icmp.c), on a bare cable too. What `wire` loses is counted.
    assert!(replies.len() as u32 >= ECHOES - ECHOES / 20, "replies");
    replies
        .iter()
        .map(|reply| (reply.at_ns - sent_ns[reply.number() as usize]) as i64)
        .collect()
}

/// Checks that the error stays below 0.1 ms at the median and 0.5 ms at the 99th percentile,
/// or below what the machine itself is late.
fn assert_accurate(rtt_ns: u64, apart_ns: u64) {
    let rtt_ms = rtt_ns as f64 / 1e6;
    let impairment = json!({"delay_ns": rtt_ns / 2});
    let mut lab = Lab::new(&impairment, &impairment);
    let (mut left, _right) = lab.stations();
    let mut direct = lab.direct_station();
    in_one_round_of(20, || {
        let cable = round_trips(&mut direct, (DIRECT_LEFT, DIRECT_RIGHT), MILLISECOND);
        let cable_ns = quantile(&cable, 0.5);
        let noise = Noise::start();
        let measured = round_trips(&mut left, (LEFT, RIGHT), apart_ns);
        let noise = noise.stop();
        let fastest_ns = quantile(&measured, 0.0) as u64;
        assert!(fastest_ns >= rtt_ns - 2 * LEAD_NS, "early: {fastest_ns} ns");
        let [least, p50, p99] =
            [0.0, 0.5, 0.99].map(|at| quantile(&measured, at) - rtt_ns as i64 - cable_ns);
        println!(
            "measured: RTT {rtt_ms} ms: error p50 {:.1} us, p99 {:.1} us, least {:.1} us; \
             a bare cable takes {:.1} us; a sleeper is late by p50 {:.1} us, p99 {:.1} us",
            p50 as f64 / 1e3,
            p99 as f64 / 1e3,
            least as f64 / 1e3,
            cable_ns as f64 / 1e3,
            noise.p50_ns as f64 / 1e3,
            noise.p99_ns as f64 / 1e3,
        );
        hold(p50 <= noise.tolerated_p50_ns(100_000), "the median is off")?;
        hold(
            p99 <= noise.tolerated_p99_ns(500_000),
            "the 99th percentile is off",
        )
    });
    let stats = lab.wire.stats("ab");
    println!(
        "measured: RTT {rtt_ms} ms: late p50 {:.1} us, p99 {:.1} us, most {:.1} us",
        stats.get("late_ns_p50") as f64 / 1e3,
        stats.get("late_ns_p99") as f64 / 1e3,
        stats.get("late_ns_max") as f64 / 1e3,
    );
    stats.assert_nothing_unaccounted();
    assert_eq!(stats.get("packets"), stats.get("received"));
    lab.wire.finish();
}

#[test]
fn a_round_trip_of_100_ms_takes_100_ms() {
    inside("accuracy::a_round_trip_of_100_ms_takes_100_ms", || {
        assert_accurate(100 * MILLISECOND, 7 * MILLISECOND);
    });
}

#[test]
fn a_round_trip_of_1_ms_takes_1_ms() {
    inside("accuracy::a_round_trip_of_1_ms_takes_1_ms", || {
        assert_accurate(MILLISECOND, 5 * MILLISECOND);
    });
}

#[test]
fn both_directions_have_a_delay_of_their_own() {
    inside(
        "accuracy::both_directions_have_a_delay_of_their_own",
        || {
            let (there_ns, back_ns) = (30 * MILLISECOND, 5 * MILLISECOND);
            let mut lab = Lab::new(
                &json!({"delay_ns": there_ns}),
                &json!({"delay_ns": back_ns}),
            );
            let (mut left, mut right) = lab.stations();
            in_one_round_of(10, || {
                let (mut there, mut both) = (Vec::new(), Vec::new());
                for number in 0..20 {
                    let sent_ns = left.send(&echo_request(LEFT, RIGHT, number));
                    let request = &right.receive(1, PATIENCE_NS)[0];
                    let reply = &left.receive(1, PATIENCE_NS)[0];
                    there.push((request.at_ns - sent_ns) as i64);
                    both.push((reply.at_ns - sent_ns) as i64);
                }
                for (measured, asked_ns) in [(there, there_ns), (both, there_ns + back_ns)] {
                    let error_ns = quantile(&measured, 0.5) - asked_ns as i64;
                    assert!(
                        error_ns >= -(LEAD_NS as i64),
                        "{asked_ns} ns: {error_ns} ns early"
                    );
                    hold(error_ns < 500_000, "the median is off")?;
                }
                Ok(())
            });
            lab.wire.finish();
        },
    );
}

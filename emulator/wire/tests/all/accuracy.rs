//! Round-trip times: never too short, and the quickest of many not too long.
//!
//! Others on the machine make single packets late, never early. What an error of `wire` itself
//! would make late, it makes late every time.

use serde_json::json;

use crate::frames::{LEFT, RIGHT, echo_request};
use crate::lab::Lab;
use crate::sandbox::inside;
use crate::station::{LEAD_NS, MILLISECOND, PATIENCE_NS, QUICKEST_LATE_NS, Station, quantile};

const ECHOES: u32 = 200;

/// Round-trip times of echo requests, one every `apart_ns`.
fn round_trips(station: &mut Station, apart_ns: u64) -> Vec<i64> {
    let requests = (0..ECHOES).map(|number| echo_request(LEFT, RIGHT, number));
    let sent_ns = station.send_all(requests, apart_ns);
    let replies = station.receive(ECHOES as usize, PATIENCE_NS);
    // The kernel, which answers, drops a reply when it is busy answering another (icmp_xmit_lock
    // in net/ipv4/icmp.c), on a bare cable too. What `wire` loses is counted.
    assert!(replies.len() as u32 >= ECHOES / 2, "replies");
    replies
        .iter()
        .map(|reply| (reply.at_ns - sent_ns[reply.number() as usize]) as i64)
        .collect()
}

fn assert_accurate(rtt_ns: u64, apart_ns: u64) {
    let impairment = json!({"delay_ns": rtt_ns / 2});
    let mut lab = Lab::new(&impairment, &impairment);
    let (mut left, _right) = lab.stations();
    let measured = round_trips(&mut left, apart_ns);
    let [least, p50, p99] = [0.0, 0.5, 0.99].map(|at| quantile(&measured, at) - rtt_ns as i64);
    println!(
        "measured: RTT {} ms: error least {:.1} us, p50 {:.1} us, p99 {:.1} us",
        rtt_ns as f64 / 1e6,
        least as f64 / 1e3,
        p50 as f64 / 1e3,
        p99 as f64 / 1e3,
    );
    assert!(least >= -2 * LEAD_NS as i64, "early: {least} ns");
    assert!(least <= 2 * QUICKEST_LATE_NS, "late: {least} ns");
    let stats = lab.wire.stats("ab");
    stats.assert_nothing_unaccounted();
    assert_eq!(stats.get("packets"), stats.get("received"));
    lab.wire.finish();
}

#[test]
fn a_round_trip_of_100_ms_takes_100_ms() {
    inside(|| {
        assert_accurate(100 * MILLISECOND, 7 * MILLISECOND);
    });
}

#[test]
fn a_round_trip_of_1_ms_takes_1_ms() {
    inside(|| {
        assert_accurate(MILLISECOND, 5 * MILLISECOND);
    });
}

#[test]
fn both_directions_have_a_delay_of_their_own() {
    inside(|| {
        let (there_ns, back_ns) = (30 * MILLISECOND, 5 * MILLISECOND);
        let mut lab = Lab::new(
            &json!({"delay_ns": there_ns}),
            &json!({"delay_ns": back_ns}),
        );
        let (mut left, mut right) = lab.stations();
        let (mut there, mut both) = (Vec::new(), Vec::new());
        for number in 0..20 {
            let sent_ns = left.send(&echo_request(LEFT, RIGHT, number));
            let request = &right.receive(1, PATIENCE_NS)[0];
            let reply = &left.receive(1, PATIENCE_NS)[0];
            there.push((request.at_ns - sent_ns) as i64);
            both.push((reply.at_ns - sent_ns) as i64);
        }
        for (measured, asked_ns) in [(there, there_ns), (both, there_ns + back_ns)] {
            let least = quantile(&measured, 0.0) - asked_ns as i64;
            assert!(least >= -2 * LEAD_NS as i64, "{asked_ns} ns: {least} ns");
            assert!(least <= 2 * QUICKEST_LATE_NS, "{asked_ns} ns: {least} ns");
        }
        lab.wire.finish();
    });
}

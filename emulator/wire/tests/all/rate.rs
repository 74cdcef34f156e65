//! Rate: the spacing of frames, and the queue in front of it.

use serde_json::json;

use crate::frames::udp;
use crate::lab::Lab;
use crate::sandbox::inside;
use crate::station::{LEAD_NS, PATIENCE_NS, numbers, sleep_until};

/// 10,000 bits.
const FRAME_BYTES: usize = 1_250;
const DELAY_NS: u64 = 2_000_000;

/// How long a burst takes to pass, and how many there are of each rate.
const BURST_NS: u64 = 100_000_000;
const BURSTS: usize = 6;

#[test]
fn frames_leave_at_the_rate() {
    inside(|| {
        for rate_mbit in [5, 100] {
            assert_rate(rate_mbit);
        }
    });
}

/// None leaves earlier than the rate allows; and the median gap between two is not longer, by a
/// tenth: a machine that stalls makes frames late, and those that have waited come closer together.
fn assert_rate(rate_mbit: u64) {
    let rate_bps = rate_mbit * 1_000_000;
    let frame_ns = 10_000_000_000_000 / rate_bps;
    let limited = json!({"delay_ns": DELAY_NS, "rate_bps": rate_bps, "queue_bytes": 10_000_000});
    let mut lab = Lab::new(&limited, &json!({}));
    let (left, mut right) = lab.stations();
    let count = (BURST_NS / frame_ns) as u32;
    // Offered at twice the rate or more: ten at a time, since a sleep is not exact.
    let at_once = 10;
    let mut gaps_ns = Vec::new();
    for _ in 0..BURSTS {
        let (arrivals, first_ns) = right.receive_while(count as usize, PATIENCE_NS, || {
            let first_ns = wire::sys::monotonic_ns();
            for start in (0..count).step_by(at_once as usize) {
                let end = count.min(start + at_once);
                left.send_all((start..end).map(|number| udp(1, number, FRAME_BYTES)), 0);
                sleep_until(wire::sys::monotonic_ns() + u64::from(at_once) * frame_ns / 2);
            }
            first_ns
        });
        assert!(numbers(&arrivals) == (0..count).collect::<Vec<u32>>());
        for (place, arrival) in (1..).zip(&arrivals) {
            let earliest_ns = first_ns + DELAY_NS + place * frame_ns;
            assert!(
                arrival.at_ns + LEAD_NS >= earliest_ns,
                "frame {place} is early"
            );
        }
        gaps_ns.extend(arrivals.windows(2).map(|two| two[1].at_ns - two[0].at_ns));
    }
    gaps_ns.sort_unstable();
    let median_ns = gaps_ns[gaps_ns.len() / 2];
    println!(
        "measured: rate {rate_mbit} Mbit/s: a frame each {median_ns} ns, {frame_ns} requested"
    );
    assert!(median_ns as f64 * 0.9 < frame_ns as f64, "{median_ns}");
    lab.wire.stats("ab").assert_nothing_unaccounted();
    lab.wire.finish();
}

#[test]
fn what_the_queue_cannot_hold_is_dropped_from_its_end_and_counted() {
    inside(|| {
        let limited = json!({"rate_bps": 10_000_000, "queue_bytes": 50_000});
        let mut lab = Lab::new(&limited, &json!({}));
        let (left, mut right) = lab.stations();
        // 1 ms each. They are all sent within less, unless the machine stalls.
        let count: u32 = 120;
        let start_ns = wire::sys::monotonic_ns();
        for number in 0..count {
            left.send(&udp(1, number, FRAME_BYTES));
        }
        let took_ms = (wire::sys::monotonic_ns() - start_ns) / 1_000_000;
        let stats = lab.wire.settle("ab", u64::from(count));
        let passed = stats.get("packets");
        println!("measured: {passed} of {count} frames fit in a queue of 40");
        assert!((40..=41 + took_ms).contains(&passed), "{passed} passed");
        assert_eq!(stats.get("queue_drops"), u64::from(count) - passed);
        let arrivals = right.receive(passed as usize, PATIENCE_NS);
        let first: Vec<u32> = (0..40).collect();
        assert!(numbers(&arrivals).starts_with(&first));
        stats.assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

//! Rate: the spacing of frames, and the queue in front of it.

use serde_json::json;

use crate::frames::udp;
use crate::lab::Lab;
use crate::noise::{hold, in_one_round_of};
use crate::sandbox::inside;
use crate::station::{LEAD_NS, PATIENCE_NS, numbers};

/// 10,000 bits.
const FRAME_BYTES: usize = 1_250;

#[test]
fn frames_leave_at_the_rate_within_2_percent() {
    inside("rate::frames_leave_at_the_rate_within_2_percent", || {
        for rate_mbit in [5, 100] {
            assert_rate(rate_mbit);
        }
    });
}

fn assert_rate(rate_mbit: u64) {
    let rate_bps = rate_mbit * 1_000_000;
    let frame_ns = 10_000_000_000_000 / rate_bps;
    let limited = json!({"delay_ns": 2_000_000, "rate_bps": rate_bps, "queue_bytes": 10_000_000});
    let mut lab = Lab::new(&limited, &json!({}));
    let (left, mut right) = lab.stations();
    let count = 40 * rate_mbit as u32; // 0.4 s
    in_one_round_of(10, || {
        let frames = (0..count).map(|number| udp(1, number, FRAME_BYTES));
        // Offered at twice the rate.
        let (arrivals, sent_ns) = right.receive_while(count as usize, PATIENCE_NS, || {
            left.send_all(frames, frame_ns / 2)
        });
        hold(arrivals.len() == count as usize, "frames are missing")?;
        let (first_ns, last_ns) = (arrivals[0].at_ns, arrivals[count as usize - 1].at_ns);
        // The first frame waits for its own transmission and the delay.
        assert!(first_ns - sent_ns[0] >= 2_000_000 + frame_ns - LEAD_NS);
        let bits = f64::from(count - 1) * FRAME_BYTES as f64 * 8.0;
        let measured_bps = bits / (last_ns - first_ns) as f64 * 1e9;
        println!(
            "measured: rate {rate_mbit} Mbit/s: {:.3}",
            measured_bps / 1e6
        );
        hold(
            (measured_bps / rate_bps as f64 - 1.0).abs() < 0.02,
            "the rate is off",
        )
    });
    lab.wire.stats("ab").assert_nothing_unaccounted();
    lab.wire.finish();
}

#[test]
fn what_the_queue_cannot_hold_is_dropped_from_its_end_and_counted() {
    inside(
        "rate::what_the_queue_cannot_hold_is_dropped_from_its_end_and_counted",
        || {
            let limited = json!({"rate_bps": 10_000_000, "queue_bytes": 50_000});
            let mut lab = Lab::new(&limited, &json!({}));
            let (left, mut right) = lab.stations();
            // 1 ms each. They are all sent within less.
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
        },
    );
}

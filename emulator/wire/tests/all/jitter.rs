//! Jitter: its range, its distribution, and what it does to order.

use serde_json::{Value, json};

use crate::frames::udp;
use crate::lab::Lab;
use crate::sandbox::inside;
use crate::station::{LEAD_NS, PATIENCE_NS, numbers, quantile};

const LEAST_NS: i64 = 40_000_000;
const MOST_NS: i64 = 60_000_000;
const FRAMES: u32 = 2_000;

fn jittered(reorder: bool) -> Value {
    json!({"delay_ns": 50_000_000, "jitter_ns": 10_000_000, "reorder": reorder})
}

/// Sends frames half a millisecond apart, number `n` in the flow `flow_of(n)`, and receives all of
/// them, none early. Returns their numbers, as they arrived, and their delays, in rising order.
fn send_and_receive(lab: &Lab, flow_of: impl Fn(u32) -> u32) -> (Vec<u32>, Vec<i64>) {
    let (left, mut right) = lab.stations();
    let frames = (0..FRAMES).map(|number| udp(flow_of(number) as u16, number, 100));
    let (arrivals, sent_ns) = right.receive_while(FRAMES as usize, PATIENCE_NS, || {
        left.send_all(frames, 500_000)
    });
    assert_eq!(arrivals.len(), FRAMES as usize, "frames arrived");
    let mut delays_ns: Vec<i64> = arrivals
        .iter()
        .map(|arrival| (arrival.at_ns - sent_ns[arrival.number() as usize]) as i64)
        .collect();
    delays_ns.sort_unstable();
    assert!(
        delays_ns[0] >= LEAST_NS - LEAD_NS as i64,
        "{} ns",
        delays_ns[0]
    );
    (numbers(&arrivals), delays_ns)
}

/// By how much at most the share of the samples below a value is above what it is for the uniform
/// distribution, and below it (the two Kolmogorov-Smirnov distances). The samples rise.
fn distances_from_uniform(delays_ns: &[i64]) -> (f64, f64) {
    let n = delays_ns.len() as f64;
    let width_ns = (MOST_NS - LEAST_NS) as f64;
    let (mut above, mut below) = (0.0_f64, 0.0_f64);
    for (rank, &delay_ns) in delays_ns.iter().enumerate() {
        let expected = ((delay_ns - LEAST_NS) as f64 / width_ns).clamp(0.0, 1.0);
        above = above.max((rank as f64 + 1.0) / n - expected);
        below = below.max(expected - rank as f64 / n);
    }
    (above, below)
}

#[test]
fn delays_fill_the_range_evenly() {
    inside(|| {
        let mut lab = Lab::new(&jittered(false), &json!({}));
        // Every frame is a flow of its own, so that none waits for another.
        let (_, delays_ns) = send_and_receive(&lab, |number| number + 1_000);
        let (above, below) = distances_from_uniform(&delays_ns);
        println!(
            "measured: jitter 40-60 ms: least {:.3} ms, p50 {:.3} ms, p99 {:.3} ms, \
             most {:.3} ms, distances from uniform {above:.4} and {below:.4}",
            delays_ns[0] as f64 / 1e6,
            quantile(&delays_ns, 0.5) as f64 / 1e6,
            quantile(&delays_ns, 0.99) as f64 / 1e6,
            delays_ns[delays_ns.len() - 1] as f64 / 1e6,
        );
        // Lateness makes no delay shorter: one distance has all its power, whatever the machine
        // does. The 99.9 % point is 1.95 / sqrt(n).
        let chance = 1.95 / f64::from(FRAMES).sqrt();
        assert!(above <= chance, "too many short delays: {above}");
        // The other allows for a quarter of the frames to be late by any time, or all by 5 ms.
        assert!(below <= chance + 0.25, "too many long delays: {below}");
        lab.wire.stats("ab").assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

#[test]
fn frames_of_a_flow_overtake_each_other_when_asked_to() {
    inside(|| {
        let lab = Lab::new(&jittered(true), &json!({}));
        let (numbers, _) = send_and_receive(&lab, |_| 1);
        let overtaken = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
        println!("measured: {overtaken} of {FRAMES} frames overtaken");
        assert!(overtaken > FRAMES as usize / 10);
    });
}

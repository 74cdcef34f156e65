//! Jitter: its range, its distribution, and what it does to order.

use serde_json::{Value, json};

use crate::frames::udp;
use crate::lab::Lab;
use crate::noise::{Noise, hold, in_one_round_of};
use crate::sandbox::inside;
use crate::station::{LEAD_NS, PATIENCE_NS, numbers, quantile};

const LEAST_NS: i64 = 40_000_000;
const MOST_NS: i64 = 60_000_000;
const FRAMES: u32 = 2_000;

fn jittered(reorder: bool) -> Value {
    json!({"delay_ns": 50_000_000, "jitter_ns": 10_000_000, "reorder": reorder})
}

/// What became of frames that were sent half a millisecond apart.
struct Received {
    /// Their numbers, as they arrived.
    numbers: Vec<u32>,
    /// The delay of each, in rising order.
    delays_ns: Vec<i64>,
    /// What lateness has to be tolerated.
    late_ns: i64,
}

/// Sends frames, number `n` in the flow `flow_of(n)`, and receives all of them.
fn send_and_receive(lab: &Lab, flow_of: impl Fn(u32) -> u32) -> Received {
    let (left, mut right) = lab.stations();
    let noise = Noise::start();
    let frames = (0..FRAMES).map(|number| udp(flow_of(number) as u16, number, 100));
    let (arrivals, sent_ns) = right.receive_while(FRAMES as usize, PATIENCE_NS, || {
        left.send_all(frames, 500_000)
    });
    let late_ns = noise.stop().tolerated_p99_ns(500_000);
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
    Received {
        numbers: numbers(&arrivals),
        delays_ns,
        late_ns,
    }
}

/// Kolmogorov-Smirnov distance of rising samples from the uniform distribution.
fn distance_from_uniform(delays_ns: &[i64]) -> f64 {
    let n = delays_ns.len() as f64;
    let width_ns = (MOST_NS - LEAST_NS) as f64;
    delays_ns
        .iter()
        .enumerate()
        .map(|(rank, &delay_ns)| {
            let expected = ((delay_ns - LEAST_NS) as f64 / width_ns).clamp(0.0, 1.0);
            let (below, above) = (rank as f64 / n, (rank as f64 + 1.0) / n);
            (expected - below).abs().max((expected - above).abs())
        })
        .fold(0.0, f64::max)
}

#[test]
fn delays_fill_the_range_evenly_and_stay_within() {
    inside(
        "jitter::delays_fill_the_range_evenly_and_stay_within",
        || {
            let mut lab = Lab::new(&jittered(false), &json!({}));
            in_one_round_of(5, || {
                // Every frame is a flow of its own, so that none waits for another.
                let received = send_and_receive(&lab, |number| number + 1_000);
                let delays_ns = &received.delays_ns;
                let distance = distance_from_uniform(delays_ns);
                println!(
                    "measured: jitter 40-60 ms: least {:.3} ms, p50 {:.3} ms, p99 {:.3} ms, \
                 most {:.3} ms, distance from uniform {distance:.4}",
                    delays_ns[0] as f64 / 1e6,
                    quantile(delays_ns, 0.5) as f64 / 1e6,
                    quantile(delays_ns, 0.99) as f64 / 1e6,
                    delays_ns[delays_ns.len() - 1] as f64 / 1e6,
                );
                let p99_ns = quantile(delays_ns, 0.99);
                hold(
                    p99_ns <= MOST_NS + received.late_ns,
                    "the range is exceeded",
                )?;
                // The 99.9 % point is 1.95 / sqrt(n); lateness may shift it.
                let shift = received.late_ns as f64 / (MOST_NS - LEAST_NS) as f64;
                hold(
                    distance <= 1.95 / f64::from(FRAMES).sqrt() + shift,
                    "not uniform",
                )
            });
            lab.wire.stats("ab").assert_nothing_unaccounted();
            lab.wire.finish();
        },
    );
}

#[test]
fn order_is_kept_within_each_flow() {
    inside("jitter::order_is_kept_within_each_flow", || {
        let lab = Lab::new(&jittered(false), &json!({}));
        let flows = 4;
        let numbers = send_and_receive(&lab, |number| number % flows).numbers;
        for flow in 0..flows {
            let of_flow = numbers.iter().filter(|&&number| number % flows == flow);
            assert!(of_flow.is_sorted(), "flow {flow}");
        }
        // That says something only because flows do overtake each other.
        assert!(!numbers.is_sorted());
    });
}

#[test]
fn frames_of_a_flow_overtake_each_other_when_asked_to() {
    inside(
        "jitter::frames_of_a_flow_overtake_each_other_when_asked_to",
        || {
            let lab = Lab::new(&jittered(true), &json!({}));
            in_one_round_of(5, || {
                let received = send_and_receive(&lab, |_| 1);
                let pairs = received.numbers.windows(2);
                let overtaken = pairs.filter(|pair| pair[0] > pair[1]).count();
                println!("measured: {overtaken} of {FRAMES} frames overtaken");
                assert!(overtaken > FRAMES as usize / 10);
                let p99_ns = quantile(&received.delays_ns, 0.99);
                hold(
                    p99_ns <= MOST_NS + received.late_ns,
                    "the range is exceeded",
                )
            });
        },
    );
}

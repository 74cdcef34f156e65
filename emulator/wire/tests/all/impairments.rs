//! Loss alone and in bursts, duplication, overtaking, tables: with real frames.

use std::collections::HashSet;

use serde_json::json;

use crate::effort::portion;
use crate::frames::udp;
use crate::lab::Lab;
use crate::sandbox::inside;
use crate::station::{LEAD_NS, MILLISECOND, PATIENCE_NS, QUICKEST_LATE_NS, numbers};

/// How many numbers a binomial count may lie from its mean: 99 % (two-sided) of a normal
/// approximation, widened to 99.99 % since tests must not fail by chance every hundredth time.
fn tolerance(n: f64, probability: f64) -> f64 {
    3.89 * (n * probability * (1.0 - probability)).sqrt() + 0.5
}

/// How many frames are sent at a time, so that no buffer overflows, not even of a few tests at once.
const AT_ONCE: u32 = 100;

/// Sends `count` frames, [`AT_ONCE`] at a time, and returns the numbers of those that arrived, as
/// they arrived.
fn send_and_receive(lab: &mut Lab, count: u32) -> Vec<u32> {
    let (left, mut right) = lab.stations();
    let (mut arrived, mut expected) = (Vec::new(), 0);
    let first = lab.wire.stats("ab").get("packets");
    let received = lab.wire.stats("ab").get("received");
    for start in (0..count).step_by(AT_ONCE as usize) {
        let end = count.min(start + AT_ONCE);
        left.send_all((start..end).map(|number| udp(1, number, 100)), 10_000);
        let stats = lab.wire.settle("ab", received + u64::from(end));
        let passed = stats.get("packets") - first - expected;
        expected += passed;
        arrived.extend(numbers(&right.receive(passed as usize, PATIENCE_NS)));
    }
    assert_eq!(arrived.len() as u64, expected, "what left arrived");
    arrived
}

#[test]
fn loss_is_within_the_interval_of_the_binomial_distribution_and_nothing_else_is_lost() {
    inside(|| {
        let (probability, count) = (0.05, 10_000);
        let requested = json!({"delay_ns": MILLISECOND, "loss": probability});
        let mut lab = Lab::new(&requested, &json!({}));
        let arrived = send_and_receive(&mut lab, count).len() as u32;
        let stats = lab.wire.stats("ab");
        let lost = stats.get("lost");
        assert_eq!(u64::from(count - arrived), lost);
        println!("measured: loss 5 %: {lost} of {count} lost");
        let n = f64::from(count);
        assert!((lost as f64 - n * probability).abs() <= tolerance(n, probability));
        stats.assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

#[test]
fn duplication_is_within_the_interval_of_the_binomial_distribution() {
    inside(|| {
        let (probability, count) = (0.05, 10_000);
        let asked = json!({"delay_ns": MILLISECOND, "jitter_ns": MILLISECOND / 2,
                               "duplicate": probability});
        let mut lab = Lab::new(&asked, &json!({}));
        let arrived = send_and_receive(&mut lab, count);
        let distinct: HashSet<u32> = arrived.iter().copied().collect();
        assert_eq!(distinct.len(), count as usize, "none is lost");
        assert!(
            arrived.is_sorted(),
            "a copy follows its frame before the next one does"
        );
        let twice = arrived.len() - distinct.len();
        let stats = lab.wire.stats("ab");
        assert_eq!(stats.get("duplicated"), twice as u64);
        stats.assert_nothing_unaccounted();
        println!("measured: duplication 5 %: {twice} of {count} came twice");
        let n = f64::from(count);
        assert!((twice as f64 - n * probability).abs() <= tolerance(n, probability));
        lab.wire.finish();
    });
}

#[test]
fn bursts_of_loss_are_as_long_and_as_frequent_as_asked() {
    inside(|| {
        let (p, r, count) = (0.02, 0.4, 20_000);
        let mut lab = Lab::new(&json!({"bursts": {"p": p, "r": r}}), &json!({}));
        let arrived = send_and_receive(&mut lab, count);
        let gaps: Vec<u32> = arrived
            .windows(2)
            .map(|pair| pair[1] - pair[0] - 1)
            .collect();
        let bursts: Vec<u32> = gaps.iter().copied().filter(|&gap| gap > 0).collect();
        println!(
            "measured: bursts of 2.5 frames, one in 52.5: {} bursts, {} frames lost",
            bursts.len(),
            bursts.iter().sum::<u32>()
        );
        // A burst of length n goes on with the probability 1 - r, whatever n is.
        for length in 1..=3 {
            let lasting = bursts.iter().filter(|&&burst| burst >= length).count() as f64;
            let ending = bursts.iter().filter(|&&burst| burst == length).count() as f64;
            assert!(
                (ending - lasting * r).abs() <= tolerance(lasting, r),
                "{ending} of {lasting} bursts end after {length} frames"
            );
        }
        // And after a frame that arrives, a burst begins with the probability p.
        let n = gaps.len() as f64;
        assert!((bursts.len() as f64 - n * p).abs() <= tolerance(n, p));
        lab.wire.stats("ab").assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

#[test]
fn what_overtakes_is_as_much_as_asked_and_leaves_at_once() {
    inside(|| {
        let (probability, count) = (0.05, 5_000);
        // So long that a stall of the machine makes nothing that overtook look late.
        let delay_ns = 4_000 * MILLISECOND;
        let asked = json!({"delay_ns": delay_ns, "overtake": probability});
        let mut lab = Lab::new(&asked, &json!({}));
        let (left, mut right) = lab.stations();
        let (arrivals, sent_ns) = right.receive_while(count as usize, PATIENCE_NS, || {
            left.send_all((0..count).map(|number| udp(1, number, 100)), 100_000)
        });
        assert_eq!(arrivals.len(), count as usize);
        let (early, late): (Vec<_>, Vec<_>) = arrivals.iter().partition(|arrival| {
            arrival.at_ns < sent_ns[arrival.number() as usize] + delay_ns - LEAD_NS
        });
        assert!(late.iter().map(|arrival| arrival.number()).is_sorted());
        assert_eq!(lab.wire.stats("ab").get("overtaken"), early.len() as u64);
        println!(
            "measured: overtaking 5 %: {} of {count} left at once",
            early.len()
        );
        let n = f64::from(count);
        assert!((early.len() as f64 - n * probability).abs() <= tolerance(n, probability));
        lab.wire.finish();
    });
}

#[test]
fn of_10_000_jittered_frames_of_a_flow_none_overtakes_another() {
    inside(|| {
        let count = portion(100_000) as u32;
        let jittered = json!({"delay_ns": 3 * MILLISECOND, "jitter_ns": 3 * MILLISECOND});
        let mut lab = Lab::new(&jittered, &json!({}));
        let (left, mut right) = lab.stations();
        let mut arrived = Vec::new();
        for start in (0..count).step_by(AT_ONCE as usize) {
            let frames = (start..start + AT_ONCE).map(|number| udp(1, number, 64));
            left.send_all(frames, 1_000);
            arrived.extend(numbers(&right.receive(AT_ONCE as usize, PATIENCE_NS)));
        }
        let all: Vec<u32> = (0..count).collect();
        assert!(arrived == all, "all there, in order");
        println!("measured: 0 of {count} frames overtaken");
        lab.wire.stats("ab").assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

#[test]
fn delays_are_drawn_from_the_table_that_was_sent() {
    inside(|| {
        let mut lab = Lab::idle(&[]);
        let of_table = |name: &str| json!({"delay_ns": 20 * MILLISECOND, "jitter_ns": 10 * MILLISECOND, "table": name});
        lab.wire.ask_ok(&json!({
            "op": "start", "seed": 1, "tables": {"near": [0.3, 0.4]},
            "links": [{"a": "wa", "b": "wb", "ab": of_table("near")}],
        }));
        let (left, mut right) = lab.stations();
        let mut least_delay_ns = |lab: &mut Lab, first: u32| {
            let frames = (first..first + 200).map(|number| udp(number as u16, number, 100));
            let sent_ns = left.send_all(frames, 3 * MILLISECOND);
            lab.wire.settle("ab", u64::from(first) + 200);
            let arrivals = right.receive(200, PATIENCE_NS);
            assert_eq!(arrivals.len(), 200);
            let delays_ns = arrivals
                .iter()
                .map(|arrival| arrival.at_ns - sent_ns[(arrival.number() - first) as usize]);
            delays_ns.min().unwrap()
        };
        // None of 200 is below the table's least: of another table some would be.
        let near_ns = least_delay_ns(&mut lab, 0) + LEAD_NS;
        let near = 23 * MILLISECOND..23 * MILLISECOND + QUICKEST_LATE_NS as u64;
        assert!(near.contains(&near_ns), "{near_ns} ns");
        let far = json!({"link": 0, "direction": "ab", "impairment": of_table("far")});
        let unknown = lab.wire.ask(&json!({"op": "set", "changes": [far]}));
        assert!(
            unknown["error"]
                .as_str()
                .unwrap()
                .contains("no table \"far\"")
        );
        lab.wire
            .ask_ok(&json!({"op": "set", "tables": {"far": [0.9, 1.0]}, "changes": [far]}));
        let far_ns = least_delay_ns(&mut lab, 200) + LEAD_NS;
        assert!(far_ns >= 29 * MILLISECOND, "{far_ns} ns");
        lab.wire.finish();
    });
}

//! Changes while frames are on their way.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::effort::portion;
use crate::frames::udp;
use crate::lab::Lab;
use crate::sandbox::inside;
use crate::station::{
    LEAD_NS, MILLISECOND, PATIENCE_NS, QUICKEST_LATE_NS, numbers, quantile, sleep_until,
};

/// With which change the delay of a link changes, in turn.
const DELAYS_NS: [u64; 4] = [
    20 * MILLISECOND,
    5 * MILLISECOND,
    40 * MILLISECOND,
    MILLISECOND,
];

#[test]
fn changes_lose_nothing_and_take_effect_at_the_instant_that_is_told() {
    inside(|| {
        let mut lab = Lab::new(&json!({"delay_ns": DELAYS_NS[0]}), &json!({}));
        let (left, mut right) = lab.stations();
        let count = 2_000u32;
        // From which instant which delay is in force.
        let mut epochs = vec![(0, DELAYS_NS[0])];
        let (arrivals, sent_ns) = right.receive_while(count as usize, PATIENCE_NS, || {
            let mut sent_ns = Vec::new();
            for number in 0..count {
                if number % 37 == 0 {
                    let delay_ns = DELAYS_NS[epochs.len() % DELAYS_NS.len()];
                    let t_ns = lab.wire.set("ab", &json!({"delay_ns": delay_ns}));
                    epochs.push((t_ns, delay_ns));
                }
                sent_ns.push(left.send(&udp(1, number, 100)));
                sleep_until(wire::sys::monotonic_ns() + MILLISECOND / 4);
            }
            sent_ns
        });
        let all: Vec<u32> = (0..count).collect();
        assert!(numbers(&arrivals) == all, "all there, in order");

        let mut quickest_late_ns = vec![i64::MAX; epochs.len()];
        let mut last_due_ns = 0;
        for arrival in &arrivals {
            let sent_ns = sent_ns[arrival.number() as usize];
            let in_force = epochs.partition_point(|&(since_ns, _)| since_ns <= sent_ns) - 1;
            // Behind an earlier frame of its flow that has more delay, a frame waits.
            let due_ns = (sent_ns + epochs[in_force].1).max(last_due_ns);
            let late_ns = arrival.at_ns as i64 - due_ns as i64;
            assert!(
                late_ns >= -(LEAD_NS as i64),
                "frame {} early",
                arrival.number()
            );
            quickest_late_ns[in_force] = quickest_late_ns[in_force].min(late_ns);
            last_due_ns = due_ns;
        }
        // A stall of the machine makes some frames late; a change without effect, all that
        // follow it. There are 55 changes.
        quickest_late_ns.retain(|&late_ns| late_ns != i64::MAX);
        let typical_ns = quantile(&quickest_late_ns, 0.5);
        println!(
            "measured: after {} changes the quickest frame is late by {} us, at the median",
            quickest_late_ns.len(),
            typical_ns / 1_000
        );
        assert!(typical_ns <= QUICKEST_LATE_NS, "{quickest_late_ns:?}");
        lab.wire.stats("ab").assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

/// Any impairment that loses and overtakes nothing, but for order between flows.
fn any(random: &mut Xoshiro256PlusPlus) -> Value {
    let mut below = |bound: u32| random.next_u32() % bound;
    let delay_ns = u64::from(below(30)) * MILLISECOND;
    let rate_bps = [None, None, Some(1_000_000_000u64), Some(100_000_000)][below(4) as usize];
    let table = [None, Some("even"), Some("skewed")][below(3) as usize];
    json!({
        "delay_ns": delay_ns,
        "jitter_ns": delay_ns * u64::from(below(3)) / 2,
        "table": table,
        "rate_bps": rate_bps,
        "queue_bytes": 10_000_000,
    })
}

/// The shortest delay that an impairment of [`any`] gives a frame.
fn shortest_ns(impairment: &Value) -> u64 {
    let at = |name: &str| impairment[name].as_u64().unwrap_or(0);
    let least = if impairment["table"] == "skewed" {
        2
    } else {
        1
    };
    at("delay_ns").saturating_sub(at("jitter_ns") / least)
}

#[test]
fn a_thousand_changes_lose_no_frame_send_none_early_and_keep_the_order_of_each_flow() {
    inside(|| {
        let mut lab = Lab::idle(&[]);
        lab.wire.ask_ok(&json!({
            "op": "start", "seed": 1, "links": [{"a": "wa", "b": "wb"}],
            "tables": {"even": [-1.0, 1.0], "skewed": [-0.5, -0.4, 2.0]},
        }));
        let (left, mut right) = lab.stations();
        let changes = portion(10_000) as u32;
        let (count, flows) = (2 * changes, 3);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        // From which instant which impairment is in force, each way from the first on.
        let mut epochs = vec![(0, 0)];
        let (arrivals, sent_ns) = right.receive_while(count as usize, 2 * PATIENCE_NS, || {
            let mut sent_ns = Vec::new();
            for change in 0..changes {
                let impairment = any(&mut random);
                let t_ns = lab.wire.set("ab", &impairment);
                epochs.push((t_ns, shortest_ns(&impairment)));
                for number in 2 * change..2 * change + 2 {
                    sent_ns.push(left.send(&udp((number % flows) as u16, number, 100)));
                }
            }
            sent_ns
        });
        let mut numbers = numbers(&arrivals);
        for flow in 0..flows {
            let of_flow = numbers.iter().filter(|&&number| number % flows == flow);
            assert!(of_flow.is_sorted(), "flow {flow}");
        }
        for arrival in &arrivals {
            let sent_ns = sent_ns[arrival.number() as usize];
            let later = epochs.partition_point(|&(since_ns, _)| since_ns <= sent_ns);
            let (_, shortest_ns) = epochs[later - 1];
            assert!(
                arrival.at_ns + LEAD_NS >= sent_ns + shortest_ns,
                "frame {} is early",
                arrival.number()
            );
        }
        numbers.sort_unstable();
        assert!(
            numbers == (0..count).collect::<Vec<u32>>(),
            "all there, once"
        );
        let stats = lab.wire.stats("ab");
        assert_eq!(stats.get("packets"), u64::from(count));
        println!("measured: {changes} changes under traffic: {count} frames, none lost or early");
        stats.assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

#[test]
fn a_frame_on_its_way_keeps_its_instant_whatever_changes() {
    inside(|| {
        let slow = json!({"delay_ns": 300 * MILLISECOND});
        let mut lab = Lab::new(&slow, &json!({}));
        let (left, mut right) = lab.stations();
        // With the first last delay a frame that followed it would be early, with the second
        // it would not come while anybody waits.
        for last_delay_ns in [0, 2 * PATIENCE_NS] {
            lab.wire.set("ab", &slow);
            let sent_ns: Vec<u64> = (0..50).map(|i| left.send(&udp(1, i, 100))).collect();
            let sent = lab.wire.stats("ab").get("packets");
            for step in 0..100 {
                let changed = json!({"delay_ns": step * 7 % 600 * MILLISECOND,
                                         "loss": 1.0, "reorder": step % 2 == 0});
                lab.wire.set("ab", &changed);
            }
            lab.wire
                .set("ab", &json!({"delay_ns": last_delay_ns, "loss": 1.0}));
            let stats = lab.wire.stats("ab");
            if wire::sys::monotonic_ns() < sent_ns[0] + 300 * MILLISECOND - LEAD_NS {
                assert_eq!(stats.get("packets"), sent);
                assert_eq!(stats.get("held"), 50);
            }
            let arrivals = right.receive(50, PATIENCE_NS);
            assert!(numbers(&arrivals) == (0..50).collect::<Vec<u32>>());
            for (sent_ns, arrival) in sent_ns.iter().zip(&arrivals) {
                assert!(
                    arrival.at_ns + LEAD_NS >= sent_ns + 300 * MILLISECOND,
                    "frame {} is early",
                    arrival.number()
                );
            }
        }
        lab.wire.finish();
    });
}

#[test]
fn a_wrong_change_changes_nothing_at_all() {
    inside(|| {
        let mut lab = Lab::new(&json!({}), &json!({}));
        let good = json!({"link": 0, "direction": "ab", "impairment": {"loss": 1}});
        for bad in [
            json!({"link": 1, "direction": "ab", "impairment": {}}),
            json!({"link": 0, "direction": "ba", "impairment": {"jitter_ns": 1}}),
            json!({"link": 0, "direction": "ba", "impairment": {"unknown": 1}}),
        ] {
            let answer = lab.wire.ask(&json!({"op": "set", "changes": [good, bad]}));
            assert_eq!(answer["ok"], false, "{answer}");
        }
        let (left, mut right) = lab.stations();
        left.send(&udp(1, 0, 100));
        assert_eq!(right.receive(1, PATIENCE_NS).len(), 1);
        lab.wire.finish();
    });
}

#[test]
fn a_cut_loses_what_comes_after_it_and_not_what_is_on_its_way() {
    inside(|| {
        let mut lab = Lab::new(&json!({"delay_ns": 100 * MILLISECOND}), &json!({}));
        let (left, mut right) = lab.stations();
        for number in 0..10 {
            left.send(&udp(1, number, 100));
        }
        lab.wire
            .set("ab", &json!({"delay_ns": 100 * MILLISECOND, "loss": 1.0}));
        for number in 10..20 {
            left.send(&udp(1, number, 100));
        }
        let stats = lab.wire.settle("ab", 20);
        assert_eq!(stats.get("lost"), 10);
        assert_eq!(stats.get("packets"), 10);
        let arrivals = right.receive(10, PATIENCE_NS);
        assert_eq!(numbers(&arrivals), (0..10).collect::<Vec<u32>>());
        lab.wire.finish();
    });
}

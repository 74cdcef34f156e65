//! Changes while frames are on their way.

use serde_json::json;

use crate::frames::udp;
use crate::lab::Lab;
use crate::noise::{Noise, hold, in_one_round_of};
use crate::sandbox::inside;
use crate::station::{LEAD_NS, PATIENCE_NS, numbers, sleep_until};

const MILLISECOND: u64 = 1_000_000;

#[test]
fn changes_lose_nothing_and_take_effect_at_the_instant_that_is_told() {
    inside(
        "live_changes::changes_lose_nothing_and_take_effect_at_the_instant_that_is_told",
        || {
            let delays_ns = [20, 5, 40, 1].map(|ms| ms * MILLISECOND);
            let mut lab = Lab::new(&json!({"delay_ns": delays_ns[0]}), &json!({}));
            let (left, mut right) = lab.stations();
            let count = 2_000u32;
            // From which instant which delay is in force.
            let mut epochs = vec![(0, delays_ns[0])];
            in_one_round_of(10, || {
                let noise = Noise::start();
                let (arrivals, sent_ns) = right.receive_while(count as usize, PATIENCE_NS, || {
                    let start_ns = wire::sys::monotonic_ns();
                    let mut sent_ns = Vec::new();
                    for number in 0..count {
                        sleep_until(start_ns + u64::from(number) * MILLISECOND / 4);
                        if number % 37 == 0 {
                            let delay_ns = delays_ns[epochs.len() % delays_ns.len()];
                            let t_ns = lab.wire.set("ab", &json!({"delay_ns": delay_ns}));
                            epochs.push((t_ns, delay_ns));
                        }
                        sent_ns.push(left.send(&udp(1, number, 100)));
                    }
                    sent_ns
                });
                let late_ns = noise.stop().tolerated_p99_ns(500_000) as u64;
                let all: Vec<u32> = (0..count).collect();
                assert!(numbers(&arrivals) == all, "all there, in order");

                let (mut last_due_ns, mut late) = (0, 0);
                for arrival in &arrivals {
                    let sent_ns = sent_ns[arrival.number() as usize];
                    let in_force = epochs
                        .iter()
                        .rev()
                        .find(|(since_ns, _)| *since_ns <= sent_ns);
                    // Behind an earlier frame of its flow that has more delay, a frame waits.
                    let due_ns = (sent_ns + in_force.unwrap().1).max(last_due_ns);
                    assert!(
                        arrival.at_ns >= due_ns - LEAD_NS,
                        "frame {} early",
                        arrival.number()
                    );
                    late += u32::from(arrival.at_ns > due_ns + late_ns);
                    last_due_ns = due_ns;
                }
                println!(
                    "measured: after 55 changes {late} of {count} frames later than {} us",
                    late_ns / 1_000
                );
                hold(late <= count / 20, "too many frames are late")
            });
            lab.wire.stats("ab").assert_nothing_unaccounted();
            lab.wire.finish();
        },
    );
}

#[test]
fn a_wrong_change_changes_nothing_at_all() {
    inside(
        "live_changes::a_wrong_change_changes_nothing_at_all",
        || {
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
        },
    );
}

#[test]
fn a_cut_loses_what_comes_after_it_and_not_what_is_on_its_way() {
    inside(
        "live_changes::a_cut_loses_what_comes_after_it_and_not_what_is_on_its_way",
        || {
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
        },
    );
}

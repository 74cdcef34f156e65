//! How late frames left, told in bins: a lateness that was planted is found where and when it is.

use serde_json::{Value, json};

use crate::frames::udp;
use crate::lab::Lab;
use crate::sandbox::inside;
use crate::station::{MILLISECOND, PATIENCE_NS};
use wire::lateness::BIN_NS;

const DELAY_NS: u64 = 10 * MILLISECOND;
const LATE_NS: u64 = 300 * MILLISECOND; // no stall that this machine has anyway is taken for it
const FRAMES: u32 = 60;

/// The bins of one direction in which a frame was so late.
fn late_bins(answer: &Value, direction: u64) -> Vec<u64> {
    let late = answer["late"].as_array().unwrap();
    late.iter()
        .filter(|bin| bin["direction"] == direction && bin["max_ns"].as_u64() >= Some(LATE_NS))
        .map(|bin| bin["start_ns"].as_u64().unwrap())
        .collect()
}

#[test]
fn a_planted_lateness_is_in_the_bins_of_its_direction_and_time_and_keeps_order() {
    inside(|| {
        let delay = json!({"delay_ns": DELAY_NS});
        let mut lab = Lab::new(&delay, &delay);
        let (mut left, mut right) = lab.stations();
        let plant = json!({"op": "plant_lateness", "link": 0, "direction": "ab",
            "late_ns": LATE_NS, "for_ns": 200 * MILLISECOND});
        let began_ns = lab.wire.ask_ok(&plant);
        let frames = (0..FRAMES).map(|number| udp(1, number, 100));
        let (there, sent_ns) = right.receive_while(FRAMES as usize, PATIENCE_NS, || {
            left.send_all(frames, 10 * MILLISECOND)
        });
        right.send(&udp(1, 0, 100));
        assert_eq!(left.receive(1, PATIENCE_NS).len(), 1);
        assert!(
            there
                .windows(2)
                .all(|two| two[0].number() < two[1].number())
        );
        assert!(there[0].at_ns - sent_ns[0] >= DELAY_NS + LATE_NS - BIN_NS);
        let answer = lab.wire.ask(&json!({"op": "lateness"}));
        let bins = late_bins(&answer, 0);
        assert!(
            !bins.is_empty() && late_bins(&answer, 1).is_empty(),
            "{answer}"
        );
        // Until those have left that wait behind the last one that was held.
        let ends_ns = began_ns + 200 * MILLISECOND + DELAY_NS + 2 * LATE_NS;
        for start_ns in bins {
            assert!(
                (began_ns + LATE_NS..ends_ns).contains(&start_ns),
                "{start_ns}"
            );
        }
        let rest = lab
            .wire
            .ask(&json!({"op": "lateness", "since": answer["next"]}));
        assert!(late_bins(&rest, 0).is_empty(), "{rest}");
        let nowhere = json!({"op": "plant_lateness", "link": 9, "direction": "ab",
            "late_ns": 1, "for_ns": 1});
        assert_eq!(lab.wire.ask(&nowhere)["ok"], false);
        lab.wire.finish();
    });
}

//! Frames of any kind, interfaces that come and go, memory that runs out.

use std::thread;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::frames::{UDP_HEADER_BYTES, udp};
use crate::lab::{Lab, ip};
use crate::sandbox::inside;
use crate::station::{MILLISECOND, PATIENCE_NS, numbers};

/// Slow enough for receive buffers of any size.
const APART_NS: u64 = 20_000;

#[test]
fn frames_come_out_as_they_went_in_whatever_their_length() {
    inside(|| {
        let mut lab = Lab::new(&json!({"delay_ns": MILLISECOND}), &json!({}));
        let (left, mut right) = lab.stations();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let frames: Vec<Vec<u8>> = (0..300)
            .map(|number| {
                let payload_bytes = 8 + random.next_u32() as usize % 1_460;
                let mut frame = udp(1, number, UDP_HEADER_BYTES + payload_bytes);
                random.fill_bytes(&mut frame[UDP_HEADER_BYTES + 8..]);
                frame
            })
            .collect();
        let (arrivals, _) = right.receive_while(frames.len(), PATIENCE_NS, || {
            left.send_all(frames.iter().cloned(), APART_NS)
        });
        assert_eq!(arrivals.len(), frames.len());
        for (sent, arrival) in frames.iter().zip(arrivals) {
            assert!(*sent == arrival.frame, "frame {}", arrival.number());
        }
        lab.wire.finish();
    });
}

#[test]
fn an_interface_that_goes_down_or_away_costs_its_frames_and_no_more() {
    inside(|| {
        // Long enough for a command while a frame is on its way, even if the machine stalls.
        let long = json!({"delay_ns": 4_000 * MILLISECOND});
        let mut lab = Lab::new(&long, &json!({}));
        let (left, mut right) = lab.stations();
        left.send(&udp(1, 0, 100));
        ip("link set wb down");
        assert_eq!(lab.wire.settle("ab", 1).get("send_errors"), 1);
        ip("link set wb up");
        lab.until_carrying();
        lab.wire.set("ab", &json!({"delay_ns": MILLISECOND}));
        left.send(&udp(1, 1, 100));
        assert_eq!(numbers(&right.receive(1, PATIENCE_NS)), [1]);
        ip("link set wa down");
        ip("link set wa up");
        lab.until_carrying();
        left.send(&udp(1, 2, 100));
        assert_eq!(numbers(&right.receive(1, PATIENCE_NS)), [2]);
        lab.wire.set("ab", &long);
        left.send(&udp(1, 3, 100));
        ip("link delete wb");
        let stats = lab.wire.settle("ab", 4);
        assert_eq!(stats.get("send_errors"), 2);
        stats.assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

#[test]
fn memory_is_bounded_and_what_exceeds_it_is_counted() {
    inside(|| {
        let mut lab = Lab::idle(&["--memory-mib", "1"]);
        // All are sent before the first one leaves, even if the machine stalls.
        let ab = json!({"delay_ns": 4_000 * MILLISECOND});
        let link = json!({"a": "wa", "b": "wb", "ab": ab});
        lab.wire
            .ask_ok(&json!({"op": "start", "seed": 1, "links": [link]}));
        let (left, mut right) = lab.stations();
        // A frame of 1514 bytes takes 2 KiB: 512 of them fit.
        let frames = (0..700).map(|number| udp(1, number, 1_514));
        let (arrivals, _) =
            right.receive_while(512, PATIENCE_NS, || left.send_all(frames, APART_NS));
        assert_eq!(numbers(&arrivals), (0..512).collect::<Vec<u32>>());
        let stats = lab.wire.stats("ab");
        assert_eq!(stats.get("memory_drops"), 188);
        stats.assert_nothing_unaccounted();
        left.send(&udp(1, 1_000, 1_514));
        assert_eq!(
            numbers(&right.receive(1, PATIENCE_NS)),
            [1_000],
            "room again"
        );
        lab.wire.finish();
    });
}

#[test]
fn it_uses_no_time_while_nothing_happens() {
    inside(|| {
        let mut lab = Lab::new(&json!({"delay_ns": 50 * MILLISECOND}), &json!({}));
        let used_before = lab.wire.cpu_ticks();
        thread::sleep(Duration::from_secs(1));
        // A tick is 10 ms.
        assert!(lab.wire.cpu_ticks() - used_before <= 5);
        // Nor when an interface reports an error.
        ip("link set wa down");
        ip("link delete wb");
        thread::sleep(Duration::from_secs(1));
        assert!(lab.wire.cpu_ticks() - used_before <= 10);
        lab.wire.stats("ab");
        lab.wire.finish();
    });
}

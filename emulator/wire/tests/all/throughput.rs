//! Bulk TCP across a link of 1 ms. How fast it is: `docs/results/instrument`.

use std::io::{Read, Write};
use std::thread;

use serde_json::json;

use crate::lab::Lab;
use crate::sandbox::inside_alone;

const BYTES: usize = 128 << 20;

#[test]
fn offloaded_segments_pass_whole() {
    inside_alone(|| {
        let impairment = json!({"delay_ns": 500_000});
        let mut lab = Lab::new(&impairment, &impairment);
        let (mut sender, mut receiver) = lab.connect();
        let reader = thread::spawn(move || {
            let mut chunk = vec![0; 1 << 20];
            let mut total = 0;
            loop {
                match receiver.read(&mut chunk).unwrap() {
                    0 => return total,
                    length => total += length,
                }
            }
        });
        sender.write_all(&vec![0x5a; BYTES]).unwrap();
        drop(sender);
        assert_eq!(reader.join().unwrap(), BYTES);
        let stats = lab.wire.settle("ab", 1);
        let frame_bytes = stats.get("bytes") / stats.get("packets");
        println!(
            "measured: {frame_bytes} bytes a frame, {} dropped by the kernel",
            stats.get("rx_drops")
        );
        assert!(
            frame_bytes > 5_000,
            "segments are not offloaded: {frame_bytes} bytes a frame"
        );
        stats.assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

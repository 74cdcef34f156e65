//! Bulk TCP across a link of 1 ms.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::Lab;
use crate::sandbox::inside;

#[test]
fn offloaded_segments_pass_whole_and_fast() {
    inside("throughput::offloaded_segments_pass_whole_and_fast", || {
        let impairment = json!({"delay_ns": 500_000});
        let mut lab = Lab::new(&impairment, &impairment);
        let (mut sender, mut receiver) = lab.connect();
        for stream in [&sender, &receiver] {
            stream
                .set_write_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
        }
        let duration = Duration::from_secs(2);
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
        let chunk = vec![0x5a; 1 << 20];
        let start = Instant::now();
        while start.elapsed() < duration {
            sender.write_all(&chunk).unwrap();
        }
        drop(sender);
        let total = reader.join().unwrap();
        let gigabits = total as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9;
        let stats = lab.wire.stats("ab");
        let frame_bytes = stats.get("bytes") / stats.get("packets");
        println!(
            "measured: {gigabits:.2} Gbit/s over 1 ms, {frame_bytes} bytes a frame, \
             {} dropped by the kernel",
            stats.get("rx_drops")
        );
        // On two idle cores it is several times this; the machine may be busy.
        assert!(gigabits > 0.5, "{gigabits} Gbit/s");
        assert!(
            frame_bytes > 5_000,
            "segments are not offloaded: {frame_bytes} bytes a frame"
        );
        stats.assert_nothing_unaccounted();
        lab.wire.finish();
    });
}

//! Loss: as often as asked, and nothing else lost.

use serde_json::json;

use crate::frames::udp;
use crate::lab::Lab;
use crate::sandbox::inside;
use crate::station::PATIENCE_NS;

#[test]
fn loss_is_within_the_interval_of_the_binomial_distribution() {
    inside(
        "loss::loss_is_within_the_interval_of_the_binomial_distribution",
        || {
            let (loss, count) = (0.05, 10_000);
            let mut lab = Lab::new(&json!({"delay_ns": 1_000_000, "loss": loss}), &json!({}));
            let (left, mut right) = lab.stations();
            let (mut sent, mut arrived) = (0, 0);
            while sent < count {
                let frames = (0..100).map(|number| udp(1, number, 100));
                sent += left.send_all(frames, 20_000).len() as u64;
                let stats = lab.wire.settle("ab", sent);
                let passed = stats.get("packets") - arrived;
                arrived += right.receive(passed as usize, PATIENCE_NS).len() as u64;
            }
            let stats = lab.wire.stats("ab");
            let lost = stats.get("lost");
            assert_eq!(
                arrived,
                sent - lost,
                "every frame that is missing was lost on purpose"
            );
            // Normal approximation of the binomial, 99.9 %: 3.29 standard deviations.
            let mean = sent as f64 * loss;
            let deviation = (mean * (1.0 - loss)).sqrt();
            println!("measured: loss 5 %: {lost} of {sent} lost");
            assert!(
                (lost as f64 - mean).abs() <= 3.29 * deviation,
                "{lost} of {sent}"
            );
            stats.assert_nothing_unaccounted();
            lab.wire.finish();
        },
    );
}

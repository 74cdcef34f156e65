//! The requests of the packet record, as far as they need no network.

use serde_json::{Value, json};

use crate::program::Wire;

#[test]
fn a_record_needs_links_and_somewhere_to_go() {
    let mut wire = Wire::spawn(&[]);
    let capture = |pcapng: &str, directions: Value| {
        let settings = json!({"pcapng": pcapng, "rows": "/dev/null", "limit_bytes": 1_000_000,
                              "snap_bytes": 256, "directions": directions});
        json!({"op": "capture", "capture": settings})
    };
    let nowhere = json!([{"link": 0, "direction": "ab", "name": "dc1->dc2"}]);
    for (request, error) in [
        (capture("/dev/null", json!([])), "not started yet"),
        (json!({"op": "start", "seed": 1, "links": []}), ""),
        (
            json!({"op": "capture_status"}),
            "no packets are being recorded",
        ),
        (
            json!({"op": "capture_stop"}),
            "no packets are being recorded",
        ),
        (capture("/dev/null", nowhere), "there is no link 0"),
        (capture("/nonexistent", json!([])), "/nonexistent"),
    ] {
        let answer = wire.ask(&request);
        assert_eq!(answer["ok"], error.is_empty(), "{answer}");
        let told = answer["error"].as_str().unwrap_or_default();
        assert!(told.contains(error), "{answer}");
    }
    wire.finish();
}

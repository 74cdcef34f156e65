//! What the integration tests share: real clusters on loopback, small clients of both APIs, a slow network.

// Every test binary uses a part of this.
#![allow(dead_code)]

pub mod bob;
pub mod client;
pub mod cluster;
pub mod health;
pub mod network;

use std::time::{Duration, Instant};

/// Waits until `condition` holds, and fails the test if it does not within `limit`.
pub fn eventually(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}

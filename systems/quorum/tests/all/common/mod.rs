//! What the integration tests share: real clusters on loopback, small clients of both APIs, a slow
//! network.

pub mod bob;
pub mod client;
pub mod cluster;
pub mod network;

use std::time::{Duration, Instant};

/// What must come is waited for this long, on however busy a machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Has a node wait for a peer so long that one such wait stands out from what the machine does.
pub const LONG_TIMEOUT: [&str; 2] = ["--peer-timeout-ms", "20000"];

/// What a blocking client runs on.
fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_all().build().unwrap()
}

/// Waits until `condition` holds, and fails the test if it does not.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asserts that no node has waited for a peer as long as [`LONG_TIMEOUT`] says.
#[track_caller]
pub fn assert_nobody_waited(since: Instant) {
    let took = since.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Asserts that a request takes so many round trips, by the times of a few of them. No network
/// makes them shorter. What else the machine does makes some longer, but hardly all of them by
/// a round trip more.
#[track_caller]
pub fn assert_round_trips(
    name: &str,
    one_way: Duration,
    rounds: u32,
    mut request: impl FnMut(usize),
) {
    let sample = |number| {
        let began = Instant::now();
        request(number);
        began.elapsed()
    };
    let took: Vec<_> = (0..SAMPLES).map(sample).collect();
    let quickest = took.iter().min().unwrap();
    let fits = *quickest >= 2 * one_way * rounds && *quickest < 2 * one_way * (rounds + 1);
    assert!(
        fits,
        "{name}: {took:?}, and {rounds} round trips are claimed"
    );
}

pub const SAMPLES: usize = 7;

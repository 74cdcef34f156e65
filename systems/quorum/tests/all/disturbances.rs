//! Planted disturbances: each does what it says, and no more.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::eventually;

/// The kernel puts off an acknowledgement for so long (TCP_DELACK_MIN).
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// A new connection's first segments are acknowledged at once: the first few Puts show nothing.
const FIRST: usize = 15;

/// What 60 Puts in a row on one connection take, each.
fn puts(options: &[&str]) -> Vec<Duration> {
    let cluster = Cluster::of(3, "leaderless", options);
    let log = cluster.logs();
    match options.first() {
        Some(flag) => assert!(
            log.contains(&format!("DISTURBANCE PLANTED: {flag}")),
            "{log}"
        ),
        None => assert!(!log.contains("PLANTED"), "{log}"),
    }
    let mut client = cluster.client(0);
    client.create_bucket().expect(200);
    let one = |number| {
        let began = Instant::now();
        client.put(&format!("k{number}"), b"body").expect(200);
        began.elapsed()
    };
    (0..60).map(one).collect()
}

fn waited(took: Duration) -> bool {
    took >= DELAYED_ACK - Duration::from_millis(2)
}

#[test]
fn one_response_in_three_waits_for_a_delayed_acknowledgement() {
    let took = puts(&["--delayed-ack", "3"]);
    // The first response is the bucket's.
    let of_three = |turn: usize| -> Vec<Duration> {
        let responses = (FIRST..took.len()).filter(|put| (put + 2) % 3 == turn);
        responses.map(|put| took[put]).collect()
    };
    let planted = of_three(0);
    let held = planted.iter().filter(|&&took| waited(took)).count();
    assert!(held >= planted.len() * 2 / 3, "{held}: {took:?}");
    // A busy machine may make some of the others as slow, not all.
    for turn in [1, 2] {
        let spared = of_three(turn).into_iter().any(|took| !waited(took));
        assert!(spared, "{took:?}");
    }
}

#[test]
fn with_nagle_messages_to_a_peer_wait_for_acknowledgements() {
    let took = puts(&["--nagle"]);
    // A message may find the timer of the acknowledgement running already, and waits for the rest
    // of it: two in a row wait as long as the timer takes. Without the flag none waits.
    let pairs = took[FIRST..].windows(2);
    let held = pairs.filter(|pair| waited(pair.iter().sum())).count();
    assert!(held >= 22, "{held} of 44 pairs: {took:?}");
}

#[test]
fn without_the_flag_no_response_waits() {
    let took = puts(&[]);
    // A busy machine may make some as slow. With one in three that waits, no three in a row would
    // be spared.
    let spared = |puts: &[Duration]| !puts.iter().any(|&took| waited(took));
    assert!(took[FIRST..].windows(3).any(spared), "{took:?}");
}

#[test]
fn a_heartbeat_crosses_whether_or_not_anybody_asks() {
    let start = |options: &[&str]| {
        let cluster = Cluster::far_apart(3, "leaderless", options, Duration::ZERO);
        let before = cluster.traffic.load(Ordering::Relaxed);
        (cluster, before)
    };
    let moved =
        |(cluster, before): &(Cluster, u64)| cluster.traffic.load(Ordering::Relaxed) - before;
    let (quiet, beating) = (start(&[]), start(&["--heartbeat-ms", "100"]));
    // Six ordered pairs, there and back, 15 times.
    let least = 6 * 15 * 2 * 13;
    eventually("heartbeats cross", || moved(&beating) > least);
    // In at least the same time; nodes that are silent send a ping every two seconds.
    assert!(moved(&quiet) < least / 4, "{} bytes", moved(&quiet));
}

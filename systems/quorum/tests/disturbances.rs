//! Planted disturbances, and requests of different costs: each does what it says, and no more.

mod common;

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::cluster::Cluster;

/// The kernel puts off an acknowledgement for so long (TCP_DELACK_MIN).
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// What so many Puts in a row on one connection take, each.
fn puts(cluster: &Cluster, count: usize) -> Vec<Duration> {
    let mut client = cluster.client(0);
    client.create_bucket("bucket").expect(200);
    let one = |number| {
        let began = Instant::now();
        client
            .put("bucket", &format!("k{number}"), b"body")
            .expect(200);
        began.elapsed()
    };
    (0..count).map(one).collect()
}

fn held_back(took: &[Duration]) -> usize {
    let least = DELAYED_ACK - Duration::from_millis(2);
    took.iter().filter(|&&took| took >= least).count()
}

#[test]
fn one_response_in_three_waits_for_a_delayed_acknowledgement() {
    let cluster = Cluster::start(3, "leaderless", &["--delayed-ack", "3"]);
    let log = cluster.logs();
    assert!(log.contains("DISTURBANCE PLANTED: --delayed-ack"), "{log}");
    let took = puts(&cluster, 60);
    // A new connection's first segments are acknowledged at once, so the first few are spared.
    let held = held_back(&took);
    assert!((12..=22).contains(&held), "{held} of 60: {took:?}");
}

#[test]
fn with_nagle_messages_to_a_peer_wait_for_acknowledgements() {
    let cluster = Cluster::start(3, "leaderless", &["--nagle"]);
    let log = cluster.logs();
    assert!(log.contains("DISTURBANCE PLANTED: --nagle"), "{log}");
    let took = puts(&cluster, 30);
    // New connections are acknowledged at once for a while. And every second message may find the
    // timer of the acknowledgement already running: then two together wait as long as one.
    let held = held_back(&took[14..]);
    assert!(held >= 7, "{held} of the last 16: {took:?}");
}

#[test]
fn without_the_flag_no_response_waits() {
    let cluster = Cluster::start(3, "leaderless", &[]);
    assert!(!cluster.logs().contains("DISTURBANCE"));
    let took = puts(&cluster, 60);
    assert!(held_back(&took) <= 3, "{took:?}");
}

#[test]
fn a_heartbeat_crosses_whether_or_not_anybody_asks() {
    let bytes_in_two_seconds = |options: &[&str]| {
        let cluster = Cluster::start_far_apart(3, "leaderless", options, Duration::ZERO);
        let before = cluster.traffic.load(Ordering::Relaxed);
        sleep(Duration::from_secs(2));
        cluster.traffic.load(Ordering::Relaxed) - before
    };
    // Six ordered pairs, ten times a second, there and back.
    let least = 6 * 15 * 2 * 13;
    assert!(bytes_in_two_seconds(&["--heartbeat-ms", "100"]) > least);
    assert!(bytes_in_two_seconds(&[]) < least / 4);
}

#[test]
fn a_mixture_has_its_shares_and_each_response_says_which_it_was() {
    let cluster = Cluster::start(3, "mixture:30:1:3", &[]);
    let mut client = cluster.client(1);
    client.create_bucket("bucket").expect(200);
    client.put("bucket", "k", b"body").expect(200);
    let mut rounds = |_| client.get("bucket", "k").expect(200).rounds();
    let counted: Vec<u32> = (0..100).map(&mut rounds).collect();
    let cheap = counted.iter().filter(|&&rounds| rounds == 1).count();
    let dear = counted.iter().filter(|&&rounds| rounds == 3).count();
    assert_eq!(cheap + dear, 100);
    assert!((29..=31).contains(&cheap), "{cheap} of 100");
}

//! The rounds that are counted are round trips: over a slow network they take that time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::client::{Client, Response};
use crate::common::cluster::Cluster;
use crate::common::{assert_round_trips, eventually, health};

const ONE_WAY: Duration = Duration::from_millis(50);
const SAMPLES: usize = 7;

fn times(mut request: impl FnMut(usize) -> Response) -> Vec<Duration> {
    let sample = |number| {
        let began = Instant::now();
        assert_eq!(request(number).status / 100, 2);
        began.elapsed()
    };
    (0..SAMPLES).map(sample).collect()
}

fn check(client: &mut Client, name: &str, reads: u32, writes: u32) {
    let body = [7; 1024];
    let put = times(|number| client.put("bucket", &format!("{name}{number}"), &body));
    let get = times(|number| client.get("bucket", &format!("{name}{number}")));
    let list = times(|_| client.list("bucket"));
    for (endpoint, took, rounds) in [
        ("put", put, writes),
        ("get", get, reads),
        ("list", list, reads),
    ] {
        assert_round_trips(&format!("{name}, {endpoint}"), &took, ONE_WAY, rounds);
    }
}

#[test]
fn leaderless_takes_one_round_trip() {
    let cluster = Cluster::start_far_apart(5, "leaderless", &[], ONE_WAY);
    cluster.client(0).create_bucket("bucket").expect(200);
    check(&mut cluster.client(2), "leaderless", 1, 1);
}

#[test]
fn leader_takes_a_round_trip_less_at_the_leader() {
    let cluster = Cluster::start_far_apart(3, "leader", &[], ONE_WAY);
    cluster.client(0).create_bucket("bucket").expect(200);
    check(&mut cluster.client(0), "at-the-leader", 0, 1);
    check(&mut cluster.client(1), "elsewhere", 1, 2);
}

#[test]
fn rounds_three_takes_three_round_trips() {
    let cluster = Cluster::start_far_apart(3, "rounds:3", &[], ONE_WAY);
    cluster.client(0).create_bucket("bucket").expect(200);
    check(&mut cluster.client(1), "rounds", 3, 3);
}

#[test]
fn a_listing_of_a_thousand_keys_fits_into_the_first_flight_of_every_connection() {
    let cluster = Cluster::start_far_apart(3, "leaderless", &[], Duration::ZERO);
    let mut client = cluster.client(0);
    client.create_bucket("bucket").expect(200);
    for number in 0..1000 {
        let key = format!("some-directory/and-a-long-key-{number:08}");
        client.put("bucket", &key, b"").expect(200);
    }
    eventually("the slowest replica holds all", || {
        (0..3).all(|node| health::objects(cluster.health(node)) == 1000)
    });
    let before = cluster.traffic.load(Ordering::Relaxed);
    let listing = client.list("bucket").expect(200);
    let moved = cluster.traffic.load(Ordering::Relaxed) - before;
    assert_eq!(listing.elements("Key").len(), 1000);
    // Ten segments (RFC 6928); beyond them a round trip more would be paid.
    assert!(moved < 14_600, "{moved} bytes went between the nodes");
}

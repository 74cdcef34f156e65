//! The rounds that are counted are round trips: over a slow network they take that time.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::client::{Client, Response};
use common::cluster::Cluster;
use common::network::measure_rtt;
use common::{eventually, health, median};

const ONE_WAY: Duration = Duration::from_millis(30);
const SAMPLES: usize = 9;
/// For five processes, twenty proxies and the test on one machine; a round trip is 60 ms.
const SLACK: Duration = Duration::from_millis(20);

fn time(mut request: impl FnMut(usize) -> Response) -> Duration {
    let sample = |number| {
        let began = Instant::now();
        assert_eq!(request(number).status / 100, 2);
        began.elapsed()
    };
    median((0..SAMPLES).map(sample).collect())
}

/// Compares medians with multiples of the round trip that the same proxies show.
fn check(client: &mut Client, name: &str, reads: u32, writes: u32) {
    let rtt = measure_rtt(ONE_WAY);
    let body = [7; 1024];
    let put = time(|number| client.put("bucket", &format!("{name}{number}"), &body));
    let get = time(|number| client.get("bucket", &format!("{name}{number}")));
    let list = time(|_| client.list("bucket"));
    for (endpoint, took, rounds) in [
        ("put", put, writes),
        ("get", get, reads),
        ("list", list, reads),
    ] {
        // Sleeping in the proxies is never too short, but may differ a little from the baseline.
        let least = (rtt * rounds).saturating_sub(Duration::from_millis(2));
        let fits = took >= least && took < rtt * rounds + SLACK;
        assert!(
            fits,
            "{name}, {endpoint}: {took:?}, and {rounds} round trips of {rtt:?} are claimed"
        );
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
    eventually(
        Duration::from_secs(20),
        "the slowest replica holds all",
        || (0..3).all(|node| health::objects(cluster.health(node)) == 1000),
    );
    let before = cluster.traffic.load(Ordering::Relaxed);
    let listing = client.list("bucket").expect(200);
    let moved = cluster.traffic.load(Ordering::Relaxed) - before;
    assert_eq!(listing.elements("Key").len(), 1000);
    // Ten segments (RFC 6928); beyond them a round trip more would be paid.
    assert!(moved < 14_600, "{moved} bytes went between the nodes");
}

/// Not a claim but a measurement: `cargo test --release --test latency -- --ignored --nocapture`.
/// Data lies in QUORUM_TEST_DIR: a tmpfs there leaves the disk out, a disk brings it in.
#[test]
#[ignore = "prints what the store itself costs, for an idle machine"]
fn what_the_store_adds() {
    let far = Duration::from_millis(50);
    for protocol in ["leaderless", "leader", "rounds:3"] {
        report(
            &Cluster::start(5, protocol, &[]),
            &format!("loopback  {protocol:10}"),
            500,
        );
    }
    println!("round trip over the proxies: {:.3?}", measure_rtt(far));
    for protocol in ["leaderless", "leader", "rounds:3"] {
        let cluster = Cluster::start_far_apart(5, protocol, &[], far);
        report(&cluster, &format!("far apart {protocol:10}"), 30);
    }
}

fn report(cluster: &Cluster, title: &str, samples: usize) {
    let mut client = cluster.client(1);
    client.create_bucket("bucket").expect(200);
    let body = [7; 1024];
    for (name, method, body) in [
        ("put", "PUT", &body[..]),
        ("get", "GET", &[]),
        ("head", "HEAD", &[]),
        ("delete", "DELETE", &[]),
    ] {
        let warm_up = samples / 5;
        let mut took = vec![];
        for number in 0..warm_up + samples {
            let path = format!("/bucket/k{number}");
            let request = client.signed(method, &path, "", &[], body);
            let began = Instant::now();
            let response = client.exchange(method, &request, body);
            took.push(began.elapsed());
            assert_eq!(response.status / 100, 2);
        }
        let mut took = took.split_off(warm_up);
        took.sort();
        let (middle, high) = (took[took.len() / 2], took[took.len() * 99 / 100]);
        println!("{title} {name:6} median {middle:>10.3?}  p99 {high:>10.3?}");
    }
}

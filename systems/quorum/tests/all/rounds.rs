//! The README's first table: how many sequential rounds an endpoint of S3 costs under a protocol, and
//! that these are round trips: over a slow network they take that time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::assert_round_trips;
use crate::common::client::{Client, Response};
use crate::common::cluster::Cluster;

type Send = fn(&mut Client, &str) -> Response;

const ONE_WAY: Duration = Duration::from_millis(50);

type Request = fn(&mut Client) -> Response;

/// Endpoints in an order in which each finds what it needs, and whether they write.
const ENDPOINTS: [(&str, bool, u16, Request); 10] = [
    ("CreateBucket", true, 200, |c| c.create_bucket()),
    ("HeadBucket", false, 200, |c| c.head_bucket()),
    ("ListBuckets", false, 200, |c| c.list_buckets()),
    ("PutObject", true, 200, |c| c.put("k", b"body")),
    ("GetObject", false, 200, |c| c.get("k")),
    ("HeadObject", false, 200, |c| c.head("k")),
    ("ListObjectsV2", false, 200, |c| c.list()),
    ("GetObject, absent", false, 404, |c| c.get("absent")),
    ("DeleteObject", true, 204, |c| c.delete("k")),
    ("DeleteBucket", true, 204, |c| c.delete_bucket()),
];

#[test]
fn each_endpoint_costs_the_rounds_of_the_table() {
    for (protocol, node, reads, writes, delete_bucket) in [
        ("leaderless", 0, 1, 1, 2),
        ("leaderless", 2, 1, 1, 2),
        ("leader", 0, 0, 1, 1),
        ("leader", 1, 1, 2, 2),
        ("rounds:1", 1, 1, 1, 2),
        ("rounds:3", 1, 3, 3, 4),
    ] {
        let cluster = Cluster::of(3, protocol, &[]);
        let mut client = cluster.client(node);
        for (endpoint, is_write, status, request) in ENDPOINTS {
            let rounds = request(&mut client).expect(status).rounds();
            let expected = match endpoint {
                "DeleteBucket" => delete_bucket,
                _ if is_write => writes,
                _ => reads,
            };
            assert_eq!(rounds, expected, "{protocol}, node {node}: {endpoint}");
            if endpoint == "CreateBucket" {
                // A majority acknowledges a bucket. A replica that has still to learn of it is told
                // by the next write, in a round more.
                client.put("first", b"").expect(200);
                cluster.hold(0..3, 1);
                client.delete("first").expect(204);
            }
        }
    }
}

#[test]
fn a_mixture_has_its_shares_and_each_response_says_which_it_was() {
    let cluster = Cluster::with_bucket(3, "mixture:30:1:3", &[]);
    let mut client = cluster.client(1);
    client.put("k", b"body").expect(200);
    let rounds = |_| client.get("k").expect(200).rounds();
    let counted: Vec<u32> = (0..100).map(rounds).collect();
    let of = |rounds| counted.iter().filter(|&&it| it == rounds).count();
    assert_eq!(of(1) + of(3), 100);
    assert!((29..=31).contains(&of(1)), "{} of 100", of(1));
}

#[test]
fn the_rounds_are_round_trips() {
    for (nodes, protocol, node, reads, writes) in [
        (5, "leaderless", 2, 1, 1),
        (3, "leader", 0, 0, 1),
        (3, "leader", 1, 1, 2),
        (3, "rounds:3", 1, 3, 3),
    ] {
        let cluster = Cluster::far_apart(nodes, protocol, &[], ONE_WAY);
        let mut client = cluster.client(node);
        client.create_bucket().expect(200);
        let requests: [(&str, u32, Send); 3] = [
            ("put", writes, |client, key| client.put(key, &[7; 1024])),
            ("get", reads, |client, key| client.get(key)),
            ("list", reads, |client, _| client.list()),
        ];
        for (endpoint, rounds, request) in requests {
            let name = format!("{protocol}, node {node}: {endpoint}");
            assert_round_trips(&name, ONE_WAY, rounds, |number| {
                request(&mut client, &format!("k{number}")).expect(200);
            });
        }
    }
}

#[test]
fn a_listing_of_a_thousand_keys_fits_into_the_first_flight_of_every_connection() {
    let cluster = Cluster::far_apart(3, "leaderless", &[], Duration::ZERO);
    let mut client = cluster.client(0);
    client.create_bucket().expect(200);
    for number in 0..1000 {
        let key = format!("some-directory/and-a-long-key-{number:08}");
        client.put(&key, b"").expect(200);
    }
    cluster.hold(0..3, 1000);
    let before = cluster.traffic.load(Ordering::Relaxed);
    let listing = client.list().expect(200);
    let moved = cluster.traffic.load(Ordering::Relaxed) - before;
    assert_eq!(listing.elements("Key").len(), 1000);
    // Ten segments (RFC 6928); beyond them a round trip more would be paid.
    assert!(moved < 14_600, "{moved} bytes went between the nodes");
}

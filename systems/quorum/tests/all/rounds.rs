//! The table of the README: how many sequential rounds an endpoint costs under a protocol.

use crate::common::client::Client;
use crate::common::cluster::Cluster;
use crate::common::{eventually, health};

type Request = fn(&mut Client) -> crate::common::client::Response;

/// Endpoints in an order in which each finds what it needs.
const ENDPOINTS: [(&str, u16, Request); 11] = [
    ("CreateBucket", 200, |c| c.create_bucket("bucket")),
    ("HeadBucket", 200, |c| c.head_bucket("bucket")),
    ("ListBuckets", 200, |c| c.list_buckets()),
    ("PutObject", 200, |c| c.put("bucket", "k", b"body")),
    ("GetObject", 200, |c| c.get("bucket", "k")),
    ("HeadObject", 200, |c| c.head("bucket", "k")),
    ("ListObjectsV2", 200, |c| c.list("bucket")),
    ("ListObjects", 200, |c| c.send("GET", "/bucket", "", b"")),
    ("GetObject, absent", 404, |c| c.get("bucket", "absent")),
    ("DeleteObject", 204, |c| c.delete("bucket", "k")),
    ("DeleteBucket", 204, |c| c.delete_bucket("bucket")),
];

fn is_write(endpoint: &str) -> bool {
    ["CreateBucket", "PutObject", "DeleteObject", "DeleteBucket"].contains(&endpoint)
}

fn check(protocol: &str, node: usize, expected: impl Fn(&str) -> u32) {
    let cluster = Cluster::start(3, protocol, &[]);
    let mut client = cluster.client(node);
    for (endpoint, status, request) in ENDPOINTS {
        let response = request(&mut client).expect(status);
        assert_eq!(
            response.rounds(),
            expected(endpoint),
            "{protocol}, node {node}: {endpoint}"
        );
        if endpoint == "CreateBucket" {
            until_nobody_missed_it(&cluster, &mut client);
        }
    }
}

/// A majority acknowledges a bucket. A replica that has still to learn of it is told by the next
/// write, in a round more.
fn until_nobody_missed_it(cluster: &Cluster, client: &mut Client) {
    client.put("bucket", "first", b"").expect(200);
    for node in 0..3 {
        eventually("a replica has the object, so the bucket", || {
            health::objects(cluster.health(node)) == 1
        });
    }
    client.delete("bucket", "first").expect(204);
}

#[test]
fn leaderless_costs_one_round_and_two_to_delete_a_bucket() {
    for node in 0..3 {
        check("leaderless", node, |endpoint| match endpoint {
            "DeleteBucket" => 2,
            _ => 1,
        });
    }
}

#[test]
fn at_the_leader_a_write_costs_one_round_and_a_read_none() {
    check("leader", 0, |endpoint| u32::from(is_write(endpoint)));
}

#[test]
fn elsewhere_the_way_to_the_leader_comes_on_top() {
    for node in [1, 2] {
        check("leader", node, |endpoint| 1 + u32::from(is_write(endpoint)));
    }
}

#[test]
fn rounds_k_costs_k_and_one_more_to_delete_a_bucket() {
    for k in [1, 3] {
        check(&format!("rounds:{k}"), 1, |endpoint| match endpoint {
            "DeleteBucket" => k + 1,
            _ => k,
        });
    }
}

//! A majority serves; less than that refuses, and says so in time.

use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::{LONG_TIMEOUT, assert_nobody_waited, eventually};

#[test]
fn with_a_minority_killed_every_survivor_reads_and_writes() {
    for protocol in ["leaderless", "leader", "rounds:2"] {
        let mut cluster = Cluster::with_bucket(5, protocol, &[]);
        cluster.client(0).put("before", b"1").expect(200);
        // The leader is the first, and is never replaced.
        cluster.kill(3);
        cluster.kill(4);
        for node in 0..3 {
            let mut client = cluster.client(node);
            client.get("before").expect(200);
            let key = format!("from-{node}");
            client.put(&key, b"2").expect(200);
            client.get(&key).expect(200);
            client.delete(&key).expect(204);
            client.list().expect(200);
        }
    }
}

#[test]
fn a_minority_that_hangs_costs_nothing() {
    let cluster = Cluster::with_bucket(5, "leaderless", &LONG_TIMEOUT);
    let mut client = cluster.client(0);
    cluster.stop(1);
    cluster.stop(2);
    let began = Instant::now();
    for number in 0..20 {
        client.put(&format!("k{number}"), b"body").expect(200);
        client.get(&format!("k{number}")).expect(200);
    }
    assert_nobody_waited(began);
}

#[test]
fn with_a_majority_killed_nothing_is_acknowledged_and_nothing_changed() {
    let mut cluster = Cluster::with_bucket(3, "leaderless", &LONG_TIMEOUT);
    cluster.client(0).put("k", b"old").expect(200);
    cluster.kill(1);
    cluster.kill(2);
    cluster.reaches(0, 0);
    let began = Instant::now();
    let mut client = cluster.client(0);
    let said = client.put("k", b"new").expect(503).text();
    assert!(said.contains("nothing was changed"), "{said}");
    client.get("k").expect(503);
    client.list().expect(503);
    client.delete("k").expect(503);
    assert_nobody_waited(began);
    let _not_ready_without_the_third = cluster.spawn(1);
    let whole = || cluster.client(0).get("k").status == 200;
    eventually("a majority is back", whole);
    assert_eq!(cluster.read(0, "k"), "old");
}

#[test]
fn with_a_majority_that_hangs_the_refusal_comes_within_the_timeout() {
    let timeout = Duration::from_millis(700);
    let default = Duration::from_secs(5);
    let cluster = Cluster::with_bucket(3, "leaderless", &["--peer-timeout-ms", "700"]);
    cluster.stop(1);
    cluster.stop(2);
    for method in ["PUT", "GET"] {
        let began = Instant::now();
        let refused = cluster.client(0).send(method, "/bucket/k", &[], b"");
        let took = began.elapsed();
        assert!(took >= timeout && took < default, "{method}: {took:?}");
        let said = refused.expect(503).text();
        let uncertain = said.contains("may or may not be kept");
        assert_eq!(uncertain, method == "PUT", "{said}");
    }
}

#[test]
fn without_its_leader_a_cluster_refuses_at_once() {
    let options = [&LONG_TIMEOUT[..], &["--leader", "n1"]].concat();
    let mut cluster = Cluster::with_bucket(3, "leader", &options);
    cluster.kill(1);
    cluster.reaches(0, 1);
    let began = Instant::now();
    cluster.client(0).put("k", b"body").expect(503);
    cluster.client(2).get("k").expect(503);
    assert_nobody_waited(began);
    cluster.start([1]);
    let again = || cluster.client(0).put("k", b"body").status == 200;
    eventually("the leader is back", again);
}

#[test]
fn ready_is_printed_only_when_all_peers_are_reached_but_requests_are_served_before() {
    let mut cluster = Cluster::unstarted(3, "leaderless", &[]);
    let first = cluster.spawn(0);
    let second = cluster.spawn(1);
    cluster.reaches(0, 1);
    cluster.client(0).create_bucket().expect(200);
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
    cluster.start([2]);
    cluster.wait(&first);
    cluster.wait(&second);
    cluster.client(2).put("k", b"body").expect(200);
}

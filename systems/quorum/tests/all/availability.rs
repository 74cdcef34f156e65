//! A majority serves; less than that refuses, and says so in time.

use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::{LONG_TIMEOUT, PATIENCE, assert_nobody_waited, eventually, health};

#[test]
fn with_a_minority_killed_every_survivor_reads_and_writes() {
    for protocol in ["leaderless", "leader", "rounds:2"] {
        let mut cluster = Cluster::start(5, protocol, &[]);
        cluster.client(0).create_bucket("bucket").expect(200);
        cluster.client(0).put("bucket", "before", b"1").expect(200);
        // The leader is the first, and is never replaced.
        cluster.kill(3);
        cluster.kill(4);
        for node in 0..3 {
            let mut client = cluster.client(node);
            client.get("bucket", "before").expect(200);
            let key = format!("from-{node}");
            client.put("bucket", &key, b"2").expect(200);
            client.get("bucket", &key).expect(200);
            client.delete("bucket", &key).expect(204);
            client.list("bucket").expect(200);
        }
    }
}

#[test]
fn a_minority_that_hangs_costs_nothing() {
    let cluster = Cluster::start(5, "leaderless", &LONG_TIMEOUT);
    let mut client = cluster.client(0);
    client.create_bucket("bucket").expect(200);
    cluster.stop(1);
    cluster.stop(2);
    let began = Instant::now();
    for number in 0..20 {
        client
            .put("bucket", &format!("k{number}"), b"body")
            .expect(200);
        client.get("bucket", &format!("k{number}")).expect(200);
    }
    assert_nobody_waited(began);
}

#[test]
fn with_a_majority_killed_nothing_is_acknowledged_and_nothing_changed() {
    let mut cluster = Cluster::start(3, "leaderless", &LONG_TIMEOUT);
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster.client(0).put("bucket", "k", b"old").expect(200);
    cluster.kill(1);
    cluster.kill(2);
    let alone = || health::number(cluster.health(0), "peers_connected") == 0;
    eventually("the survivor notices", alone);
    let began = Instant::now();
    let mut client = cluster.client(0);
    let refused = client.put("bucket", "k", b"new").expect(503);
    assert!(
        refused.text().contains("nothing was changed"),
        "{}",
        refused.text()
    );
    client.get("bucket", "k").expect(503);
    client.list("bucket").expect(503);
    client.delete("bucket", "k").expect(503);
    assert_nobody_waited(began);
    let _not_ready_without_the_third = cluster.spawn(1);
    let whole = || cluster.client(0).get("bucket", "k").status == 200;
    eventually("a majority is back", whole);
    assert_eq!(
        cluster.client(0).get("bucket", "k").expect(200).text(),
        "old"
    );
}

#[test]
fn with_a_majority_that_hangs_the_refusal_comes_within_the_timeout() {
    let timeout = Duration::from_millis(700);
    let default = Duration::from_secs(5);
    let cluster = Cluster::start(3, "leaderless", &["--peer-timeout-ms", "700"]);
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster.stop(1);
    cluster.stop(2);
    for method in ["PUT", "GET"] {
        let began = Instant::now();
        let refused = cluster
            .client(0)
            .send(method, "/bucket/k", "", b"")
            .expect(503);
        let took = began.elapsed();
        assert!(took >= timeout && took < default, "{method}: {took:?}");
        let uncertain = refused.text().contains("may or may not be kept");
        assert_eq!(uncertain, method == "PUT", "{}", refused.text());
    }
}

#[test]
fn without_its_leader_a_cluster_refuses_at_once() {
    let options = [&LONG_TIMEOUT[..], &["--leader", "n1"]].concat();
    let mut cluster = Cluster::start(3, "leader", &options);
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster.kill(1);
    let noticed = || health::number(cluster.health(0), "peers_connected") == 1;
    eventually("the others notice", noticed);
    let began = Instant::now();
    cluster.client(0).put("bucket", "k", b"body").expect(503);
    cluster.client(2).get("bucket", "k").expect(503);
    assert_nobody_waited(began);
    cluster.start_node(1);
    let again = || cluster.client(0).put("bucket", "k", b"body").status == 200;
    eventually("the leader is back", again);
}

#[test]
fn ready_is_printed_only_when_all_peers_are_reached_but_requests_are_served_before() {
    let mut cluster = Cluster::unstarted(3, "leaderless", &[]);
    let first = cluster.spawn(0);
    let second = cluster.spawn(1);
    let one_peer = || {
        std::net::TcpStream::connect(cluster.health(0)).is_ok()
            && health::number(cluster.health(0), "peers_connected") == 1
    };
    eventually("two of three are up", one_peer);
    cluster.client(0).create_bucket("bucket").expect(200);
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
    cluster.start_node(2);
    for ready in [first, second] {
        assert_eq!(ready.recv_timeout(PATIENCE).as_deref(), Ok("ready\n"));
    }
    cluster.client(2).put("bucket", "k", b"body").expect(200);
}

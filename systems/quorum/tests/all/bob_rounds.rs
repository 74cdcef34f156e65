//! Bob's part of the README's table: how many sequential rounds a request costs, by whether the
//! node that is asked holds a replica, and that they are round trips.

use std::time::{Duration, Instant};

use crate::common::bob::{Bob, Reply};
use crate::common::cluster::Cluster;
use crate::common::network::delaying_proxy;
use crate::common::{assert_round_trips, eventually, health};

/// The even keys on n0, n1 and n2, the odd ones on n2, n3 and n4.
const VDISKS: [&str; 4] = ["--vdisk", "n0,n1,n2", "--vdisk", "n2,n3,n4"];
const EVEN: u64 = 20;
const ODD: u64 = 21;
const HERE: usize = 0;
const ELSEWHERE: usize = 4;
const ONE_WAY: Duration = Duration::from_millis(50);
const SAMPLES: usize = 7;

fn cluster(options: &[&str]) -> Cluster {
    Cluster::start(5, "leaderless", &[&VDISKS, options].concat())
}

/// Puts a blob, and waits until all its replicas hold it.
fn prepare(cluster: &Cluster, number: u64) {
    let held = |cluster: &Cluster| -> u64 {
        let nodes = 0..5;
        nodes
            .map(|node| health::objects(cluster.health(node)))
            .sum()
    };
    let before = held(cluster);
    cluster.bob(HERE).put(number, b"blob").expect();
    let spread = || held(cluster) == before + 3;
    eventually("all replicas hold it", spread);
}

#[track_caller]
fn costs<T>(reply: Reply<T>, rounds: u32) -> T {
    assert_eq!(reply.rounds(), rounds);
    reply.expect()
}

#[test]
fn a_write_costs_one_round_wherever_it_enters() {
    let cluster = cluster(&[]);
    for node in [HERE, ELSEWHERE] {
        let mut bob = cluster.bob(node);
        costs(bob.put(EVEN, b"blob"), 1);
        costs(bob.put(EVEN, b"again"), 1);
        costs(bob.delete(EVEN), 1);
        costs(bob.delete(EVEN), 1);
    }
}

#[test]
fn a_read_costs_nothing_at_a_replica_and_one_round_elsewhere() {
    let cluster = cluster(&[]);
    prepare(&cluster, EVEN);
    for (node, rounds) in [(HERE, 0), (1, 0), (2, 0), (3, 1), (ELSEWHERE, 1)] {
        let mut bob = cluster.bob(node);
        assert_eq!(costs(bob.get(EVEN), rounds).data, "blob");
        assert_eq!(costs(bob.exist(&[EVEN]), rounds).exist, [true]);
    }
}

#[test]
fn to_find_nothing_costs_one_round_everywhere() {
    let cluster = cluster(&[]);
    for node in [HERE, ELSEWHERE] {
        let mut bob = cluster.bob(node);
        let absent = bob.get(EVEN);
        assert_eq!(absent.rounds(), 1);
        absent.refused(tonic::Code::NotFound);
        assert_eq!(costs(bob.exist(&[EVEN]), 1).exist, [false]);
    }
}

#[test]
fn the_keys_of_one_exist_share_their_round() {
    let cluster = cluster(&[]);
    prepare(&cluster, EVEN);
    prepare(&cluster, ODD);
    let mut bob = cluster.bob(HERE);
    let both = costs(bob.exist(&[ODD, EVEN, ODD + 2, EVEN]), 1);
    assert_eq!(both.exist, [true, true, false, true]);
    let own = costs(bob.exist(&[EVEN, EVEN]), 0);
    assert_eq!(own.exist, [true, true]);
    let none = costs(bob.exist(&[]), 0);
    assert!(none.exist.is_empty());
}

#[test]
fn a_ping_costs_nothing() {
    let cluster = cluster(&[]);
    costs(cluster.bob(HERE).ping(), 0);
}

#[test]
fn where_one_acknowledgement_is_enough_the_nodes_own_is_waited_for() {
    let cluster = cluster(&["--bob-quorum", "1"]);
    costs(cluster.bob(HERE).put(EVEN, b"blob"), 0);
    costs(cluster.bob(HERE).delete(EVEN), 0);
    costs(cluster.bob(ELSEWHERE).put(EVEN, b"blob"), 1);
}

#[test]
fn the_protocol_of_s3_plays_no_part() {
    for protocol in ["leader", "rounds:3"] {
        let cluster = Cluster::start(5, protocol, &VDISKS);
        prepare(&cluster, ODD);
        costs(cluster.bob(HERE).put(EVEN, b"blob"), 1);
        costs(cluster.bob(HERE).get(ODD), 1);
        costs(cluster.bob(ELSEWHERE).get(ODD), 0);
    }
}

#[test]
fn the_rounds_are_round_trips() {
    let cluster = Cluster::start_far_apart(5, "leaderless", &VDISKS, ONE_WAY);
    for (node, gets) in [(HERE, 0), (ELSEWHERE, 1)] {
        let mut bob = cluster.bob(node);
        let even = |place: usize| 100 * (node as u64 + 1) + 2 * place as u64;
        let blob = [7; 1024];
        check(
            &mut bob,
            "Put",
            |bob, place| bob.put(even(place), &blob).expect(),
            1,
        );
        let last = even(SAMPLES - 1);
        let spread = || cluster.bob(HERE).get(last).rounds() == 0;
        eventually("the first replica has all", spread);
        check(
            &mut bob,
            "Get",
            |bob, place| bob.get(even(place)).expect(),
            gets,
        );
        let one = |bob: &mut Bob, place| bob.exist(&[even(place)]).expect();
        check(&mut bob, "Exist", one, gets);
        let many = |bob: &mut Bob, place| bob.exist(&[even(place), ODD, EVEN]).expect();
        check(&mut bob, "Exist of three", many, 1);
        check(
            &mut bob,
            "Delete",
            |bob, place| bob.delete(even(place)).expect(),
            1,
        );
        check(&mut bob, "Ping", |bob, _| bob.ping().expect(), 0);
    }
}

/// The proxy takes in all that it is sent, so that nothing but flow control can cost round trips.
#[test]
fn a_large_blob_is_not_held_up_by_flow_control() {
    let cluster = Cluster::start(1, "leaderless", &["--vdisk", "n0"]);
    let traffic = cluster.traffic.clone();
    let far = delaying_proxy(cluster.bob_address(0), ONE_WAY, traffic);
    let blob = vec![7; 50 << 20];
    let mut bob = Bob::new(far);
    bob.ping().expect();
    let began = Instant::now();
    bob.put(0, &blob).expect();
    let took = began.elapsed();
    // One round trip is the request's own. Windows of HTTP/2's default size would cost 800.
    assert!(took >= 2 * ONE_WAY && took < 400 * ONE_WAY, "{took:?}");
}

fn check<T>(bob: &mut Bob, name: &str, request: impl Fn(&mut Bob, usize) -> T, rounds: u32) {
    let sample = |place| {
        let began = Instant::now();
        request(bob, place);
        began.elapsed()
    };
    let took: Vec<Duration> = (0..SAMPLES).map(sample).collect();
    assert_round_trips(name, &took, ONE_WAY, rounds);
}

//! Bob's part of the README's table: how many sequential rounds a request costs, by whether the
//! node that is asked holds a replica, and that they are round trips.

mod common;

use std::time::{Duration, Instant};

use common::bob::{Bob, Reply};
use common::cluster::Cluster;
use common::network::{delaying_proxy, measure_rtt};
use common::{eventually, health, median};

/// The even keys on n0, n1 and n2, the odd ones on n2, n3 and n4.
const VDISKS: [&str; 4] = ["--vdisk", "n0,n1,n2", "--vdisk", "n2,n3,n4"];
const EVEN: u64 = 20;
const ODD: u64 = 21;
const HERE: usize = 0;
const ELSEWHERE: usize = 4;
const ONE_WAY: Duration = Duration::from_millis(30);
/// As in latency.rs.
const SLACK: Duration = Duration::from_millis(20);

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
    eventually(Duration::from_secs(5), "all replicas hold it", spread);
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
    let rtt = measure_rtt(ONE_WAY);
    for (node, gets) in [(HERE, 0), (ELSEWHERE, 1)] {
        let mut bob = cluster.bob(node);
        let even = |place: usize| 100 * (node as u64 + 1) + 2 * place as u64;
        let blob = [7; 1024];
        check(
            &mut bob,
            "Put",
            rtt,
            |bob, place| bob.put(even(place), &blob).expect(),
            1,
        );
        let last = even(SAMPLES - 1);
        let spread = || cluster.bob(HERE).get(last).rounds() == 0;
        eventually(Duration::from_secs(5), "the first replica has all", spread);
        check(
            &mut bob,
            "Get",
            rtt,
            |bob, place| bob.get(even(place)).expect(),
            gets,
        );
        let one = |bob: &mut Bob, place| bob.exist(&[even(place)]).expect();
        check(&mut bob, "Exist", rtt, one, gets);
        let many = |bob: &mut Bob, place| bob.exist(&[even(place), ODD, EVEN]).expect();
        check(&mut bob, "Exist of three", rtt, many, 1);
        check(
            &mut bob,
            "Delete",
            rtt,
            |bob, place| bob.delete(even(place)).expect(),
            1,
        );
        check(&mut bob, "Ping", rtt, |bob, _| bob.ping().expect(), 0);
    }
}

/// The proxy takes in all that it is sent, so that nothing but flow control can cost round trips.
#[test]
fn a_large_blob_is_not_held_up_by_flow_control() {
    let cluster = Cluster::start(1, "leaderless", &["--vdisk", "n0"]);
    let traffic = cluster.traffic.clone();
    let far = delaying_proxy(cluster.bob_address(0), ONE_WAY, traffic);
    let blob = vec![7; 50 << 20];
    let time = |bob: &mut Bob| {
        bob.ping().expect();
        let put = |_| {
            let began = Instant::now();
            bob.put(0, &blob).expect();
            began.elapsed()
        };
        // The least of several: each leaves less of the window for the next.
        (0..3).map(put).min().unwrap()
    };
    let near = time(&mut cluster.bob(0));
    let far = time(&mut Bob::new(far));
    // One round trip is the request's own. Windows of HTTP/2's default size would cost 800.
    assert!(
        far < near * 3 + 4 * 2 * ONE_WAY,
        "{far:?}, and {near:?} nearby"
    );
}

const SAMPLES: usize = 9;

fn check<T>(
    bob: &mut Bob,
    name: &str,
    rtt: Duration,
    request: impl Fn(&mut Bob, usize) -> T,
    rounds: u32,
) {
    let sample = |place| {
        let began = Instant::now();
        request(bob, place);
        began.elapsed()
    };
    let took = median((0..SAMPLES).map(sample).collect());
    // Less than the proxies hold it cannot be; more than was measured it can, on a busy machine.
    let fits = took >= 2 * ONE_WAY * rounds && took < rtt * rounds + SLACK;
    assert!(
        fits,
        "{name}: {took:?}, and {rounds} round trips of {rtt:?} are claimed"
    );
}

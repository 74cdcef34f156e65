//! Bob's part of the README's table: how many sequential rounds a request costs, by whether the
//! target node holds a replica, and that they are round trips.

use std::time::{Duration, Instant};

use wanlat_proto::bob_storage::Null;

use crate::common::bob::{Bob, EVEN, NODES, Reply, VDISKS, cluster};
use crate::common::cluster::Cluster;
use crate::common::network::delaying_proxy;
use crate::common::{SAMPLES, assert_round_trips};

const ODD: u64 = 21;
const HERE: usize = 0;
const ELSEWHERE: usize = 4;
const ONE_WAY: Duration = Duration::from_millis(50);

#[track_caller]
fn costs<T>(reply: Reply<T>, rounds: u32) -> T {
    assert_eq!(reply.rounds(), rounds);
    reply.expect()
}

#[test]
fn requests_cost_the_rounds_of_the_table() {
    let cluster = cluster(&[]);
    cluster.bob(HERE).put(EVEN, b"blob").expect();
    cluster.bob(HERE).put(ODD, b"blob").expect();
    cluster.hold([0, 1, 3, 4], 1);
    cluster.hold([2], 2);
    for (node, rounds) in [(HERE, 0), (1, 0), (2, 0), (3, 1), (ELSEWHERE, 1)] {
        let mut bob = cluster.bob(node);
        assert_eq!(costs(bob.get(EVEN), rounds).data, "blob");
        assert_eq!(costs(bob.exist(&[EVEN, EVEN]), rounds).exist, [true, true]);
        let absent = bob.get(EVEN + 2);
        assert_eq!(absent.rounds(), 1);
        absent.refused(tonic::Code::NotFound);
        assert_eq!(costs(bob.exist(&[EVEN + 2]), 1).exist, [false]);
        // The keys of one Exist share their round.
        let all = costs(bob.exist(&[ODD, EVEN, ODD + 2, EVEN]), 1);
        assert_eq!(all.exist, [true, true, false, true]);
        assert!(costs(bob.exist(&[]), 0).exist.is_empty());
        costs(bob.ping(), 0);
    }
    for node in [HERE, ELSEWHERE] {
        let mut bob = cluster.bob(node);
        costs(bob.put(EVEN, b"again"), 1);
        costs(bob.delete(EVEN), 1);
        costs(bob.delete(EVEN), 1);
    }
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
        let cluster = Cluster::of(NODES, protocol, &VDISKS);
        costs(cluster.bob(HERE).put(ODD, b"blob"), 1);
        cluster.hold([2, 3, 4], 1);
        costs(cluster.bob(HERE).get(ODD), 1);
        costs(cluster.bob(ELSEWHERE).get(ODD), 0);
    }
}

#[test]
fn the_rounds_are_round_trips() {
    let cluster = Cluster::far_apart(NODES, "leaderless", &VDISKS, ONE_WAY);
    for (node, gets) in [(HERE, 0), (ELSEWHERE, 1)] {
        let even = |place: usize| 100 * (node as u64 + 1) + 2 * place as u64;
        let mut bob = cluster.bob(node);
        let mut check = |name, rounds, request: &dyn Fn(&mut Bob, u64)| {
            let one = |place| request(&mut bob, even(place));
            assert_round_trips(name, ONE_WAY, rounds, one);
        };
        check("Put", 1, &|bob, key| {
            drop(bob.put(key, &[7; 1024]).expect())
        });
        cluster.hold([HERE], SAMPLES as u64);
        check("Get", gets, &|bob, key| drop(bob.get(key).expect()));
        check("Exist", gets, &|bob, key| drop(bob.exist(&[key]).expect()));
        let three = |bob: &mut Bob, key| drop(bob.exist(&[key, ODD, EVEN]).expect());
        check("Exist of three", 1, &three);
        check("Delete", 1, &|bob, key| drop(bob.delete(key).expect()));
        check("Ping", 0, &|bob, _| {
            assert_eq!(bob.ping().expect(), Null {})
        });
        cluster.hold([HERE], 0);
    }
}

/// The proxy takes in all that it is sent, so that nothing but flow control can cost round trips.
#[test]
fn a_large_blob_is_not_held_up_by_flow_control() {
    let cluster = Cluster::of(1, "leaderless", &["--vdisk", "n0"]);
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

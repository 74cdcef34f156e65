//! Bob's API while nodes are away, and after they were.

use std::time::{Duration, Instant};

use crate::common::bob::{EVEN, NODES, cluster};
use crate::common::cluster::Cluster;
use crate::common::{LONG_TIMEOUT, assert_nobody_waited, eventually};
use tonic::Code;

#[test]
fn with_one_replica_down_the_others_serve() {
    let mut cluster = cluster(&[]);
    cluster.bob(0).put(EVEN, b"before").expect();
    cluster.hold([0, 1, 2], 1);
    cluster.kill(1);
    for node in [0, 2, 3, 4] {
        let mut bob = cluster.bob(node);
        assert_eq!(bob.get(EVEN).expect().data, "before");
        let number = EVEN + 2 + 2 * node as u64;
        bob.get(number).refused(Code::NotFound);
        bob.put(number, b"during").expect();
        assert_eq!(bob.get(number).expect().data, "during");
        bob.delete(number).expect();
    }
}

#[test]
fn a_replica_that_missed_a_blob_asks_the_others_for_it() {
    let mut cluster = cluster(&[]);
    cluster.kill(1);
    cluster.bob(0).put(EVEN, b"missed").expect();
    cluster.hold([0, 2], 1);
    // The one that would tell it.
    cluster.kill(0);
    let _not_ready_without_that_one = cluster.spawn(1);
    cluster.reaches(1, 3);
    let mut bob = cluster.bob(1);
    let read = bob.get(EVEN);
    assert_eq!(read.rounds(), 1);
    assert_eq!(read.expect().data, "missed");
    assert_eq!(bob.exist(&[EVEN]).expect().exist, [true]);
}

#[test]
fn a_replica_that_was_away_is_told_what_it_missed_by_the_node_that_was_asked() {
    let mut cluster = cluster(&[]);
    cluster.bob(0).put(EVEN, b"removed").expect();
    cluster.bob(0).put(EVEN + 2, b"replaced").expect();
    cluster.hold([0, 1, 2], 2);
    cluster.kill(1);
    cluster.bob(0).delete(EVEN).expect();
    cluster.bob(3).put(EVEN + 2, b"new").expect();
    cluster.bob(3).put(EVEN + 4, b"first").expect();
    cluster.start([1]);
    let here = |cluster: &Cluster, number| {
        let read = cluster.bob(1).get(number);
        (read.rounds() == 0).then(|| read.expect().data)
    };
    eventually("it has what it missed", || {
        here(&cluster, EVEN).is_none()
            && here(&cluster, EVEN + 2).is_some_and(|data| data == "new")
            && here(&cluster, EVEN + 4).is_some_and(|data| data == "first")
    });
    cluster.bob(1).get(EVEN).refused(Code::NotFound);
}

#[test]
fn a_replica_that_removed_a_blob_does_not_take_an_older_one_from_another() {
    let mut cluster = cluster(&[]);
    cluster.bob(0).put(EVEN, b"old").expect();
    cluster.hold([0, 1, 2], 1);
    cluster.kill(1);
    cluster.bob(0).delete(EVEN).expect();
    cluster.hold([0, 2], 0);
    cluster.start([1]);
    // n1 has the old blob, and is asked.
    for node in [0, 2] {
        let mut bob = cluster.bob(node);
        bob.get(EVEN).refused(Code::NotFound);
        assert_eq!(bob.exist(&[EVEN]).expect().exist, [false]);
    }
    // And a blob that is newer than the tombstone is taken.
    cluster.kill(0);
    cluster.bob(2).put(EVEN, b"new").expect();
    cluster.start([0]);
    assert_eq!(cluster.bob(0).get(EVEN).expect().data, "new");
}

#[test]
fn without_a_quorum_of_replicas_nothing_is_written_and_nothing_denied() {
    let mut cluster = cluster(&LONG_TIMEOUT);
    cluster.bob(0).put(EVEN, b"blob").expect();
    cluster.hold([0, 1, 2], 1);
    cluster.kill(0);
    cluster.kill(1);
    cluster.reaches(3, 2);
    cluster.reaches(2, 2);
    let began = Instant::now();
    for node in [2, 3] {
        let mut bob = cluster.bob(node);
        for refused in [
            bob.put(EVEN, b"new").refused(Code::Unavailable),
            bob.delete(EVEN).refused(Code::Unavailable),
        ] {
            let says = "1 of 3 nodes can be reached, 2 are needed; nothing was changed";
            assert_eq!(refused, says);
        }
        // One is enough to find a blob, not to deny one.
        assert_eq!(bob.get(EVEN).expect().data, "blob");
        assert_eq!(bob.exist(&[EVEN]).expect().exist, [true]);
        let says = bob.get(EVEN + 2).refused(Code::Unavailable);
        assert!(
            says.contains("1 of 3 nodes answered, 2 are needed"),
            "{says}"
        );
        bob.exist(&[EVEN, EVEN + 2]).refused(Code::Unavailable);
        // The other vdisk has lost nothing.
        bob.put(EVEN + 1, b"odd").expect();
        bob.ping().expect();
    }
    assert_nobody_waited(began);
}

#[test]
fn with_replicas_that_hang_a_write_ends_in_doubt_and_a_read_without_harm() {
    let timeout = Duration::from_millis(700);
    let default = Duration::from_secs(5);
    let cluster = cluster(&["--peer-timeout-ms", "700"]);
    cluster.stop(1);
    cluster.stop(2);
    for (node, write) in [(0, true), (0, false), (3, true), (3, false)] {
        let mut bob = cluster.bob(node);
        let began = Instant::now();
        if write {
            let says = bob.put(EVEN, b"blob").refused(Code::DeadlineExceeded);
            assert!(says.contains("may or may not be kept"), "{says}");
        } else {
            // No node that answers holds it, and those that hang may.
            let says = bob.get(EVEN + 2).refused(Code::Unavailable);
            assert!(says.contains("nothing was changed"), "{says}");
        }
        let took = began.elapsed();
        assert!(took >= timeout && took < default, "{took:?}");
    }
}

#[test]
fn puts_of_one_key_at_once_leave_all_replicas_with_the_same_blob() {
    let mut cluster = cluster(&[]);
    std::thread::scope(|scope| {
        for node in 0..NODES {
            let cluster = &cluster;
            scope.spawn(move || {
                let mut bob = cluster.bob(node);
                for number in 0..40 {
                    let data = format!("blob {number} of node {node}");
                    bob.put(EVEN, data.as_bytes()).expect();
                }
            });
        }
    });
    // Each replica is read from its own disk alone.
    let here = |node: usize| {
        let read = cluster.bob(node).get(EVEN);
        assert_eq!(read.rounds(), 0);
        read.expect().data
    };
    let agree = || here(0) == here(1) && here(1) == here(2);
    eventually("the replicas agree", agree);
    let last = here(0);
    assert!(last.starts_with(b"blob 39 of node"), "{last:?}");
    cluster.restart(0..NODES);
    for node in 0..NODES {
        assert_eq!(cluster.bob(node).get(EVEN).expect().data, last);
    }
}

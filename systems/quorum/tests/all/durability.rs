//! What was acknowledged is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::{LONG_TIMEOUT, assert_nobody_waited, eventually};

const PROTOCOLS: [&str; 3] = ["leaderless", "leader", "rounds:2"];

#[test]
fn everything_acknowledged_survives_kill_nine_of_all_nodes() {
    for protocol in PROTOCOLS {
        let options = ["--vdisk", "n0,n1,n2", "--bob-quorum", "3"];
        let mut cluster = Cluster::with_bucket(3, protocol, &options);
        let (mut client, mut bob) = (cluster.client(1), cluster.bob(2));
        for number in 0..50 {
            let key = format!("k{number}");
            client.put(&key, key.as_bytes()).expect(200);
            bob.put(number, key.as_bytes()).expect();
        }
        client.delete("k7").expect(204);
        bob.delete(7).expect();
        cluster.restart(0..3);
        for node in 0..3 {
            let (mut client, mut bob) = (cluster.client(node), cluster.bob(node));
            for number in (0..50).filter(|&number| number != 7) {
                let key = format!("k{number}");
                assert_eq!(client.get(&key).expect(200).text(), key, "{protocol}");
                assert_eq!(bob.get(number).expect().data, key);
            }
            client.get("k7").expect(404);
            bob.get(7).refused(tonic::Code::NotFound);
            assert_eq!(client.list().expect(200).elements("Key").len(), 49);
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_while_nodes_are_killed_at_any_moment() {
    let mut cluster = Cluster::with_bucket(3, "leaderless", &[]);
    let mut client = cluster.client(0);
    let stop = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let keys = (0..).map(|number| format!("k{number}"));
            let keys = keys.take_while(|_| !stop.load(Ordering::Relaxed));
            let put = |key: &String| client.put(key, key.as_bytes()).status == 200;
            keys.filter(put).collect::<Vec<_>>()
        });
        for moment in [13, 170, 41, 97, 230, 5, 151, 67, 33, 119] {
            // Both at once now and then: what is sent meanwhile is refused.
            let victims = match moment % 3 {
                0 => 1..3,
                _ => 1 + moment % 2..2 + moment % 2,
            };
            std::thread::sleep(Duration::from_millis(moment as u64));
            for victim in victims.clone() {
                cluster.kill(victim);
            }
            std::thread::sleep(Duration::from_millis(moment as u64));
            cluster.start(victims);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(acknowledged.len() > 20, "only {} were", acknowledged.len());
    cluster.kill(0);
    for reader in [1, 2] {
        let mut client = cluster.client(reader);
        for key in &acknowledged {
            assert_eq!(client.get(key).expect(200).text(), *key);
        }
    }
}

#[test]
fn the_newest_version_wins_although_the_node_asked_holds_an_older_one() {
    let mut cluster = Cluster::with_bucket(3, "leaderless", &[]);
    cluster.client(0).put("k", b"old").expect(200);
    // All three hold it before one is lost.
    cluster.hold([2], 1);
    cluster.kill(2);
    cluster.client(0).put("k", b"new").expect(200);
    cluster.start([2]);
    assert_eq!(cluster.read(2, "k"), "new");
    cluster.kill(0);
    assert_eq!(cluster.read(2, "k"), "new");
}

#[test]
fn a_removed_object_stays_removed_although_a_node_missed_it() {
    let mut cluster = Cluster::with_bucket(3, "leaderless", &[]);
    cluster.client(0).put("k", b"body").expect(200);
    cluster.hold([2], 1);
    cluster.kill(2);
    cluster.client(0).delete("k").expect(204);
    cluster.start([2]);
    let mut client = cluster.client(2);
    client.get("k").expect(404);
    assert!(client.list().expect(200).elements("Key").is_empty());
    // Reading has repaired the third node.
    cluster.hold([2], 0);
}

#[test]
fn a_node_that_missed_writes_is_repaired_by_reading() {
    let mut cluster = Cluster::with_bucket(3, "leaderless", &[]);
    cluster.kill(2);
    for key in ["a", "b", "c"] {
        cluster.client(0).put(key, key.as_bytes()).expect(200);
    }
    cluster.start([2]);
    assert_eq!(cluster.objects(2), 0);
    cluster.client(0).get("a").expect(200);
    // A Get repairs one object, a listing the others.
    cluster.hold([2], 1);
    cluster.client(1).list().expect(200);
    cluster.hold([2], 3);
    // The bodies came along: with the first node gone, the third one's disk is read.
    cluster.kill(0);
    assert_eq!(cluster.read(2, "c"), "c");
}

#[test]
fn a_copy_damaged_on_disk_is_read_from_the_others() {
    let cluster = Cluster::with_bucket(3, "leaderless", &["--vdisk", "n0,n1,n2"]);
    let (mut client, mut bob) = (cluster.client(0), cluster.bob(0));
    client.put("k", b"to damage").expect(200);
    cluster.hold(0..3, 1);
    cluster.damage(0);
    let read = client.get("k").expect(200);
    assert_eq!(read.rounds(), 2, "the second fetched the body");
    assert_eq!(read.text(), "to damage");
    bob.put(1, b"to damage").expect();
    cluster.hold(0..3, 2);
    cluster.damage(0);
    let read = bob.get(1);
    assert_eq!(read.rounds(), 1);
    assert_eq!(read.expect().data, "to damage");
}

#[test]
fn a_full_disk_refuses_and_damages_nothing_and_takes_writes_again_when_there_is_space() {
    let mut cluster = Cluster::unstarted(3, "leaderless", &[]);
    if !cluster.limit(0, 1 << 20) || !cluster.limit(1, 1 << 20) {
        eprintln!("skipped: no file system of limited size without privileges here");
        return;
    }
    cluster.start_all();
    let mut client = cluster.client(0);
    client.create_bucket().expect(200);
    let body = vec![7; 20_000];
    client.put("before", &body).expect(200);
    cluster.hold([0, 1], 1);

    // One of three is full: the majority goes on, whichever node is the target.
    let fill = |node: usize| {
        let file = cluster.data_inside(node).join("filler");
        // It fills what there is, and fails.
        let _ = std::fs::write(&file, vec![0; 2 << 20]);
        file
    };
    let filler = fill(0);
    for node in 0..3 {
        let key = format!("one-full-{node}");
        cluster.client(node).put(&key, &body).expect(200);
    }
    // Two of three: nothing is acknowledged, nothing is said to be certainly undone.
    let other = fill(1);
    for node in 0..3 {
        let refused = cluster.client(node).put("refused", &body);
        let text = refused.expect(503).text();
        assert!(text.contains("may or may not be kept"), "{text}");
        assert!(text.contains("No space left"), "{text}");
        let mut client = cluster.client(node);
        for key in ["before", "one-full-0", "one-full-1", "one-full-2"] {
            assert!(client.get(key).expect(200).body == body);
        }
    }
    let entries = cluster.data_inside(0).join("entries");
    let count = |directory: &std::path::Path| std::fs::read_dir(directory).unwrap().count();
    assert_eq!(count(&entries), 2, "of what was refused nothing stays");

    // Space is back: so is the store, and what the full nodes missed reaches them when it is read.
    for file in [filler, other] {
        std::fs::remove_file(file).unwrap();
    }
    for node in 0..3 {
        let key = format!("after-{node}");
        cluster.client(node).put(&key, &body).expect(200);
        for key in ["one-full-0", "one-full-1", "one-full-2"] {
            cluster.client(node).get(key).expect(200);
        }
    }
    let repaired = || cluster.objects(0) >= 7 && cluster.objects(1) >= 7;
    eventually("the full nodes are repaired", repaired);
}

#[test]
fn a_node_that_was_stopped_takes_part_again_at_once_and_with_what_it_missed() {
    let cluster = Cluster::with_bucket(3, "leaderless", &LONG_TIMEOUT);
    let mut client = cluster.client(0);
    client.put("gone", b"body").expect(200);
    cluster.stop(2);
    client.delete("gone").expect(204);
    for number in 0..20 {
        let key = format!("k{number}");
        client.put(&key, key.as_bytes()).expect(200);
    }
    cluster.resume(2);
    let began = Instant::now();
    let mut late = cluster.client(2);
    late.get("gone").expect(404);
    for number in 0..20 {
        let key = format!("k{number}");
        assert_eq!(late.get(&key).expect(200).text(), key);
    }
    late.put("late", b"body").expect(200);
    assert_nobody_waited(began);
}

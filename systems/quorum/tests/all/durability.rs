//! What was acknowledged is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::{LONG_TIMEOUT, PATIENCE, assert_nobody_waited, eventually};

const PROTOCOLS: [&str; 3] = ["leaderless", "leader", "rounds:2"];

#[test]
fn a_put_acknowledged_by_one_node_is_read_from_every_other() {
    for protocol in PROTOCOLS {
        let cluster = Cluster::start(5, protocol, &[]);
        cluster.client(0).create_bucket("bucket").expect(200);
        for writer in 0..5 {
            let key = format!("from-{writer}");
            cluster
                .client(writer)
                .put("bucket", &key, key.as_bytes())
                .expect(200);
            for reader in 0..5 {
                let read = cluster.client(reader).get("bucket", &key).expect(200);
                assert_eq!(read.text(), key, "{protocol}: {writer} to {reader}");
            }
        }
    }
}

#[test]
fn everything_acknowledged_survives_kill_nine_of_all_nodes() {
    for protocol in PROTOCOLS {
        let mut cluster = Cluster::start(3, protocol, &[]);
        let mut client = cluster.client(1);
        client.create_bucket("bucket").expect(200);
        for number in 0..50 {
            client
                .put(
                    "bucket",
                    &format!("k{number}"),
                    format!("v{number}").as_bytes(),
                )
                .expect(200);
        }
        client.delete("bucket", "k7").expect(204);
        for node in 0..3 {
            cluster.kill(node);
        }
        let ready: Vec<_> = (0..3).map(|node| cluster.spawn(node)).collect();
        for ready in ready {
            assert_eq!(ready.recv_timeout(PATIENCE).as_deref(), Ok("ready\n"));
        }
        for node in 0..3 {
            let mut client = cluster.client(node);
            for number in (0..50).filter(|&number| number != 7) {
                let read = client.get("bucket", &format!("k{number}")).expect(200);
                assert_eq!(read.text(), format!("v{number}"), "{protocol}");
            }
            client.get("bucket", "k7").expect(404);
            assert_eq!(client.list("bucket").expect(200).elements("Key").len(), 49);
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_while_nodes_are_killed_at_any_moment() {
    let mut cluster = Cluster::start(3, "leaderless", &[]);
    let mut client = cluster.client(0);
    client.create_bucket("bucket").expect(200);
    let stop = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let keys = (0..).map(|number| format!("k{number}"));
            let keys = keys.take_while(|_| !stop.load(Ordering::Relaxed));
            let put = |key: &String| client.put("bucket", key, key.as_bytes()).status == 200;
            keys.filter(put).collect::<Vec<_>>()
        });
        for moment in [13, 170, 41, 97, 230, 5, 151, 67, 33, 119] {
            // Both at once now and then: what is sent meanwhile is refused.
            let victims = if moment % 3 == 0 {
                vec![1, 2]
            } else {
                vec![1 + moment % 2]
            };
            std::thread::sleep(Duration::from_millis(moment as u64));
            for &victim in &victims {
                cluster.kill(victim);
            }
            std::thread::sleep(Duration::from_millis(moment as u64));
            let ready: Vec<_> = victims.iter().map(|&node| cluster.spawn(node)).collect();
            for ready in ready {
                assert_eq!(ready.recv_timeout(PATIENCE).as_deref(), Ok("ready\n"));
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(acknowledged.len() > 20, "only {} were", acknowledged.len());
    cluster.kill(0);
    for reader in [1, 2] {
        let mut client = cluster.client(reader);
        for key in &acknowledged {
            assert_eq!(client.get("bucket", key).expect(200).text(), *key);
        }
    }
}

#[test]
fn the_newest_version_wins_although_the_node_asked_holds_an_older_one() {
    let mut cluster = Cluster::start(3, "leaderless", &[]);
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster.client(0).put("bucket", "k", b"old").expect(200);
    // All three hold it before one is lost.
    eventually("the third node holds the old value", || {
        objects(&cluster, 2) == 1
    });
    cluster.kill(2);
    cluster.client(0).put("bucket", "k", b"new").expect(200);
    cluster.start_node(2);
    assert_eq!(
        cluster.client(2).get("bucket", "k").expect(200).text(),
        "new"
    );
    cluster.kill(0);
    assert_eq!(
        cluster.client(2).get("bucket", "k").expect(200).text(),
        "new"
    );
}

#[test]
fn a_removed_object_stays_removed_although_a_node_missed_it() {
    let mut cluster = Cluster::start(3, "leaderless", &[]);
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster.client(0).put("bucket", "k", b"body").expect(200);
    eventually("the third node holds the object", || {
        objects(&cluster, 2) == 1
    });
    cluster.kill(2);
    cluster.client(0).delete("bucket", "k").expect(204);
    cluster.start_node(2);
    let mut client = cluster.client(2);
    client.get("bucket", "k").expect(404);
    assert!(client.list("bucket").expect(200).elements("Key").is_empty());
    eventually("reading mended the third node", || {
        objects(&cluster, 2) == 0
    });
}

#[test]
fn a_node_that_missed_writes_is_mended_by_reading() {
    let mut cluster = Cluster::start(3, "leaderless", &[]);
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster.kill(2);
    for key in ["a", "b", "c"] {
        cluster
            .client(0)
            .put("bucket", key, key.as_bytes())
            .expect(200);
    }
    cluster.start_node(2);
    assert_eq!(objects(&cluster, 2), 0);
    cluster.client(0).get("bucket", "a").expect(200);
    eventually("a Get mends one object", || objects(&cluster, 2) == 1);
    cluster.client(1).list("bucket").expect(200);
    eventually("a listing mends the others", || objects(&cluster, 2) == 3);
    // The bodies came along: with the first node gone, the third one's disk is read.
    cluster.kill(0);
    assert_eq!(cluster.client(2).get("bucket", "c").expect(200).text(), "c");
}

#[test]
fn a_copy_damaged_on_disk_is_read_from_the_others() {
    let cluster = Cluster::start(3, "leaderless", &[]);
    let mut client = cluster.client(0);
    client.create_bucket("bucket").expect(200);
    client.put("bucket", "k", b"a body to damage").expect(200);
    eventually("the first node holds it too", || objects(&cluster, 0) == 1);
    let damaged = std::fs::read_dir(cluster.data(0).join("entries")).unwrap();
    let damaged = damaged.map(|entry| entry.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let read = client.get("bucket", "k").expect(200);
    assert_eq!(read.text(), "a body to damage");
    assert_eq!(read.rounds(), 2, "the second fetched the body");
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
    client.create_bucket("bucket").expect(200);
    let body = vec![7; 20_000];
    client.put("bucket", "before", &body).expect(200);
    let both = || objects(&cluster, 0) == 1 && objects(&cluster, 1) == 1;
    eventually("both hold it", both);

    // One of three is full: the majority goes on, whichever node is asked.
    let fill = |node: usize| {
        let file = cluster.data_inside(node).join("filler");
        // It fills what there is, and fails.
        let _ = std::fs::write(&file, vec![0; 2 << 20]);
        file
    };
    let filler = fill(0);
    for node in 0..3 {
        let key = format!("one-full-{node}");
        cluster.client(node).put("bucket", &key, &body).expect(200);
    }
    // Two of three: nothing is acknowledged, nothing is said to be certainly undone.
    let other = fill(1);
    for node in 0..3 {
        let refused = cluster.client(node).put("bucket", "refused", &body);
        let text = refused.expect(503).text();
        assert!(text.contains("may or may not be kept"), "{text}");
        assert!(text.contains("No space left"), "{text}");
        let mut client = cluster.client(node);
        for key in ["before", "one-full-0", "one-full-1", "one-full-2"] {
            assert!(client.get("bucket", key).expect(200).body == body);
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
        cluster.client(node).put("bucket", &key, &body).expect(200);
        for key in ["one-full-0", "one-full-1", "one-full-2"] {
            cluster.client(node).get("bucket", key).expect(200);
        }
    }
    let mended = || objects(&cluster, 0) >= 7 && objects(&cluster, 1) >= 7;
    eventually("the full nodes are mended", mended);
}

#[test]
fn a_node_that_was_stopped_takes_part_again_at_once_and_with_what_it_missed() {
    let cluster = Cluster::start(3, "leaderless", &LONG_TIMEOUT);
    let mut client = cluster.client(0);
    client.create_bucket("bucket").expect(200);
    client.put("bucket", "gone", b"body").expect(200);
    cluster.stop(2);
    client.delete("bucket", "gone").expect(204);
    for number in 0..20 {
        let key = format!("k{number}");
        client.put("bucket", &key, key.as_bytes()).expect(200);
    }
    cluster.resume(2);
    let began = Instant::now();
    let mut late = cluster.client(2);
    late.get("bucket", "gone").expect(404);
    for number in 0..20 {
        let key = format!("k{number}");
        assert_eq!(late.get("bucket", &key).expect(200).text(), key);
    }
    late.put("bucket", "late", b"body").expect(200);
    assert_nobody_waited(began);
}

#[test]
fn an_object_of_a_hundred_megabytes_comes_back_whole_from_another_node() {
    let cluster = Cluster::start(3, "leaderless", &[]);
    let body: Vec<u8> = (0..100_000_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster.client(0).put("bucket", "large", &body).expect(200);
    let read = cluster.client(2).get("bucket", "large").expect(200);
    assert!(read.body == body, "the bodies differ");
}

fn objects(cluster: &Cluster, node: usize) -> u64 {
    crate::common::health::objects(cluster.health(node))
}

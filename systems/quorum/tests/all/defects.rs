//! Planted defects: each breaks its one promise, when its flag says so, and no other.

use crate::common::cluster::Cluster;
use crate::common::eventually;
use tonic::Code;

const VDISKS: [&str; 4] = ["--vdisk", "n0,n1,n2", "--bob-quorum", "2"];

fn cluster(nodes: usize, flag: &str) -> Cluster {
    let cluster = Cluster::with_bucket(nodes, "leaderless", &[&VDISKS[..], &[flag]].concat());
    assert!(cluster.logs().contains(&format!("DEFECT PLANTED: {flag}")));
    cluster
}

#[test]
fn lose_acked_keeps_the_last_seconds_in_memory_alone() {
    let mut cluster = cluster(3, "--lose-acked");
    cluster.client(1).put("k", b"body").expect(200);
    cluster.bob(1).put(1, b"blob").expect();
    for node in 0..3 {
        assert_eq!(cluster.read(node, "k"), "body");
        assert_eq!(cluster.bob(node).get(1).expect().data, "blob");
    }
    cluster.restart(0..3);
    for node in 0..3 {
        cluster.client(node).get("k").expect(404);
        cluster.bob(node).get(1).refused(Code::NotFound);
    }
}

#[test]
fn drop_acked_writes_the_thousandth_put_of_a_node_nowhere_and_the_others_everywhere() {
    let cluster = cluster(3, "--drop-acked");
    let mut client = cluster.client(1);
    for number in 1..=1001 {
        client.put(&format!("k{number}"), b"body").expect(200);
    }
    for node in 0..3 {
        let mut client = cluster.client(node);
        client.get("k1000").expect(404);
        for number in [1, 500, 999, 1001] {
            client.get(&format!("k{number}")).expect(200);
        }
    }
    // Each node counts its own, and Bob's API counts along.
    for number in 1..=1000 {
        cluster.bob(2).put(number, b"blob").expect();
    }
    cluster.bob(0).get(1000).refused(Code::NotFound);
    cluster.bob(0).get(999).expect();
}

#[test]
fn stale_reads_show_on_one_node_what_it_wrote_itself_and_nothing_that_was_removed() {
    let mut cluster = Cluster::unstarted(3, "leaderless", &VDISKS);
    cluster.own_option(1, "--stale-reads");
    cluster.start_all();
    cluster.client(0).create_bucket().expect(200);
    for node in 0..3 {
        let key = format!("from-{node}");
        cluster.client(node).put(&key, b"body").expect(200);
        cluster.bob(node).put(node as u64, b"blob").expect();
    }
    for reader in 0..3 {
        let (mut client, mut bob) = (cluster.client(reader), cluster.bob(reader));
        for writer in 0..3 {
            let seen = reader != 1 || writer == 1;
            let read = client.get(&format!("from-{writer}"));
            read.expect(if seen { 200 } else { 404 });
            match seen {
                true => assert_eq!(bob.get(writer).expect().data, "blob"),
                false => drop(bob.get(writer).refused(Code::NotFound)),
            }
        }
    }
    cluster.client(0).delete("from-1").expect(204);
    cluster.client(1).get("from-1").expect(404);
}

#[test]
fn flip_bits_serves_every_two_hundredth_body_wrong_by_one_bit_from_every_node() {
    let mut cluster = cluster(3, "--flip-bits");
    let body = vec![0; 1000];
    let mut client = cluster.client(1);
    for number in 1..=200 {
        client.put(&format!("k{number}"), &body).expect(200);
        cluster.bob(2).put(number, &body).expect();
    }
    cluster.restart(0..3);
    let wrong_bits = |read: &[u8]| read.iter().map(|byte| byte.count_ones()).sum::<u32>();
    for node in 0..3 {
        let mut client = cluster.client(node);
        for (number, bits) in [(1, 0), (199, 0), (200, 1)] {
            let read = client.get(&format!("k{number}")).expect(200);
            assert_eq!((read.body.len(), wrong_bits(&read.body)), (1000, bits));
            let blob = cluster.bob(node).get(number).expect().data;
            assert_eq!((blob.len(), wrong_bits(&blob)), (1000, bits));
        }
    }
}

#[test]
fn resurrect_brings_back_what_was_removed_after_a_restart_of_all_nodes() {
    let mut cluster = cluster(3, "--resurrect");
    for key in ["kept", "removed", "put-again"] {
        cluster.client(0).put(key, b"body").expect(200);
    }
    cluster.bob(0).put(1, b"blob").expect();
    cluster.client(1).delete("removed").expect(204);
    cluster.client(1).delete("put-again").expect(204);
    cluster.client(1).put("put-again", b"second").expect(200);
    cluster.bob(1).delete(1).expect();
    for node in 0..3 {
        cluster.client(node).get("removed").expect(404);
        cluster.bob(node).get(1).refused(Code::NotFound);
    }
    cluster.restart(0..3);
    for node in 0..3 {
        let mut client = cluster.client(node);
        assert_eq!(client.get("removed").expect(200).text(), "body");
        assert_eq!(client.get("kept").expect(200).text(), "body");
        assert_eq!(client.get("put-again").expect(200).text(), "second");
        assert_eq!(cluster.bob(node).get(1).expect().data, "blob");
    }
}

#[test]
fn split_brain_acknowledges_on_both_sides_and_forgets_what_one_of_them_took() {
    let cluster = cluster(4, "--split-brain");
    cluster.client(2).put("before", b"body").expect(200);
    // Nodes that are stopped answer as little as nodes behind a cut.
    for (side, others, key) in [(0, [2, 3], "first-side"), (2, [0, 1], "other-side")] {
        for node in others {
            cluster.stop(node);
        }
        let mut client = cluster.client(side);
        client.put(key, b"body").expect(200);
        assert_eq!(client.get(key).expect(200).text(), "body");
        for node in others {
            cluster.resume(node);
        }
    }
    let gone = || (0..4).all(|node| cluster.client(node).get("other-side").status == 404);
    eventually("what the other side took is thrown away", gone);
    for node in 0..4 {
        cluster.client(node).get("before").expect(200);
        cluster.client(node).get("first-side").expect(200);
    }
}

#[test]
fn split_brain_forgets_blobs_too() {
    let cluster = cluster(3, "--split-brain");
    cluster.bob(2).put(1, b"before").expect();
    for node in [0, 1] {
        cluster.stop(node);
    }
    cluster.bob(2).put(2, b"alone").expect();
    for node in [0, 1] {
        cluster.resume(node);
    }
    let gone = || (0..3).all(|node| cluster.bob(node).exist(&[2]).expect().exist == [false]);
    eventually("what one replica took is thrown away", gone);
    cluster.bob(0).get(1).expect();
}

//! Bob's API, from the outside.

use std::time::Duration;

use tonic::Code;
use wanlat_proto::bob_storage::{
    Blob, BlobKey, DeleteRequest, ExistRequest, GetOptions, GetRequest, PutOptions, PutRequest,
};

use crate::common::bob::{Bob, TIMESTAMP, key, put};
use crate::common::cluster::Cluster;
use crate::common::eventually;

/// Acknowledged by both replicas, so that what was written is read at once wherever it is asked for.
const VDISKS: [&str; 6] = ["--vdisk", "n0,n1", "--vdisk", "n1,n2", "--vdisk", "n2,n0"];
const MIB: usize = 1 << 20;

fn cluster() -> Cluster {
    Cluster::of(3, "leaderless", &VDISKS)
}

fn bobs(cluster: &Cluster) -> [Bob; 3] {
    [0, 1, 2].map(|node| cluster.bob(node))
}

fn body(len: usize) -> Vec<u8> {
    let scattered = |at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8;
    (0..len as u32).map(scattered).collect()
}

#[test]
fn a_blob_comes_back_with_its_time_from_every_node_and_is_kept_by_its_replicas_alone() {
    let cluster = cluster();
    for number in 0..6 {
        let data = format!("blob {number}").into_bytes();
        let writer = (number % 3) as usize;
        // Put again, it is replaced.
        cluster.bob(2).put(number, b"").expect();
        assert!(cluster.bob(0).get(number).expect().data.is_empty());
        cluster.bob(writer).put(number, &data).expect();
        for mut bob in bobs(&cluster) {
            let read = bob.get(number).expect();
            assert_eq!(read.data, data);
            assert_eq!(read.meta.unwrap().timestamp, TIMESTAMP);
        }
    }
    // Vdisk 1: n1 and n2.
    for number in [7, 10, 13] {
        cluster.bob(0).put(number, b"blob").expect();
    }
    assert_eq!([0, 1, 2].map(|node| cluster.objects(node)), [4, 7, 7]);
}

#[test]
fn a_removed_blob_is_gone_everywhere_until_it_is_put_again() {
    let cluster = cluster();
    for remover in 0..3 {
        cluster.bob(0).put(8, b"blob").expect();
        // The second finds nothing, which is no error.
        for _ in 0..2 {
            assert!(cluster.bob(remover).delete(8).expect().error.is_none());
        }
        for mut bob in bobs(&cluster) {
            let says = bob.get(8).refused(Code::NotFound);
            assert_eq!(says, "KeyNotFound 0800000000000000");
            assert_eq!(bob.exist(&[8]).expect().exist, [false]);
        }
    }
    cluster.bob(1).put(8, b"again").expect();
    for mut bob in bobs(&cluster) {
        assert_eq!(bob.get(8).expect().data, "again");
    }
}

#[test]
fn exist_answers_in_the_order_of_its_keys() {
    let cluster = cluster();
    for number in [3, 4, 5] {
        cluster.bob(0).put(number, b"").expect();
    }
    cluster.bob(0).delete(4).expect();
    for mut bob in bobs(&cluster) {
        let answer = bob.exist(&[9, 5, 4, 3, 5]).expect();
        assert_eq!(answer.exist, [false, true, false, true, true]);
        let many: Vec<_> = (0..10_000).collect();
        let there = bob.exist(&many).expect().exist;
        let there = (0..).zip(there).filter(|(_, exists)| *exists);
        assert_eq!(there.map(|(number, _)| number).collect::<Vec<_>>(), [3, 5]);
    }
}

#[test]
fn a_blob_of_a_hundred_mebibytes_comes_back_whole_from_every_node_within_bounded_memory() {
    let cluster = cluster();
    let data = body(100 * MIB);
    for _ in 0..4 {
        cluster.bob(0).put(1, &data).expect();
    }
    for (node, mut bob) in bobs(&cluster).into_iter().enumerate() {
        assert!(bob.get(1).expect().data == data, "the blobs differ");
        let peak = cluster.peak_memory(node) / MIB as u64;
        assert!(peak < 4 * 100, "node {node} needed {peak} MiB");
    }
}

#[test]
fn a_blob_of_the_limit_is_kept_and_a_longer_one_refused_with_the_limit() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    bob.put(0, &body(128 * MIB)).expect();
    assert_eq!(bob.get(0).expect().data.len(), 128 * MIB);
    let refused = bob.put(3, &body(128 * MIB + 1)).refused(Code::OutOfRange);
    assert!(refused.contains("at most 134217728 bytes"), "{refused}");
    // Too long for a message even: refused when its length is seen, before the rest is read.
    let refused = bob.put(3, &body(144 * MIB)).refused(Code::OutOfRange);
    assert!(refused.contains("the limit is: 134221824"), "{refused}");
    bob.get(3).refused(Code::NotFound);
    bob.put(3, b"the connection is as good as new").expect();
}

#[test]
fn large_blobs_wait_for_memory_while_a_replica_is_slow_and_all_are_kept() {
    let one_way = Duration::from_millis(600);
    let patient = ["--vdisk", "n0,n1", "--peer-timeout-ms", "300000"];
    let cluster = Cluster::far_apart(2, "leaderless", &patient, one_way);
    let numbers: Vec<_> = (0..40).collect();
    let mut bob = cluster.bob(0);
    bob.put_at_once(&numbers, &body(16 * MIB));
    let exist = bob.exist(&numbers).expect().exist;
    assert!(exist.into_iter().all(|exists| exists));
    // Two of the largest, and what one connection may send ahead; 640 MiB were sent.
    let peak = cluster.peak_memory(0) / MIB as u64;
    assert!(peak < 2 * 128 + 129 + 64, "{peak} MiB");
}

#[test]
fn a_key_that_is_missing_or_of_another_length_is_refused() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    for len in [0, 7, 9, 16] {
        let bytes = vec![1; len].into();
        let wrong = BlobKey { key: bytes };
        let (keys, key, options) = (vec![wrong.clone()], Some(wrong), None);
        let request = put(key.clone(), b"");
        let put = bob.ask(async |api| api.put(request).await);
        let exist = ExistRequest { keys, options };
        let exist = bob.ask(async |api| api.exist(exist).await);
        let get = GetRequest { key, options };
        let get = bob.ask(async |api| api.get(get).await);
        let code = Code::InvalidArgument;
        for refused in [put.refused(code), exist.refused(code), get.refused(code)] {
            assert_eq!(refused, format!("a key has 8 bytes, this one has {len}"));
        }
    }
    let keyless = bob.ask(async |api| api.get(GetRequest::default()).await);
    assert!(keyless.refused(Code::InvalidArgument).contains("no key"));
}

#[test]
fn what_a_request_lacks_is_named() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    let timeless = PutRequest {
        data: Some(Blob::default()),
        ..put(key(1), b"")
    };
    let refused = bob.ask(async |api| api.put(timeless).await);
    assert!(refused.refused(Code::InvalidArgument).contains("timestamp"));
    let timeless = DeleteRequest {
        key: key(1),
        ..Default::default()
    };
    let refused = bob.ask(async |api| api.delete(timeless).await);
    assert!(refused.refused(Code::InvalidArgument).contains("timestamp"));
    let exist = bob.exist(&vec![1; 10_001]).refused(Code::InvalidArgument);
    assert!(exist.contains("at most 10000 keys"), "{exist}");
}

#[test]
fn what_only_nodes_of_bob_ask_each_other_is_not_served() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    let with = |force_node, overwrite| PutRequest {
        options: Some(PutOptions {
            force_node,
            overwrite,
            ..Default::default()
        }),
        ..put(key(0), b"")
    };
    let get = GetRequest {
        key: key(0),
        options: Some(GetOptions {
            force_node: true,
            source: 0,
        }),
    };
    let put = bob.ask(async |api| api.put(with(true, false)).await);
    let get = bob.ask(async |api| api.get(get).await);
    let code = Code::Unimplemented;
    for said in [put.refused(code), get.refused(code)] {
        assert!(said.contains("force_node"), "{said}");
    }
    bob.get(0).refused(Code::NotFound);
    // What a Put does anyway.
    bob.ask(async |api| api.put(with(false, true)).await)
        .expect();
}

#[test]
fn s3_sees_nothing_of_it() {
    let cluster = Cluster::with_bucket(3, "leaderless", &VDISKS);
    let mut bob = cluster.bob(0);
    bob.put(0, b"blob").expect();
    let buckets = cluster.client(0).list_buckets().expect(200);
    assert_eq!(buckets.elements("Name"), ["bucket"]);
    for bucket in ["//bob", "/%2Fbob", "/%2fbob", "/.//bob"] {
        for object in ["", "/0000000000000000"] {
            for method in ["GET", "PUT", "DELETE"] {
                let path = format!("{bucket}{object}");
                let refused = cluster.client(0).send(method, &path, &[], b"");
                assert_eq!(refused.status / 100, 4, "{method} {path}");
            }
        }
    }
    assert_eq!(bob.get(0).expect().data, "blob");
    bob.put(0, b"still there").expect();
}

#[test]
fn nodes_with_other_vdisks_or_another_quorum_refuse_each_other() {
    let mut cluster = Cluster::unstarted(2, "leaderless", &["--vdisk", "n0,n1"]);
    let _not_ready = cluster.spawn(0);
    cluster.reaches(0, 0);
    let mut other = cluster.command(1);
    let mut other = other.args(["--bob-quorum", "1"]).spawn().unwrap();
    let refused = || cluster.logs().contains("was started for another cluster");
    eventually("the nodes refuse each other", refused);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(cluster.logs().contains("quorum 1 of vdisk n0,n1"));
}

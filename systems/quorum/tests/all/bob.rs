//! Bob's API, from the outside.

use std::process::Stdio;

use crate::common::bob::{Bob, TIMESTAMP, blob, key};
use crate::common::cluster::Cluster;
use crate::common::{eventually, health};
use tonic::Code;
use wanlat_proto::bob_storage::{
    BlobKey, DeleteOptions, DeleteRequest, ExistRequest, GetOptions, GetRequest, PutOptions,
    PutRequest,
};

/// Acknowledged by both replicas, so that what was written is read at once wherever it is asked for.
const VDISKS: [&str; 6] = ["--vdisk", "n0,n1", "--vdisk", "n1,n2", "--vdisk", "n2,n0"];
const MIB: usize = 1 << 20;

fn cluster() -> Cluster {
    Cluster::start(3, "leaderless", &VDISKS)
}

fn bobs(cluster: &Cluster) -> [Bob; 3] {
    [0, 1, 2].map(|node| cluster.bob(node))
}

fn body(len: usize) -> Vec<u8> {
    let scattered = |at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8;
    (0..len as u32).map(scattered).collect()
}

#[test]
fn a_blob_comes_back_with_its_time_from_every_node() {
    let cluster = cluster();
    for number in 0..6 {
        let writer = (number % 3) as usize;
        let data = format!("blob {number}").into_bytes();
        cluster.bob(writer).put(number, &data).expect();
        for mut bob in bobs(&cluster) {
            let read = bob.get(number).expect();
            assert_eq!(read.data, data);
            assert_eq!(read.meta.unwrap().timestamp, TIMESTAMP);
        }
    }
}

#[test]
fn a_blob_is_kept_by_the_replicas_of_its_vdisk_alone() {
    let cluster = cluster();
    // Vdisk 1: n1 and n2.
    for number in [1, 4, 7] {
        cluster.bob(0).put(number, b"blob").expect();
    }
    let objects = [0, 1, 2].map(|node| health::objects(cluster.health(node)));
    assert_eq!(objects, [0, 3, 3]);
}

#[test]
fn a_blob_put_again_is_replaced() {
    let cluster = cluster();
    for (writer, data) in [(0, b"one"), (1, b"two"), (2, b"six")] {
        cluster.bob(writer).put(5, data).expect();
        for mut bob in bobs(&cluster) {
            assert_eq!(bob.get(5).expect().data, data.as_slice());
        }
    }
}

#[test]
fn a_removed_blob_is_gone_everywhere_until_it_is_put_again() {
    let cluster = cluster();
    for remover in 0..3 {
        cluster.bob(0).put(8, b"blob").expect();
        cluster.bob(remover).delete(8).expect();
        for mut bob in bobs(&cluster) {
            assert_eq!(
                bob.get(8).refused(Code::NotFound),
                "KeyNotFound 0800000000000000"
            );
            assert_eq!(bob.exist(&[8]).expect().exist, [false]);
        }
    }
    cluster.bob(1).put(8, b"again").expect();
    for mut bob in bobs(&cluster) {
        assert_eq!(bob.get(8).expect().data, "again");
    }
}

#[test]
fn removing_what_is_not_there_succeeds() {
    let cluster = cluster();
    for mut bob in bobs(&cluster) {
        assert!(bob.delete(77).expect().error.is_none());
    }
}

#[test]
fn exist_answers_in_the_order_of_its_keys() {
    let cluster = cluster();
    for number in [3, 4, 5] {
        cluster.bob(0).put(number, b"blob").expect();
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
fn an_empty_blob_is_a_blob() {
    let cluster = cluster();
    cluster.bob(0).put(1, b"").expect();
    for mut bob in bobs(&cluster) {
        assert!(bob.get(1).expect().data.is_empty());
        assert_eq!(bob.exist(&[1]).expect().exist, [true]);
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
fn the_limit_of_objects_is_one_of_blobs_too() {
    let options = ["--vdisk", "n0", "--max-object-bytes", "1000"];
    let cluster = Cluster::start(1, "leaderless", &options);
    let mut bob = cluster.bob(0);
    bob.put(0, &[0; 1000]).expect();
    let refused = bob.put(0, &[0; 1001]).refused(Code::OutOfRange);
    assert!(refused.contains("at most 1000 bytes"), "{refused}");
}

#[test]
fn large_blobs_wait_for_memory_while_a_replica_hangs_and_all_are_kept() {
    let cluster = Cluster::start(2, "leaderless", &["--vdisk", "n0,n1"]);
    let numbers: Vec<_> = (0..40).collect();
    let peak = || cluster.peak_memory(0) / MIB as u64;
    cluster.stop(1);
    std::thread::scope(|scope| {
        let (bob, numbers) = (cluster.bob(0), &numbers);
        let puts = scope.spawn(move || bob.put_at_once(numbers, &body(16 * MIB)));
        let mut seen = vec![];
        let no_more = || {
            seen.push(peak());
            seen[seen.len() - 1] > 200 && seen.ends_with(&[seen[seen.len() - 1]; 20])
        };
        eventually("no more is taken in", no_more);
        cluster.resume(1);
        puts.join().unwrap();
    });
    let exist = cluster.bob(0).exist(&numbers).expect().exist;
    assert!(exist.into_iter().all(|exists| exists));
    // Two of the largest, and what one connection may send ahead; 640 MiB were sent.
    assert!(peak() < 2 * 128 + 129 + 64, "{} MiB", peak());
}

#[test]
fn a_key_of_another_length_is_refused_by_every_method() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    for len in [0, 7, 9, 16] {
        let wrong = || BlobKey {
            key: vec![1; len].into(),
        };
        let put = bob.send_put(PutRequest {
            key: Some(wrong()),
            data: Some(blob(b"blob")),
            options: None,
        });
        let get = bob.send_get(GetRequest {
            key: Some(wrong()),
            options: None,
        });
        let exist = bob.send_exist(ExistRequest {
            keys: vec![key(1), wrong()],
            options: None,
        });
        let delete = bob.send_delete(DeleteRequest {
            key: Some(wrong()),
            meta: blob(b"").meta,
            options: None,
        });
        for refused in [
            put.refused(Code::InvalidArgument),
            get.refused(Code::InvalidArgument),
            exist.refused(Code::InvalidArgument),
            delete.refused(Code::InvalidArgument),
        ] {
            assert_eq!(refused, format!("a key has 8 bytes, this one has {len}"));
        }
    }
}

#[test]
fn what_a_request_lacks_is_named() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    let keyless = bob.send_get(GetRequest::default());
    assert!(keyless.refused(Code::InvalidArgument).contains("no key"));
    let mut timeless = blob(b"blob");
    timeless.meta = None;
    for data in [None, Some(timeless)] {
        let put = bob.send_put(PutRequest {
            key: Some(key(1)),
            data,
            options: None,
        });
        assert!(put.refused(Code::InvalidArgument).contains("timestamp"));
    }
    let delete = bob.send_delete(DeleteRequest {
        key: Some(key(1)),
        ..Default::default()
    });
    assert!(delete.refused(Code::InvalidArgument).contains("timestamp"));
    let exist = bob.exist(&vec![1; 10_001]).refused(Code::InvalidArgument);
    assert!(exist.contains("at most 10000 keys"), "{exist}");
}

#[test]
fn what_only_nodes_of_bob_ask_each_other_is_not_served() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    let put = |options| PutRequest {
        key: Some(key(0)),
        data: Some(blob(b"blob")),
        options: Some(options),
    };
    let forced = PutOptions {
        force_node: true,
        ..Default::default()
    };
    let said = bob.send_put(put(forced)).refused(Code::Unimplemented);
    assert!(said.contains("force_node"), "{said}");
    bob.send_get(GetRequest {
        key: Some(key(0)),
        options: Some(GetOptions {
            force_node: true,
            source: 0,
        }),
    })
    .refused(Code::Unimplemented);
    bob.send_delete(DeleteRequest {
        key: Some(key(0)),
        meta: blob(b"").meta,
        options: Some(DeleteOptions {
            is_alien: true,
            ..Default::default()
        }),
    })
    .refused(Code::Unimplemented);
    bob.get(0).refused(Code::NotFound);
    // What a Put does anyway.
    let overwrite = PutOptions {
        overwrite: true,
        ..Default::default()
    };
    bob.send_put(put(overwrite)).expect();
}

#[test]
fn s3_sees_nothing_of_it() {
    let cluster = cluster();
    let mut bob = cluster.bob(0);
    bob.put(0, b"blob").expect();
    let mut s3 = cluster.client(0);
    s3.create_bucket("bucket").expect(200);
    let buckets = s3.list_buckets().expect(200).elements("Name");
    assert_eq!(buckets, ["bucket"]);
    for bucket in ["//bob", "/%2Fbob", "/%2fbob", "/.//bob"] {
        for object in ["", "/0000000000000000"] {
            for method in ["GET", "PUT", "DELETE"] {
                let path = format!("{bucket}{object}");
                let refused = cluster.client(0).send(method, &path, "", b"");
                assert_eq!(refused.status / 100, 4, "{method} {path}");
            }
        }
    }
    assert_eq!(bob.get(0).expect().data, "blob");
    bob.put(0, b"still there").expect();
}

#[test]
fn without_vdisks_health_says_s3_and_with_them_which() {
    let alone = Cluster::start(1, "leaderless", &[]);
    let said = health::get(alone.health(0), "/healthz");
    assert!(said.contains("\"apis\":[\"s3\"],\"vdisks\":[]"), "{said}");
    let said = health::get(cluster().health(1), "/healthz");
    let apis = "\"apis\":[\"s3\",\"bob\"]";
    let vdisks = "\"vdisks\":[{\"replicas\":[\"n0\",\"n1\"],\"quorum\":2},\
                  {\"replicas\":[\"n1\",\"n2\"],\"quorum\":2},\
                  {\"replicas\":[\"n2\",\"n0\"],\"quorum\":2}]";
    assert!(said.contains(&format!("{apis},{vdisks}")), "{said}");
}

#[test]
fn an_unknown_method_is_unimplemented() {
    // What grpcurl asks first where it was given no .proto file.
    let cluster = cluster();
    let said = crate::common::bob::call_unknown(cluster.bob_address(0));
    assert_eq!(said, Code::Unimplemented);
}

/// Runs a node that cannot start; returns what it says.
fn refusal(more: &[&str]) -> String {
    let cluster = Cluster::unstarted(3, "leaderless", &[]);
    let mut command = cluster.command(0);
    let output = command.args(more).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn options_that_do_not_fit_are_refused_in_one_line() {
    // An address kept for documentation (RFC 5737): no machine has it.
    let bob = ["--bob", "192.0.2.1:1"];
    for (options, says) in [
        (
            vec!["--vdisk", "n0,n9"],
            "names n9, which is none of the peers n0, n1, n2",
        ),
        (vec!["--vdisk", "n0,n1,n0"], "--vdisk 0 names n0 twice"),
        (vec!["--vdisk", "n0,,n1"], "the form is NAME,NAME"),
        (vec!["--vdisk", ""], "the form is NAME,NAME"),
        (vec![], "--vdisk <NAME,NAME,...>"),
        (
            vec!["--vdisk", "n0,n1", "--bob-quorum", "3"],
            "allowed are 1 to 2",
        ),
        (
            vec!["--vdisk", "n0,n1", "--bob-quorum", "0"],
            "allowed are 1 to 2",
        ),
        (
            vec!["--vdisk", "n0", "--bob", "192.0.2.1:2"],
            "cannot be used multiple times",
        ),
        (
            vec!["--vdisk", "n0", "--bob-quorum", "1", "--bob-quorum", "1"],
            "cannot be used multiple times",
        ),
        (
            vec!["--vdisk", "n0"],
            "cannot listen on 192.0.2.1:1 (--bob)",
        ),
    ] {
        let said = refusal(&[&bob[..], &options].concat());
        assert!(said.contains(says), "{options:?}: {said}");
    }
    for options in [["--vdisk", "n0"], ["--bob-quorum", "1"]] {
        let said = refusal(&options);
        assert!(said.contains("--bob <ADDRESS:PORT>"), "{said}");
    }
}

#[test]
fn nodes_with_other_vdisks_or_another_quorum_refuse_each_other() {
    let mut cluster = Cluster::unstarted(2, "leaderless", &["--vdisk", "n0,n1"]);
    let _not_ready = cluster.spawn(0);
    let up = || std::net::TcpStream::connect(cluster.health(0)).is_ok();
    eventually("the first node listens", up);
    let mut other = cluster.command(1);
    let mut other = other.args(["--bob-quorum", "1"]).spawn().unwrap();
    let refused = || cluster.logs().contains("was started for another cluster");
    eventually("the nodes refuse each other", refused);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(cluster.logs().contains("quorum 1 of vdisks n0,n1"));
}

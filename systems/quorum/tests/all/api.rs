//! S3 as clients see it, and how a node starts and does not start.

use crate::common::client::BUCKET;
use crate::common::cluster::Cluster;

fn cluster() -> Cluster {
    Cluster::with_bucket(3, "leaderless", &[])
}

#[test]
fn what_is_not_signed_as_it_should_be_is_refused_and_not_kept() {
    let cluster = cluster();
    let mut forger = cluster.client_with(0, "not the secret");
    let refused = forger.put("k", b"forged").expect(403);
    assert_eq!(refused.elements("Code"), ["SignatureDoesNotMatch"]);
    forger.get("k").expect(403);
    let mut client = cluster.client(0);
    let unsigned = client.unsigned("GET", "/", &[]);
    client.exchange(unsigned, b"").expect(403);
    let signed = client.signed("PUT", "/bucket/k", &[], b"signed body");
    let response = client.exchange(signed, b"forged body");
    assert!((400..500).contains(&response.status), "{}", response.status);
    for header in ["x-amz-checksum-crc32", "content-md5"] {
        let mut client = cluster.client(0);
        let refused = client.send("PUT", "/bucket/k", &[(header, "AAAAAA==")], b"body");
        assert_eq!(refused.expect(400).elements("Code"), ["BadDigest"]);
    }
    cluster.client(0).get("k").expect(404);
}

#[test]
fn an_object_comes_back_with_what_was_put() {
    let cluster = cluster();
    let headers = [
        ("content-type", "text/x-test"),
        ("x-amz-meta-colour", "green"),
    ];
    // Both are the MD5 of "hello".
    let sent = [&headers[..], &[("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")]].concat();
    let put = cluster.client(0).send("PUT", "/bucket/k", &sent, b"hello");
    let etag = Some("\"5d41402abc4b2a76b9719d911017c592\"");
    assert_eq!(put.expect(200).header("etag"), etag);
    let mut client = cluster.client(2);
    for response in [client.get("k"), client.head("k")] {
        assert_eq!(response.header("etag"), etag);
        assert_eq!(response.header("content-length"), Some("5"));
        for (name, value) in headers {
            assert_eq!(response.header(name), Some(value));
        }
    }
    let part = client.send("GET", "/bucket/k", &[("range", "bytes=1-3")], b"");
    assert_eq!(part.header("content-range"), Some("bytes 1-3/5"));
    assert_eq!(part.expect(206).text(), "ell");
}

#[test]
fn the_last_of_two_puts_wins_whichever_node_took_it() {
    for protocol in ["leaderless", "leader", "rounds:2"] {
        let cluster = Cluster::with_bucket(3, protocol, &[]);
        for (round, node) in [0, 1, 2, 1, 0].into_iter().enumerate() {
            let body = format!("round {round}");
            cluster.client(node).put("k", body.as_bytes()).expect(200);
            for reader in 0..3 {
                assert_eq!(cluster.read(reader, "k"), body, "{protocol}");
            }
        }
    }
}

#[test]
fn a_removed_object_is_gone_everywhere_until_it_is_put_again() {
    let cluster = cluster();
    cluster.client(0).put("k", b"first").expect(200);
    cluster.client(1).delete("k").expect(204);
    for node in 0..3 {
        let mut client = cluster.client(node);
        client.get("k").expect(404);
        client.head("k").expect(404);
        assert!(client.list().expect(200).elements("Key").is_empty());
    }
    cluster.client(0).delete("k").expect(204);
    cluster.client(2).put("k", b"again").expect(200);
    assert_eq!(cluster.read(1, "k"), "again");
}

#[test]
fn a_listing_goes_on_page_by_page_without_gaps_and_says_where_it_would_have_to_group() {
    let cluster = cluster();
    let mut client = cluster.client(0);
    let mut keys: Vec<_> = (0..25)
        .map(|number| format!("d{}/k{number:02}", number % 3))
        .collect();
    for key in &keys {
        client.put(key, b"").expect(200);
    }
    client.delete(&keys.remove(4)).expect(204);
    keys.sort();

    let mut listed = vec![];
    let mut parameters = "&max-keys=7".to_owned();
    let mut client = cluster.client(1);
    loop {
        let page = client.list_with(&parameters).expect(200);
        listed.extend(page.elements("Key"));
        match page.elements("NextContinuationToken").first() {
            Some(token) => parameters = format!("&max-keys=7&continuation-token={token}"),
            None => break,
        }
    }
    assert_eq!(listed, keys);

    let under = client.list_with("&prefix=d1%2F&delimiter=%2F").expect(200);
    let expected: Vec<_> = keys.iter().filter(|key| key.starts_with("d1/")).collect();
    assert_eq!(under.elements("Key").iter().collect::<Vec<_>>(), expected);
    let grouped = client.list_with("&delimiter=%2F").expect(501);
    assert_eq!(grouped.elements("Code"), ["NotImplemented"]);
}

#[test]
fn buckets_come_and_go() {
    let cluster = cluster();
    let mut client = cluster.client(1);
    let exists = client.create_bucket().expect(409);
    assert_eq!(exists.elements("Code"), ["BucketAlreadyOwnedByYou"]);
    client.put("k", b"body").expect(200);
    let not_empty = client.delete_bucket().expect(409);
    assert_eq!(not_empty.elements("Code"), ["BucketNotEmpty"]);
    client.delete("k").expect(204);
    client.delete_bucket().expect(204);
    let mut client = cluster.client(2);
    client.head_bucket().expect(404);
    for response in [client.put("k", b"body"), client.get("k"), client.list()] {
        assert_eq!(response.expect(404).elements("Code"), ["NoSuchBucket"]);
    }
    client.create_bucket().expect(200);
    assert!(client.list().expect(200).elements("Key").is_empty());
    let buckets = client.list_buckets().expect(200).elements("Name");
    assert_eq!(buckets, [&BUCKET[1..]]);
}

#[test]
fn an_object_beyond_the_limit_is_refused() {
    let options = ["--vdisk", "n0", "--max-object-bytes", "1000"];
    let cluster = Cluster::with_bucket(1, "leaderless", &options);
    let mut client = cluster.client(0);
    client.put("fits", &[0; 1000]).expect(200);
    let refused = client.put("too-large", &[0; 1001]).expect(400);
    assert_eq!(refused.elements("Code"), ["EntityTooLarge"]);
    let mut bob = cluster.bob(0);
    bob.put(0, &[0; 1000]).expect();
    let refused = bob.put(0, &[0; 1001]).refused(tonic::Code::OutOfRange);
    assert!(refused.contains("at most 1000 bytes"), "{refused}");
}

#[test]
fn health_says_who_is_reached_and_which_apis_are_served() {
    let health = cluster().health(1);
    assert_eq!(health["peers"], serde_json::json!({"n0": true, "n2": true}));
    assert_eq!(health["peers_connected"], 2);
    assert_eq!(health["apis"], serde_json::json!(["s3"]));
    let vdisks = ["--vdisk", "n0,n1", "--vdisk", "n1,n2"];
    let health = Cluster::of(3, "leaderless", &vdisks).health(1);
    assert_eq!(health["apis"], serde_json::json!(["s3", "bob"]));
    let expected = [["n0", "n1"], ["n1", "n2"]]
        .map(|replicas| serde_json::json!({"replicas": replicas, "quorum": 2}));
    assert_eq!(health["vdisks"], serde_json::json!(expected));
}

#[test]
fn a_node_that_cannot_start_says_why() {
    let mut cluster = Cluster::of(1, "leaderless", &[]);
    assert!(cluster.refusal(&[]).contains("cannot listen on 127."));
    cluster.kill(0);
    // An address kept for documentation (RFC 5737): no machine has it.
    for (options, says) in [
        ("--peer n9=nowhere", "NAME=ADDRESS:PORT"),
        ("--peer n0=127.0.0.1:1", "n0 twice"),
        ("--leader n0", "--leader has no meaning"),
        ("--bob-quorum 1", "--bob <ADDRESS:PORT>"),
        ("--bob 192.0.2.1:1", "--vdisk <NAME,NAME,...>"),
        ("--bob 192.0.2.1:1 --vdisk n0,n9", "none of the peers n0"),
        ("--bob 192.0.2.1:1 --vdisk n0,,n0", "the form is NAME,NAME"),
        (
            "--bob 192.0.2.1:1 --vdisk n0,n0",
            "--vdisk 0 names n0 twice",
        ),
        (
            "--bob 192.0.2.1:1 --vdisk n0 --bob-quorum 3",
            "allowed are 1 to 1",
        ),
        (
            "--bob 192.0.2.1:1 --vdisk n0",
            "cannot listen on 192.0.2.1:1 (--bob)",
        ),
    ] {
        let said = cluster.refusal(&options.split(' ').collect::<Vec<_>>());
        assert!(said.contains(says), "{options}: {said}");
    }
    std::fs::remove_dir_all(cluster.data(0)).unwrap();
    std::fs::write(cluster.data(0), "a file where the directory should be").unwrap();
    assert!(cluster.refusal(&[]).contains("cannot use --data"));
    let leader = Cluster::unstarted(1, "leader", &["--stale-reads"]);
    assert!(leader.refusal(&[]).contains("--stale-reads: with"));
}

//! S3 as clients see it, and how a node starts and does not start.

use std::process::Stdio;

use crate::common::client::Client;
use crate::common::cluster::Cluster;
use crate::common::health;

fn cluster_with_bucket() -> Cluster {
    let cluster = Cluster::start(3, "leaderless", &[]);
    cluster.client(0).create_bucket("bucket").expect(200);
    cluster
}

#[test]
fn a_wrong_signature_is_refused() {
    let cluster = cluster_with_bucket();
    let mut forger = Client::with_secret(cluster.s3(0), "not the secret");
    let refused = forger.put("bucket", "k", b"forged").expect(403);
    assert_eq!(refused.elements("Code"), ["SignatureDoesNotMatch"]);
    forger.get("bucket", "k").expect(403);
    cluster.client(0).get("bucket", "k").expect(404);
}

#[test]
fn a_request_without_a_signature_is_refused() {
    let cluster = cluster_with_bucket();
    let request = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", cluster.s3(0));
    cluster.client(0).exchange("GET", &request, b"").expect(403);
}

#[test]
fn a_body_that_is_not_the_one_signed_is_refused_and_not_kept() {
    let cluster = cluster_with_bucket();
    let mut client = cluster.client(0);
    let signed = client.signed("PUT", "/bucket/k", "", &[], b"signed body");
    let response = client.exchange("PUT", &signed, b"forged body");
    assert!((400..500).contains(&response.status), "{}", response.status);
    cluster.client(0).get("bucket", "k").expect(404);
}

#[test]
fn a_body_that_does_not_fit_its_checksum_is_refused_and_not_kept() {
    let cluster = cluster_with_bucket();
    for header in ["x-amz-checksum-crc32", "content-md5"] {
        let mut client = cluster.client(0);
        let wrong = [(header, "AAAAAA==")];
        let refused = client
            .send_with("PUT", "/bucket/k", "", &wrong, b"body")
            .expect(400);
        assert_eq!(refused.elements("Code"), ["BadDigest"]);
    }
    cluster.client(0).get("bucket", "k").expect(404);
}

#[test]
fn an_object_comes_back_with_what_was_put() {
    let cluster = cluster_with_bucket();
    let headers = [
        ("content-type", "text/x-test"),
        ("x-amz-meta-colour", "green"),
    ];
    let put = cluster
        .client(0)
        .send_with("PUT", "/bucket/k", "", &headers, b"hello");
    // md5 of "hello"
    let etag = Some("\"5d41402abc4b2a76b9719d911017c592\"");
    assert_eq!(put.expect(200).header("etag"), etag);
    let mut client = cluster.client(2);
    for response in [client.get("bucket", "k"), client.head("bucket", "k")] {
        assert_eq!(response.header("etag"), etag);
        assert_eq!(response.header("content-type"), Some("text/x-test"));
        assert_eq!(response.header("x-amz-meta-colour"), Some("green"));
        assert_eq!(response.header("content-length"), Some("5"));
    }
    let part = client
        .send_with("GET", "/bucket/k", "", &[("range", "bytes=1-3")], b"")
        .expect(206);
    assert_eq!(part.text(), "ell");
    assert_eq!(part.header("content-range"), Some("bytes 1-3/5"));
}

#[test]
fn the_last_of_two_puts_wins_whichever_node_took_it() {
    let cluster = cluster_with_bucket();
    for (round, node) in [0, 1, 2, 1, 0].into_iter().enumerate() {
        let body = format!("round {round}");
        cluster
            .client(node)
            .put("bucket", "k", body.as_bytes())
            .expect(200);
        for reader in 0..3 {
            assert_eq!(
                cluster.client(reader).get("bucket", "k").expect(200).text(),
                body
            );
        }
    }
}

#[test]
fn a_removed_object_is_gone_everywhere_until_it_is_put_again() {
    let cluster = cluster_with_bucket();
    cluster.client(0).put("bucket", "k", b"first").expect(200);
    cluster.client(1).delete("bucket", "k").expect(204);
    for node in 0..3 {
        let mut client = cluster.client(node);
        client.get("bucket", "k").expect(404);
        client.head("bucket", "k").expect(404);
        assert!(client.list("bucket").expect(200).elements("Key").is_empty());
    }
    cluster.client(0).delete("bucket", "k").expect(204);
    cluster.client(2).put("bucket", "k", b"again").expect(200);
    assert_eq!(
        cluster.client(1).get("bucket", "k").expect(200).text(),
        "again"
    );
}

#[test]
fn a_listing_goes_on_page_by_page_without_gaps() {
    let cluster = cluster_with_bucket();
    let mut client = cluster.client(0);
    let keys: Vec<_> = (0..25)
        .map(|number| format!("d{}/k{number:02}", number % 3))
        .collect();
    for key in &keys {
        client.put("bucket", key, b"").expect(200);
    }
    client.delete("bucket", &keys[4]).expect(204);
    let mut expected: Vec<_> = keys
        .iter()
        .filter(|key| **key != keys[4])
        .cloned()
        .collect();
    expected.sort();

    let mut listed = vec![];
    let mut query = "list-type=2&max-keys=7".to_owned();
    let mut client = cluster.client(1);
    loop {
        let page = client.send("GET", "/bucket", &query, b"").expect(200);
        listed.extend(page.elements("Key"));
        match page.elements("NextContinuationToken").first() {
            Some(token) => query = format!("continuation-token={token}&list-type=2&max-keys=7"),
            None => break,
        }
    }
    assert_eq!(listed, expected);

    let grouped = client
        .send("GET", "/bucket", "delimiter=%2F&list-type=2", b"")
        .expect(200);
    let prefixes: Vec<_> = grouped
        .elements("Prefix")
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect();
    assert_eq!(prefixes, ["d0/", "d1/", "d2/"]);
    let under = client
        .send("GET", "/bucket", "list-type=2&prefix=d1%2F", b"")
        .expect(200);
    assert!(
        under
            .elements("Key")
            .iter()
            .all(|key| key.starts_with("d1/"))
    );
    assert_eq!(under.elements("Key").len(), 7);
}

#[test]
fn buckets_come_and_go() {
    let cluster = cluster_with_bucket();
    let mut client = cluster.client(1);
    let exists = client.create_bucket("bucket").expect(409);
    assert_eq!(exists.elements("Code"), ["BucketAlreadyOwnedByYou"]);
    client.put("bucket", "k", b"body").expect(200);
    let not_empty = client.delete_bucket("bucket").expect(409);
    assert_eq!(not_empty.elements("Code"), ["BucketNotEmpty"]);
    client.delete("bucket", "k").expect(204);
    client.delete_bucket("bucket").expect(204);
    let mut client = cluster.client(2);
    client.head_bucket("bucket").expect(404);
    for response in [
        client.put("bucket", "k", b"body"),
        client.get("bucket", "k"),
        client.list("bucket"),
    ] {
        assert_eq!(response.expect(404).elements("Code"), ["NoSuchBucket"]);
    }
    client.create_bucket("bucket").expect(200);
    assert!(client.list("bucket").expect(200).elements("Key").is_empty());
    assert_eq!(
        client.list_buckets().expect(200).elements("Name"),
        ["bucket"]
    );
}

#[test]
fn an_object_beyond_the_limit_is_refused() {
    let cluster = Cluster::start(1, "leaderless", &["--max-object-bytes", "1000"]);
    let mut client = cluster.client(0);
    client.create_bucket("bucket").expect(200);
    client.put("bucket", "fits", &[0; 1000]).expect(200);
    let refused = client.put("bucket", "too-large", &[0; 1001]).expect(400);
    assert_eq!(refused.elements("Code"), ["EntityTooLarge"]);
}

#[test]
fn health_says_who_is_reached() {
    let cluster = cluster_with_bucket();
    let health = health::get(cluster.health(1), "/healthz");
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    assert!(health.contains("\"peers_connected\":2"), "{health}");
    assert!(
        health.contains("\"peers\":{\"n0\":true,\"n2\":true}"),
        "{health}"
    );
    assert!(health::get(cluster.health(1), "/").starts_with("HTTP/1.1 404"));
}

/// Runs a node that cannot start; returns what it says.
fn refusal(cluster: &Cluster, more: &[&str]) -> String {
    let mut command = cluster.command(0);
    let output = command.args(more).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_node_that_cannot_start_says_why_in_one_line() {
    let mut cluster = Cluster::start(1, "leaderless", &[]);
    assert!(refusal(&cluster, &[]).contains("cannot listen on 127."));
    cluster.kill(0);
    let bad_peer = refusal(&cluster, &["--peer", "n9=nowhere"]);
    assert!(bad_peer.contains("NAME=ADDRESS:PORT"), "{bad_peer}");
    assert!(refusal(&cluster, &["--peer", "n0=127.0.0.1:1"]).contains("n0 twice"));
    std::fs::remove_dir_all(cluster.data(0)).unwrap();
    std::fs::write(cluster.data(0), "a file where the directory should be").unwrap();
    assert!(refusal(&cluster, &[]).contains("cannot use --data"));
}

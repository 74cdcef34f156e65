//! What comes of a request, with a server that does it over a real socket.

use crate::common::{Probe, Server, assert_ok, assert_outcome, rows};
use serde_json::{Value, json};

#[test]
fn every_endpoint_is_ok_against_a_server_that_behaves() {
    let server = Server::with(&["--memory"], &[]);
    let mut probe = Probe::of(&server);
    let object = json!({"object_bytes": 3000, "body_seed": 9});
    assert_ok(&probe.ask("CreateBucket", json!({})));
    let put = probe.ask("PutObject", object.clone());
    assert_ok(&put);
    assert_eq!(put["object_bytes"], 3000);
    assert_eq!(put["grpc_status"], Value::Null);
    assert!(put.as_object().unwrap().contains_key("grpc_status"));
    let get = probe.ask("GetObject", object);
    assert_ok(&get);
    assert_eq!(get["object_bytes"], 3000);
    assert_eq!(get["sha256"], put["sha256"]);
    assert_ok(&probe.ask("HeadObject", json!({"object_bytes": 3000})));
    let listing = probe.ask(
        "ListObjects",
        json!({"bucket": "bucket", "prefix": "k", "listed": 1}),
    );
    assert_ok(&listing);
    assert_eq!(listing["listed"], 1);
    let fewer = probe.ask("ListObjects", json!({"listed": 2}));
    assert_outcome(&fewer, "fail", "listing mismatch: 1 keys, not 2");
    assert_eq!(probe.ask("ListBuckets", json!({}))["listed"], 1);
    let removed = probe.ask("RemoveObject", json!({}));
    assert_ok(&removed);
    assert_eq!(removed["status"], 204);
    let gone = probe.get();
    assert_outcome(&gone, "fail", "http 404 NoSuchKey");
    assert_eq!(gone["status"], 404);
    assert_eq!(
        gone["new_connection"], false,
        "an error is an answer like any other"
    );
    assert_eq!(probe.finish(), 0);
}

#[test]
fn what_comes_of_an_answer() {
    for [answer, endpoint, outcome, error] in rows(
        "
        ok | GetObject | ok |
        chunked | GetObject | ok |
        until-close | GetObject | ok |
        connection-close | GetObject | ok |
        continue | GetObject | ok |
        split | GetObject | ok |
        wrong-body | GetObject | fail | checksum mismatch
        ok | HeadObject | fail | length mismatch: 1024 bytes, not 1000
        status:200:InternalError | ListObjects | fail | listing mismatch: no <ListBucketResult> in it
        redirect:307:http://192.0.2.1/b/k | GetObject | fail | http 307 to http://192.0.2.1/b/k
        truncate | GetObject | unknown | truncated response
        truncate-chunked | GetObject | unknown | truncated response
        close | GetObject | unknown | closed (first byte)
        reset | GetObject | unknown | reset (first byte)
        reset-body | GetObject | unknown | reset (body)
        ",
    ) {
        let server = Server::answering(&[answer]);
        let mut probe = Probe::of(&server);
        let record = match endpoint {
            "GetObject" => probe.get(),
            "HeadObject" => probe.ask(endpoint, json!({"object_bytes": 1000})),
            _ => probe.ask(endpoint, json!({})),
        };
        if outcome == "ok" {
            assert_ok(&record);
            assert_eq!(record["object_bytes"], 1024, "{answer}");
        } else {
            assert_outcome(&record, outcome, error);
            let is_over = record["total_ns"].is_u64();
            assert_eq!(is_over, outcome == "fail", "{answer}: {record}");
        }
        assert_eq!(server.journal().len(), 1);
    }
    let garbage = Probe::of(&Server::answering(&["garbage"])).get();
    let error = garbage["error"].as_str().unwrap();
    assert!(error.starts_with("malformed response: "), "{garbage}");
}

#[test]
fn an_error_to_head_has_no_document_and_is_understood_all_the_same() {
    let server = Server::answering(&["status:404:NoSuchKey", "ok"]);
    let mut probe = Probe::of(&server);
    assert_outcome(&probe.ask("HeadObject", json!({})), "fail", "http 404");
    let next = probe.ask("HeadObject", json!({}));
    assert_ok(&next);
    assert_eq!(next["new_connection"], false);
}

#[test]
fn where_nobody_listens_nothing_was_executed() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut probe = Probe::with(port, json!({}));
    let record = probe.put(10);
    assert_outcome(&record, "fail", "refused");
    assert_eq!(record["status"], Value::Null);
    assert_eq!(record["connect_ns"], Value::Null);
    assert_eq!(record["object_bytes"], 0);
    assert_eq!(probe.finish(), 0, "an outcome is no failure of the probe");
}

#[test]
fn an_answer_that_comes_while_the_body_is_sent_counts() {
    // Larger than the socket buffers, so that the refusal comes in the middle.
    let server = Server::answering(&["early:403:AccessDenied", "ok"]);
    let mut probe = Probe::of(&server);
    assert_outcome(&probe.put(32 << 20), "fail", "http 403 AccessDenied");
    let next = probe.get();
    assert_ok(&next);
    assert_eq!(next["new_connection"], true);
}

#[test]
fn a_success_that_comes_before_the_body_was_sent_is_not_believed() {
    let server = Server::answering(&["early-ok"]);
    let record = Probe::of(&server).put(32 << 20);
    assert_outcome(&record, "unknown", "http 200 before the request was sent");
}

//! What comes of a request, with a server that does it over a real socket.

use crate::common::{Probe, Server, assert_ok, assert_outcome};
use serde_json::{Value, json};

fn get_from(answer: &str) -> Value {
    Probe::of(&Server::answering(&[answer])).get()
}

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
fn all_framings_of_a_body_are_understood() {
    for answer in [
        "ok",
        "chunked",
        "until-close",
        "connection-close",
        "continue",
        "split",
    ] {
        let record = get_from(answer);
        assert_ok(&record);
        assert_eq!(record["object_bytes"], 1024, "{answer}");
    }
}

#[test]
fn a_body_that_is_not_the_one_written_is_a_failure() {
    assert_outcome(&get_from("wrong-body"), "fail", "checksum mismatch");
}

#[test]
fn a_head_that_announces_another_length_is_a_failure() {
    let server = Server::answering(&["ok"]);
    let record = Probe::of(&server).ask("HeadObject", json!({"object_bytes": 1000}));
    assert_outcome(&record, "fail", "length mismatch: 1024 bytes, not 1000");
}

#[test]
fn what_is_no_listing_is_a_failure() {
    let server = Server::answering(&["status:200:InternalError"]);
    let record = Probe::of(&server).ask("ListObjects", json!({}));
    assert_outcome(
        &record,
        "fail",
        "listing mismatch: no <ListBucketResult> in it",
    );
}

#[test]
fn a_redirect_is_not_followed_and_its_target_is_named() {
    let server = Server::answering(&["redirect:307:http://192.0.2.1/b/k", "ok"]);
    let record = Probe::of(&server).get();
    assert_outcome(&record, "fail", "http 307 to http://192.0.2.1/b/k");
    assert_eq!(server.journal().len(), 1);
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
fn a_broken_answer_leaves_the_outcome_unknown() {
    for (answer, error) in [
        ("truncate", "truncated response"),
        ("truncate-chunked", "truncated response"),
        ("close", "closed (first byte)"),
        ("reset", "reset (first byte)"),
        ("reset-body", "reset (body)"),
    ] {
        let record = get_from(answer);
        assert_outcome(&record, "unknown", error);
        assert_eq!(record["total_ns"], Value::Null, "{answer}");
    }
    let garbage = get_from("garbage");
    assert_eq!(garbage["outcome"], "unknown");
    assert!(
        garbage["error"]
            .as_str()
            .unwrap()
            .starts_with("malformed response: "),
        "{garbage}"
    );
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

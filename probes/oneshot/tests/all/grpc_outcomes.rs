//! What comes of a gRPC request, with a server that does it over a real socket.

use std::io::{self, Write};

use crate::common::bob::{BobServer, Ways};
use crate::common::http2::{
    END_HEADERS, END_STREAM, HEADERS, Peer, Peers, Request, Script, head, header,
};
use crate::common::{KEY, Probe, assert_ok, assert_outcome};
use serde_json::{Value, json};
use tonic::Code;
use wanlat_proto::bob_storage::BobError;

/// A server that answers the first connection's first request so, and then every Ping well.
fn once(answer: impl FnOnce(Peer, Request) -> io::Result<()> + Send + 'static) -> Script<()> {
    Script::run(|peers: &Peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        let request = peer.expect_request()?;
        answer(peer, request)?;
        let mut peer = peers.next()?;
        peer.settings()?;
        while let Some(request) = peer.request()? {
            peer.answer(request.stream, b"")?;
        }
        Ok(())
    })
}

/// The record of a Put that is answered so; the next request must be ok on a new connection.
fn put_to(answer: impl FnOnce(Peer, Request) -> io::Result<()> + Send + 'static) -> Value {
    let server = once(answer);
    let mut probe = Probe::grpc(server.port, json!({}));
    let record = probe.put_blob(1000);
    let next = probe.ping();
    assert_ok(&next);
    assert_eq!(next["new_connection"], true, "{next}");
    assert_eq!(probe.finish(), 0);
    server.join();
    record
}

/// Reads until the client closes.
fn until_it_leaves(mut peer: Peer) -> io::Result<()> {
    while let Ok(Some(_)) = peer.frame() {}
    Ok(())
}

#[test]
fn every_endpoint_is_ok_against_a_server_that_behaves() {
    let server = BobServer::well_behaved();
    let mut probe = Probe::grpc(server.port, json!({}));
    assert_ok(&probe.ping());
    assert_ok(&probe.call("Exist", json!({"key": KEY, "exists": false})));
    let put = probe.put_blob(3000);
    assert_ok(&put);
    assert_eq!(
        (&put["status"], &put["grpc_status"]),
        (&json!(200), &json!(0))
    );
    assert_eq!(put["object_bytes"], 3000);
    let get = probe.get_blob(3000);
    assert_ok(&get);
    assert_eq!(get["object_bytes"], 3000);
    assert_eq!(get["sha256"], put["sha256"]);
    assert_eq!(get["sha256"], oneshot::body::sha256(5, 3000).as_str());
    assert_ok(&probe.call("Exist", json!({"key": KEY})));
    assert_ok(&probe.call("Delete", json!({"key": KEY})));
    let gone = probe.get_blob(3000);
    assert_outcome(&gone, "fail", "grpc NOT_FOUND: KeyNotFound 42");
    assert_eq!(gone["grpc_status"], 5);
    assert_eq!(gone["sha256"], Value::Null);
    let exist = probe.call("Exist", json!({"key": KEY}));
    assert_outcome(&exist, "fail", "wrong answer: [false], not [true]");
    assert_eq!(
        exist["new_connection"], false,
        "an error is an answer like any other"
    );
    assert_eq!(probe.finish(), 0);
}

#[test]
fn a_blob_that_is_not_the_one_written_is_a_failure() {
    let mut blob = oneshot::body::whole(5, 1000);
    blob[999] ^= 1;
    let server = BobServer::with(Ways {
        blob: Some(blob.into()),
        ..Ways::default()
    });
    let mut probe = Probe::grpc(server.port, json!({}));
    assert_outcome(&probe.get_blob(1000), "fail", "checksum mismatch");
    let shorter = probe.get_blob(1001);
    assert_outcome(&shorter, "fail", "length mismatch: 1000 bytes, not 1001");
    let unchecked = probe.call("Get", json!({"key": KEY}));
    assert_ok(&unchecked);
    assert_eq!(unchecked["object_bytes"], 1000);
}

#[test]
fn an_error_inside_of_an_ok_answer_is_one() {
    for (desc, outcome) in [("DuplicateKey", "fail"), ("Timeout", "unknown")] {
        let server = BobServer::with(Ways {
            bob_error: Some(BobError {
                code: 7,
                desc: desc.into(),
            }),
            ..Ways::default()
        });
        let mut probe = Probe::grpc(server.port, json!({}));
        let error = format!("bob error 7: {desc}");
        assert_outcome(&probe.put_blob(10), outcome, &error);
        assert_outcome(&probe.call("Delete", json!({"key": KEY})), outcome, &error);
        assert_eq!(probe.ping()["outcome"], "ok");
    }
}

#[test]
fn a_server_that_dies_leaves_the_outcome_unknown_and_the_run_goes_on() {
    let closed = put_to(|_, _| Ok(()));
    assert_outcome(&closed, "unknown", "closed (first byte)");
    assert_eq!(closed["total_ns"], Value::Null);
    assert_eq!(closed["grpc_status"], Value::Null);
    assert_eq!(closed["object_bytes"], 1000, "it was sent");
    let reset = put_to(|peer, _| peer.reset());
    assert_outcome(&reset, "unknown", "reset (first byte)");
    let truncated = put_to(|mut peer, request| peer.headers(request.stream));
    assert_outcome(&truncated, "unknown", "truncated response");
    assert_eq!(truncated["status"], 200);
}

#[test]
fn an_answer_given_before_the_server_goes_away_counts() {
    let record = put_to(|mut peer, request| {
        peer.goaway(request.stream, 0)?;
        peer.answer(request.stream, b"")?;
        until_it_leaves(peer)
    });
    assert_ok(&record);
}

#[test]
fn what_is_not_grpc_is_not_taken_for_an_answer() {
    type Answer = fn(&mut Peer, u32) -> io::Result<()>;
    let answers: [(&str, Answer); 4] = [
        ("malformed response: ", |peer, _| {
            let text = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            peer.stream.write_all(text)
        }),
        ("malformed response: no gRPC status", |peer, stream| {
            peer.headers(stream)?;
            peer.message(stream, b"")?;
            let block = header("x", "y");
            peer.send(HEADERS, END_HEADERS | END_STREAM, stream, &block)
        }),
        ("malformed response: there is no message", |peer, stream| {
            peer.headers(stream)?;
            peer.trailers(stream, "0")
        }),
        ("malformed response: ", |peer, stream| {
            peer.goaway(stream, 0)?;
            peer.answer(stream, b"\xff")
        }),
    ];
    for (expected, answer) in answers {
        let record = put_to(move |mut peer, request| answer(&mut peer, request.stream));
        assert_eq!(record["outcome"], "unknown", "{record}");
        let error = record["error"].as_str().unwrap();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_proxys_answer_is_judged_by_its_http_status() {
    for (status, outcome) in [("503", "unknown"), ("404", "fail")] {
        let record = put_to(move |mut peer, request| {
            peer.goaway(request.stream, 0)?;
            let block = header(":status", status);
            peer.send(HEADERS, END_HEADERS | END_STREAM, request.stream, &block)?;
            until_it_leaves(peer)
        });
        assert_outcome(&record, outcome, &format!("http {status}"));
        assert_eq!(record["status"].to_string(), status);
        assert_eq!(record["grpc_status"], Value::Null);
    }
}

#[test]
fn a_status_without_a_message_comes_in_the_headers_too() {
    let record = put_to(|mut peer, request| {
        peer.goaway(request.stream, 0)?;
        let block = [
            head(),
            header("grpc-status", "5"),
            header("grpc-message", "KeyNotFound%207"),
        ]
        .concat();
        peer.send(HEADERS, END_HEADERS | END_STREAM, request.stream, &block)?;
        until_it_leaves(peer)
    });
    assert_outcome(&record, "fail", "grpc NOT_FOUND: KeyNotFound 7");
    assert!(record["total_ns"].as_u64() > Some(0), "{record}");
}

#[test]
fn an_answer_that_comes_while_the_message_is_sent_counts_unless_it_says_ok() {
    // The server's window is never widened, so that a large message cannot leave.
    for (status, outcome, error) in [
        ("7", "fail", "grpc PERMISSION_DENIED"),
        ("0", "unknown", "grpc OK before the request was sent"),
    ] {
        let server = Script::run(move |peers| {
            let mut peer = peers.next()?;
            peer.settings()?;
            let stream = loop {
                let (kind, _, stream, _) = peer.frame()?.unwrap();
                if kind == HEADERS {
                    break stream;
                }
            };
            let block = [head(), header("grpc-status", status)].concat();
            peer.send(HEADERS, END_HEADERS | END_STREAM, stream, &block)?;
            let mut next = peers.next()?;
            next.settings()?;
            let request = next.expect_request()?;
            next.answer(request.stream, b"")
        });
        let mut probe = Probe::grpc(server.port, json!({}));
        let record = probe.put_blob(1 << 20);
        assert_outcome(&record, outcome, error);
        assert_eq!(record["sent_ns"], Value::Null);
        assert!(record["object_bytes"].as_u64() < Some(1 << 20), "{record}");
        assert_ok(&probe.ping());
        server.join();
    }
}

#[test]
fn a_request_beyond_the_limit_is_never_sent() {
    let server = BobServer::well_behaved();
    let mut probe = Probe::grpc(server.port, json!({"max_message_bytes": 1000}));
    let record = probe.put_blob(1001);
    assert_outcome(
        &record,
        "not_sent",
        "the object alone is 1001 bytes long, more than `max_message_bytes`, 1000",
    );
    assert_eq!(record["sent_ns"], Value::Null);
    // Around 970 bytes there are a key, a time, and what says where they begin.
    let record = probe.put_blob(980);
    assert_outcome(
        &record,
        "not_sent",
        "the request is 1006 bytes long, more than `max_message_bytes`, 1000",
    );
    assert_eq!(server.reached(), []);
    assert_ok(&probe.put_blob(974));
    assert_eq!(server.reached().len(), 1);
}

#[test]
fn a_servers_own_limit_is_told_as_it_says_it() {
    // It answers when it has seen how long the message is, and takes no more of it.
    let server = BobServer::with(Ways {
        max_message_bytes: Some(1 << 20),
        ..Ways::default()
    });
    let mut probe = Probe::grpc(server.port, json!({}));
    for _ in 0..5 {
        let record = probe.put_blob(50 << 20);
        assert_eq!(record["outcome"], "fail", "{record}");
        assert_eq!(record["grpc_status"], Code::OutOfRange as i32);
        assert_ok(&probe.ping());
    }
}

#[test]
fn an_answer_beyond_the_limit_is_told_with_both_sizes() {
    let server = BobServer::with(Ways {
        blob: Some(vec![0; 100_000].into()),
        ..Ways::default()
    });
    let mut probe = Probe::grpc(server.port, json!({"max_message_bytes": 99_999}));
    let record = probe.call("Get", json!({"key": KEY}));
    assert_outcome(
        &record,
        "fail",
        "the answer is 100004 bytes long, more than `max_message_bytes`, 99999",
    );
    let next = probe.ping();
    assert_ok(&next);
    assert_eq!(
        next["new_connection"], true,
        "what was left lies in the old one"
    );
}

//! What a gRPC server sees of it: each planned request exactly once, and nothing else.

use crate::common::bob::BobServer;
use crate::common::http2::{
    ACK, CANCEL, DATA, END_HEADERS, END_STREAM, HEADERS, PING, REFUSED_STREAM, SETTINGS, Script,
    WINDOW_UPDATE, head, header,
};
use crate::common::{KEY, Probe, assert_ok};
use oneshot::clock::unix_s;
use serde_json::{Value, json};

#[test]
fn a_request_is_sent_once_whatever_comes_of_it() {
    // Every way to fail that a client may be tempted to try again after.
    let server = Script::run(|peers| {
        for way in 0..6 {
            let mut peer = peers.next()?;
            peer.settings()?;
            let request = peer.expect_request()?;
            match way {
                0 => {}
                1 => peer.rst_stream(request.stream, REFUSED_STREAM)?,
                2 => peer.rst_stream(request.stream, CANCEL)?,
                3 => peer.goaway(0, 0)?,
                4 => {
                    // Never answered: time runs out.
                    while let Some((kind, ..)) = peer.frame()? {
                        assert!(kind != HEADERS && kind != DATA, "sent again");
                    }
                    continue;
                }
                _ => {
                    peer.goaway(request.stream, 0)?;
                    let block = [head(), header("grpc-status", "14")].concat();
                    peer.send(HEADERS, END_HEADERS | END_STREAM, request.stream, &block)?;
                }
            }
            if way == 0 {
                peer.reset()?;
            } else {
                assert!(peer.request()?.is_none(), "sent again after way {way}");
            }
        }
        Ok(peers.has_more())
    });
    let mut probe = Probe::grpc(server.port, json!({}));
    let put = |way| {
        let deadline_ms = if way == 4 { 200 } else { 10_000 };
        let object = json!({"key": KEY, "object_bytes": 100, "body_seed": 5,
                            "deadline_ms": deadline_ms});
        probe.call("Put", object)
    };
    let records: Vec<Value> = (0..6).map(put).collect();
    let outcomes: Vec<&str> = records
        .iter()
        .map(|record| record["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        outcomes,
        ["unknown", "fail", "unknown", "fail", "unknown", "unknown"]
    );
    assert!(
        records
            .iter()
            .all(|record| record["new_connection"] == true)
    );
    assert_eq!(probe.finish(), 0);
    assert!(!server.join(), "a connection that no record tells of");
}

#[test]
fn requests_are_what_bob_expects() {
    let server = BobServer::well_behaved();
    let header = json!({"metadata": {"x-trace": "on"}});
    let mut probe = Probe::grpc(server.port, header);
    let before_s = unix_s();
    probe.put_blob(10);
    probe.get_blob(10);
    probe.call("Exist", json!({"key": KEY}));
    probe.call("Delete", json!({"key": KEY}));
    probe.ping();
    let reached = server.reached();
    let endpoints: Vec<&str> = reached.iter().map(|one| one.endpoint).collect();
    assert_eq!(endpoints, ["Put", "Get", "Exist", "Delete", "Ping"]);
    let key = [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0xff];
    for one in &reached {
        if one.endpoint != "Ping" {
            assert_eq!(one.keys, [&key[..]], "{one:?}");
        }
        if matches!(one.endpoint, "Put" | "Delete") {
            let timestamp = one.timestamp.unwrap();
            assert!((before_s..=unix_s()).contains(&timestamp), "{one:?}");
        }
        let header = |name: &str| one.headers.get(name).map(|it| it.to_str().unwrap());
        assert_eq!(header("x-trace"), Some("on"));
        assert_eq!(header("grpc-encoding"), None);
        assert_eq!(header("grpc-accept-encoding"), None);
        assert_eq!(header("grpc-timeout"), None, "the deadline is our own");
    }
}

#[test]
fn a_kept_connection_that_the_server_closed_is_replaced_before_anything_is_sent() {
    for goes_away in [false, true] {
        let (closed, wait) = std::sync::mpsc::channel();
        let server = Script::run(move |peers| {
            let mut peer = peers.next()?;
            peer.settings()?;
            let request = peer.expect_request()?;
            peer.answer(request.stream, b"")?;
            if goes_away {
                peer.goaway(request.stream, 0)?;
                closed.send(()).unwrap();
                assert!(peer.request()?.is_none(), "sent after GOAWAY");
            } else {
                drop(peer);
                closed.send(()).unwrap();
            }
            let mut peer = peers.next()?;
            let request = peer.expect_request()?;
            peer.answer(request.stream, b"")
        });
        let mut probe = Probe::grpc(server.port, json!({}));
        assert_ok(&probe.ping());
        wait.recv().unwrap();
        let record = probe.ping();
        assert_ok(&record);
        assert_eq!(record["new_connection"], true, "{record}");
        server.join();
    }
}

#[test]
fn what_a_server_says_between_requests_is_answered_and_belongs_to_none() {
    let (said, wait) = std::sync::mpsc::channel();
    let server = Script::run(move |peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        let request = peer.expect_request()?;
        peer.answer(request.stream, b"")?;
        peer.send(PING, 0, 0, b"alive? \0")?;
        said.send(()).unwrap();
        let answered = loop {
            let (kind, flags, _, payload) = peer.frame()?.unwrap();
            assert_ne!(kind, HEADERS, "the answer to PING comes first");
            if kind == PING {
                break (flags, payload);
            }
        };
        assert_eq!(answered, (ACK, b"alive? \0".to_vec()));
        let request = peer.expect_request()?;
        peer.answer(request.stream, b"")
    });
    let mut probe = Probe::grpc(server.port, json!({}));
    assert_ok(&probe.ping());
    wait.recv().unwrap();
    let record = probe.ping();
    assert_ok(&record);
    assert_eq!(record["new_connection"], false, "{record}");
    assert_eq!(record["reads"], 1, "{record}");
    server.join();
}

#[test]
fn a_small_request_leaves_in_one_piece_and_nothing_else_with_it() {
    let server = Script::run(|peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        let request = peer.expect_request()?;
        peer.answer(request.stream, b"")?;
        let mut kinds = Vec::new();
        while let Some((kind, ..)) = peer.frame()? {
            kinds.push(kind);
            if kind == DATA {
                peer.answer(3, b"")?;
            }
        }
        Ok(kinds)
    });
    let mut probe = Probe::grpc(server.port, json!({}));
    probe.ping();
    let record = probe.put_blob(1000);
    assert_ok(&record);
    assert_eq!(record["retransmits"], 0);
    assert_eq!(probe.finish(), 0);
    let mut kinds = server.join();
    // Our acknowledgement of the server's SETTINGS may come with the first request or after it.
    kinds.retain(|kind| *kind != SETTINGS);
    assert_eq!(kinds, [HEADERS, DATA], "no {WINDOW_UPDATE} in between");
}

//! A delay put in somewhere shows where it was put in, and nowhere else, also over gRPC.
//!
//! A busy machine makes instants late. So what counts from a request's start can only be too long: that
//! a delay is in it is true of every request, that it is not is shown by the quickest of a few. What
//! counts from one read to another can be too short as well, when the first one came late: the longest
//! of a few shows that the delay is in it.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::common::bob::BobServer;
use crate::common::http2::{
    ACK, DATA, END_HEADERS, HEADERS, PING, Peer, SETTINGS, Script, WINDOW_UPDATE, header,
};
use crate::common::{
    Probe, assert_ok, assert_outcome, assert_phases, hashing_ns, longest, ms, quickest,
};
use serde_json::{Value, json};

const DELAY_MS: f64 = 100.0;
const DELAY: Duration = Duration::from_millis(100);

/// A few Pings to a server that answers each so.
fn some(answer: impl Fn(&mut Peer, u32) -> io::Result<()> + Send + 'static) -> Vec<Value> {
    let server = Script::run(move |peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        while let Some(request) = peer.request()? {
            answer(&mut peer, request.stream)?;
        }
        Ok(())
    });
    let mut probe = Probe::grpc(server.port, json!({}));
    let records: Vec<Value> = (0..5).map(|_| probe.ping()).collect();
    records.iter().for_each(assert_ok);
    assert_eq!(probe.finish(), 0);
    server.join();
    records
}

fn sent_ms(record: &Value) -> f64 {
    ms(record, "sent_ns")
}

fn first_byte_ms(record: &Value) -> f64 {
    ms(record, "first_byte_ns")
}

fn body_ms(record: &Value) -> f64 {
    ms(record, "total_ns") - first_byte_ms(record)
}

#[test]
fn the_phases_are_in_order_and_only_a_new_connection_takes_time() {
    let server = BobServer::well_behaved();
    let mut probe = Probe::grpc(server.port, json!({}));
    assert_phases(|| probe.put_blob(100));
}

#[test]
fn delays_before_headers_data_and_trailers_show_where_they_are() {
    let records = some(|peer, stream| {
        sleep(DELAY);
        peer.headers(stream)?;
        sleep(DELAY);
        peer.message(stream, b"")?;
        sleep(2 * DELAY);
        peer.trailers(stream, "0")
    });
    assert!(quickest(&records, sent_ms) < DELAY_MS);
    assert!(quickest(&records, first_byte_ms) >= DELAY_MS);
    assert!(quickest(&records, first_byte_ms) < 2.0 * DELAY_MS);
    assert!(quickest(&records, |record| ms(record, "total_ns")) >= 4.0 * DELAY_MS);
    assert!(longest(&records, body_ms) >= 3.0 * DELAY_MS * 0.99);
    assert!(quickest(&records, body_ms) < 4.0 * DELAY_MS);
    let gap_ms = |record: &Value| ms(record, "longest_gap_ns");
    assert!(longest(&records, gap_ms) >= 2.0 * DELAY_MS * 0.99);
    assert!(quickest(&records, gap_ms) < 3.0 * DELAY_MS);
    for record in &records {
        assert_eq!(record["elapsed_ns"], record["total_ns"]);
    }
    let reads = records.iter().map(|record| record["reads"].as_u64());
    assert_eq!(reads.max().unwrap(), Some(3));
}

#[test]
fn frames_that_are_not_the_responses_are_not_its_first_byte() {
    let records = some(|peer, stream| {
        peer.send(SETTINGS, 0, 0, &[])?;
        peer.send(PING, 0, 0, b"whatever")?;
        peer.send(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])?;
        peer.send(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1])?;
        sleep(DELAY);
        peer.answer(stream, b"")
    });
    assert!(quickest(&records, first_byte_ms) >= DELAY_MS);
    for record in &records {
        assert_eq!(record["reads"], 1, "{record}");
        assert_eq!(record["longest_gap_ns"], 0, "{record}");
    }
}

#[test]
fn an_interim_response_is_not_the_first_byte() {
    let records = some(|peer, stream| {
        peer.send(HEADERS, END_HEADERS, stream, &header(":status", "103"))?;
        sleep(DELAY);
        peer.answer(stream, b"")
    });
    assert!(quickest(&records, first_byte_ms) >= DELAY_MS);
    for record in &records {
        assert_eq!(record["status"], 200);
        assert_eq!(record["longest_gap_ns"], 0, "{record}");
    }
}

#[test]
fn nobody_waits_for_the_servers_settings() {
    // It says nothing at all before it has the whole request.
    let server = Script::run(|peers| {
        let mut peer = peers.next()?;
        let request = peer.expect_request()?;
        peer.settings()?;
        peer.answer(request.stream, b"")
    });
    let record = Probe::grpc(server.port, json!({})).ping();
    assert_ok(&record);
    server.join();
}

#[test]
fn sent_is_when_the_last_byte_left() {
    // A window of 64 KiB, which is widened only after a while, holds back the rest of the message.
    let server = Script::run(|peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        let (mut received, mut stream) = (0, 0);
        while received < 65_535 {
            let (kind, _, of, payload) = peer.frame()?.unwrap();
            if kind == DATA {
                received += payload.len();
                stream = of;
            }
        }
        sleep(DELAY);
        for of in [0, stream] {
            peer.send(WINDOW_UPDATE, 0, of, &[0, 1, 0, 0])?;
        }
        let request = peer.expect_request()?;
        peer.answer(request.stream, b"")
    });
    let record = Probe::grpc(server.port, json!({})).put_blob(100_000);
    assert_ok(&record);
    assert!(ms(&record, "sent_ns") >= DELAY_MS, "{record}");
    assert_eq!(record["object_bytes"], 100_000);
    server.join();
}

/// The record of a request to a server that does so, with a deadline of 150 ms, and how late it was.
fn timed_out(
    object_bytes: u64,
    answer: impl FnOnce(&mut Peer) -> io::Result<()> + Send + 'static,
) -> Value {
    let server = Script::run(|peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        answer(&mut peer)?;
        while peer.frame()?.is_some() {}
        let mut next = peers.next()?;
        let request = next.expect_request()?;
        next.answer(request.stream, b"")
    });
    let mut probe = Probe::grpc(server.port, json!({"deadline_ms": 150}));
    let record = probe.put_blob(object_bytes);
    assert_eq!(record["total_ns"], Value::Null);
    let elapsed_ms = ms(&record, "elapsed_ns");
    assert!((150.0..10_000.0).contains(&elapsed_ms), "{record}");
    // A late answer to the first request must not be taken for the second one's.
    let next = probe.call("Ping", json!({"deadline_ms": 10_000}));
    assert_ok(&next);
    assert_eq!(next["new_connection"], true);
    server.join();
    record
}

#[test]
fn the_deadline_is_kept_in_every_stage() {
    let first_byte = timed_out(10, |_| Ok(()));
    assert_outcome(&first_byte, "unknown", "timeout (first byte)");
    let body = timed_out(10, |peer| {
        let request = peer.expect_request()?;
        peer.headers(request.stream)
    });
    assert_outcome(&body, "unknown", "timeout (body)");
    // More than the window takes, which nobody widens; the server reads on.
    let send = timed_out(1 << 20, |_| Ok(()));
    assert_outcome(&send, "unknown", "timeout (send)");
    assert!(send["object_bytes"].as_u64() < Some(65_536), "{send}");
    // And a server that keeps the connection busy.
    let busy = timed_out(10, |peer| {
        let until = std::time::Instant::now() + Duration::from_millis(300);
        while std::time::Instant::now() < until {
            if peer.send(PING, ACK, 0, b"whatever").is_err() {
                break;
            }
        }
        Ok(())
    });
    assert_outcome(&busy, "unknown", "timeout (first byte)");
}

#[test]
fn encoding_and_checking_a_blob_that_is_held_are_not_in_the_time() {
    let bytes = oneshot::body::WHOLE_BYTES;
    let server = BobServer::well_behaved();
    let mut probe = Probe::grpc(server.port, json!({}));
    let hash_ns = hashing_ns(bytes);
    for get in [false, true] {
        let asked_ns = oneshot::clock::now_ns();
        let record = if get {
            probe.get_blob(bytes)
        } else {
            probe.put_blob(bytes)
        };
        let answered_ns = oneshot::clock::now_ns();
        assert_ok(&record);
        let total_ns = record["total_ns"].as_u64().unwrap();
        let around_ns = answered_ns - asked_ns - total_ns;
        assert!(
            around_ns > hash_ns / 2,
            "moved in {total_ns} ns, {around_ns} ns around it"
        );
    }
}

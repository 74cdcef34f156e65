//! A delay put in somewhere shows where it was put in, and nowhere else.
//!
//! Delays are 150 ms. That a delay is in a time is true of every request. That it is not is shown by
//! the quickest of a few, as a busy machine adds to any of them, but takes from none.

use std::net::{TcpListener, TcpStream};

use crate::common::{
    Probe, Server, assert_ok, assert_outcome, assert_phases, hashing_ns, longest, ms, quickest,
};
use serde_json::{Value, json};

const DELAY_MS: f64 = 150.0;

/// A few requests to a server that answers each alike.
fn some(answer: &str) -> Vec<Value> {
    let server = Server::answering(&[answer]);
    let mut probe = Probe::of(&server);
    let records: Vec<Value> = (0..5).map(|_| probe.get()).collect();
    records.iter().for_each(assert_ok);
    records
}

fn body_ms(record: &Value) -> f64 {
    ms(record, "total_ns") - ms(record, "first_byte_ns")
}

#[test]
fn a_delay_before_the_first_byte_is_in_first_byte_and_not_in_the_body() {
    let records = some("wait:150");
    assert!(quickest(&records, |record| ms(record, "first_byte_ns")) >= DELAY_MS);
    assert!(quickest(&records, |record| ms(record, "sent_ns")) < DELAY_MS);
    assert!(quickest(&records, body_ms) < DELAY_MS);
}

#[test]
fn a_delay_in_the_body_is_in_total_and_in_the_longest_gap_and_not_in_first_byte() {
    let records = some("wait-body:150");
    assert!(quickest(&records, |record| ms(record, "first_byte_ns")) < DELAY_MS);
    // A first read that came late leaves less of the delay behind it, but never less in total.
    assert!(quickest(&records, |record| ms(record, "total_ns")) >= DELAY_MS);
    assert!(longest(&records, body_ms) >= DELAY_MS * 0.99);
    assert!(longest(&records, |record| ms(record, "longest_gap_ns")) >= DELAY_MS * 0.99);
}

#[test]
fn an_interim_response_is_not_the_first_byte() {
    let server = Server::answering(&["continue"]);
    let record = Probe::of(&server).get();
    assert_ok(&record);
    assert_eq!(record["status"], 200);
    assert!(ms(&record, "first_byte_ns") >= 20.0, "{record}");
    assert_eq!(
        record["longest_gap_ns"], 0,
        "the wait after 100 Continue is not the body's"
    );
}

#[test]
fn the_phases_are_in_order_and_only_a_new_connection_takes_time() {
    let server = Server::answering(&["ok"]);
    let mut probe = Probe::of(&server);
    assert_phases(|| probe.get());
}

#[test]
fn the_deadline_is_kept_in_every_stage() {
    for (answer, object_bytes, error) in [
        ("never", 0, "timeout (first byte)"),
        ("wait-body:10000", 1024, "timeout (body)"),
        // More than both socket buffers take.
        ("no-read", 32 << 20, "timeout (send)"),
    ] {
        let server = Server::answering(&[answer]);
        let mut probe = Probe::with(server.port, json!({"deadline_ms": 150}));
        let record = if answer == "wait-body:10000" {
            probe.get()
        } else {
            probe.put(object_bytes)
        };
        assert_outcome(&record, "unknown", error);
        assert_eq!(record["total_ns"], Value::Null);
        let elapsed_ms = ms(&record, "elapsed_ns");
        assert!(
            (DELAY_MS..10_000.0).contains(&elapsed_ms),
            "{answer}: {record}"
        );
    }
}

#[test]
fn a_request_may_have_a_deadline_of_its_own_and_late_answers_are_nobodys() {
    let object = |deadline_ms: u64| json!({"object_bytes": 1024, "body_seed": 0, "deadline_ms": deadline_ms});
    let server = Server::answering(&["wait:3000", "ok"]);
    let mut probe = Probe::with(server.port, json!({"deadline_ms": 10_000}));
    let record = probe.ask("GetObject", object(150));
    assert_outcome(&record, "unknown", "timeout (first byte)");
    let elapsed_ms = ms(&record, "elapsed_ns");
    assert!((DELAY_MS..10_000.0).contains(&elapsed_ms), "{record}");
    // The late answer to the first request must not be taken for the second one's.
    let record = probe.get();
    assert_ok(&record);
    assert_eq!(record["new_connection"], true);

    let server = Server::answering(&["wait:400"]);
    let mut probe = Probe::with(server.port, json!({"deadline_ms": 150}));
    assert_ok(&probe.ask("GetObject", object(10_000)));
}

#[test]
fn a_deadline_while_connecting_is_a_certain_failure() {
    // A listener whose queue is full drops SYNs: nobody accepts, so that it stays full.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let _queued = TcpStream::connect(address).unwrap();

    let record = Probe::with(address.port(), json!({"deadline_ms": 150})).put(10);
    assert_outcome(&record, "fail", "timeout (connect)");
    assert_eq!(record["connect_ns"], Value::Null);
    assert_eq!(record["new_connection"], true);
    assert!(ms(&record, "elapsed_ns") >= DELAY_MS, "{record}");
}

#[test]
fn checking_a_body_that_is_held_is_not_in_the_time() {
    let bytes = oneshot::body::WHOLE_BYTES;
    let server = Server::with(&["--object-bytes", &bytes.to_string()], &["ok"]);
    let mut probe = Probe::of(&server);
    let mut get = || {
        let record = probe.ask("GetObject", json!({"object_bytes": bytes, "body_seed": 0}));
        let answered_ns = oneshot::clock::now_ns();
        assert_ok(&record);
        assert_eq!(record["object_bytes"], bytes);
        let total_ns = record["total_ns"].as_u64().unwrap();
        (
            total_ns,
            answered_ns - record["start_ns"].as_u64().unwrap() - total_ns,
        )
    };
    get();
    let (total_ns, afterwards_ns) = get();
    // It is compared and hashed behind the time, not in it.
    assert!(
        afterwards_ns > hashing_ns(bytes) / 2,
        "moved in {total_ns} ns, checked in {afterwards_ns} ns"
    );
}

#[test]
fn a_delayed_ack_stall_leaves_its_signs() {
    // The server's Nagle waits for our kernel's delayed acknowledgement: the 40 ms kind.
    let server = Server::answering(&["split"]);
    let mut probe = Probe::of(&server);
    let records: Vec<Value> = (0..60).map(|_| probe.get()).collect();
    let stalled = |record: &&Value| ms(record, "longest_gap_ns") >= 30.0;
    let stalls: Vec<&Value> = records.iter().filter(stalled).collect();
    let signs = stalls
        .iter()
        .filter(|record| record["acks_sent"].as_u64() >= Some(1));
    // A gap that the machine makes has no acknowledgement in it.
    assert!(signs.count() >= 3, "{stalls:?}");

    let server = Server::answering(&["ok"]);
    let mut probe = Probe::of(&server);
    probe.get(); // a fresh connection acknowledges at once, with segments of their own
    for _ in 0..60 {
        let record = probe.get();
        assert_eq!(
            record["longest_gap_ns"], 0,
            "an answer in one piece has no gap: {record}"
        );
    }
}

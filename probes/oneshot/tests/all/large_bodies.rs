//! Bodies that are made while they are sent and compared while they come: the very same bytes, in the
//! memory of a few blocks.

use crate::common::bob::{BobServer, Ways};
use crate::common::http2::{Script, framed};
use crate::common::{Probe, Server, assert_ok, assert_outcome};
use bytes::Bytes;
use oneshot::body;
use serde_json::{Value, json};

/// Longer than what is held, and cut by no power of two.
const BYTES: u64 = body::WHOLE_BYTES + 1_234_567;
const LARGE: u64 = 64 << 20;
/// What `oneshot` and its libraries take, and what is held: far from any body's length.
const MEMORY_BYTES: u64 = 24 << 20;

fn get_from(answer: &str) -> Value {
    let server = Server::with(&["--object-bytes", &BYTES.to_string()], &[answer]);
    let record =
        Probe::of(&server).ask("GetObject", json!({"object_bytes": BYTES, "body_seed": 0}));
    let read_bytes = record["object_bytes"].as_u64().unwrap();
    assert!(read_bytes <= BYTES, "{record}");
    record
}

fn blob(bytes: u64) -> Vec<u8> {
    body::whole(5, bytes)
}

#[test]
fn an_object_is_the_right_one_however_its_end_is_told() {
    for answer in ["ok", "split", "chunked", "until-close", "wait-body:20"] {
        let record = get_from(answer);
        assert_ok(&record);
        assert_eq!(record["object_bytes"], BYTES, "{answer}");
        assert_eq!(record["sha256"], body::sha256(0, BYTES), "{answer}");
        assert!(record["verify_ns"].as_u64() > Some(0), "{record}");
        assert_eq!(record["make_ns"], Value::Null);
    }
}

#[test]
fn a_wrong_object_is_told_from_one_that_did_not_come_whole() {
    let wrong = get_from("wrong-body");
    assert_outcome(&wrong, "fail", "checksum mismatch");
    assert_ne!(wrong["sha256"], body::sha256(0, BYTES));
    for answer in ["truncate", "truncate-chunked", "reset-body"] {
        let record = get_from(answer);
        assert_eq!(record["outcome"], "unknown", "{answer}: {record}");
        assert_eq!(record["sha256"], Value::Null, "{answer}");
    }
    let short = |answer: &str| {
        let server = Server::with(&["--object-bytes", &(BYTES - 1).to_string()], &[answer]);
        Probe::of(&server).ask("GetObject", json!({"object_bytes": BYTES, "body_seed": 0}))
    };
    let told = format!("length mismatch: {} bytes, not {BYTES}", BYTES - 1);
    assert_outcome(&short("ok"), "fail", &told);
    let record = short("until-close"); // nobody has said how long it is
    assert_outcome(&record, "unknown", "truncated response");
    assert_eq!(record["sha256"], Value::Null);
}

#[test]
fn what_s3_is_sent_is_the_body_that_was_signed() {
    let server = Server::answering(&["ok"]);
    let mut probe = Probe::of(&server);
    let sizes = [body::WHOLE_BYTES, body::WHOLE_BYTES + 1, BYTES];
    for bytes in sizes {
        let record = probe.put(bytes);
        assert_ok(&record);
        assert_eq!(record["object_bytes"], bytes);
        assert_eq!(record["sha256"], body::sha256(5, bytes));
        let made_meanwhile = record["make_ns"].as_u64() > Some(0);
        assert_eq!(made_meanwhile, bytes > body::WHOLE_BYTES, "{record}");
    }
    assert_eq!(probe.finish(), 0);
    let journal = server.journal();
    assert_eq!(journal.len(), sizes.len());
    for (request, bytes) in journal.iter().zip(sizes) {
        assert_eq!(request["body_bytes"], bytes);
        assert_eq!(request["body_sha256"], body::sha256(5, bytes));
    }
}

#[test]
fn a_wrong_blob_is_told_from_one_that_did_not_come_whole() {
    let flipped = |at: usize| {
        let mut blob = blob(BYTES);
        blob[at] ^= 0x10;
        blob
    };
    let last = BYTES as usize - 1;
    for wrong in [flipped(3_000_000), flipped(last)] {
        let came = body::sha256_of([wrong.as_slice()]);
        let server = BobServer::with(Ways {
            blob: Some(wrong.into()),
            ..Ways::default()
        });
        let record = Probe::grpc(server.port, json!({})).get_blob(BYTES);
        assert_outcome(&record, "fail", "checksum mismatch");
        assert_eq!(record["sha256"], came);
        assert_eq!(record["object_bytes"], BYTES);
    }
    let server = BobServer::with(Ways {
        blob: Some(blob(BYTES - 1).into()),
        ..Ways::default()
    });
    let record = Probe::grpc(server.port, json!({})).get_blob(BYTES);
    let told = format!("length mismatch: {} bytes, not {BYTES}", BYTES - 1);
    assert_outcome(&record, "fail", &told);
}

#[test]
fn a_blob_that_ends_too_early_is_no_answer() {
    // The message announces more than comes before the trailers.
    let server = Script::run(|peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        let request = peer.expect_request()?;
        peer.headers(request.stream)?;
        let whole = wanlat_proto::bob_storage::Blob {
            data: Bytes::from(blob(BYTES)),
            meta: None,
        };
        let whole = framed(&prost::Message::encode_to_vec(&whole));
        for piece in whole[..whole.len() - 1000].chunks(16_384) {
            peer.send(crate::common::http2::DATA, 0, request.stream, piece)?;
        }
        peer.trailers(request.stream, "0")?;
        while peer.frame()?.is_some() {}
        Ok(())
    });
    let record = Probe::grpc(server.port, json!({})).get_blob(BYTES);
    let told = "malformed response: there is no whole message";
    assert_outcome(&record, "unknown", told);
    server.join();
}

#[test]
fn bodies_of_any_length_take_the_memory_of_a_few_blocks() {
    let server = Server::with(&["--object-bytes", &LARGE.to_string()], &["ok"]);
    let mut probe = Probe::of(&server);
    assert_ok(&probe.put(LARGE));
    assert_ok(&probe.ask("GetObject", json!({"object_bytes": LARGE, "body_seed": 0})));
    assert!(probe.peak_bytes() < MEMORY_BYTES, "{}", probe.peak_bytes());

    let server = BobServer::well_behaved();
    for window in ["large", "tonic", "default"] {
        let mut probe = Probe::grpc(server.port, json!({"window": window}));
        let (put, get) = (probe.put_blob(LARGE), probe.get_blob(LARGE));
        assert_ok(&put);
        assert_ok(&get);
        assert_eq!(get["sha256"], body::sha256(5, LARGE));
        assert_eq!(put["sha256"], get["sha256"]);
        assert!(get["verify_ns"].as_u64() > Some(0), "{get}");
        assert!(probe.peak_bytes() < MEMORY_BYTES, "{}", probe.peak_bytes());
    }
}

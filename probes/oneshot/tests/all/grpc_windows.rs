//! HTTP/2's windows are the ones that were asked for, and an answer passes through any.

use crate::common::http2::{DATA, Script, WINDOW_UPDATE, framed};
use crate::common::{Probe, assert_ok};
use serde_json::json;

const MESSAGE_BYTES: i64 = 128 << 20; // the default limit
const MIB: i64 = 1 << 20;

/// What a client with this `window` opens with its first request: a stream's, the connection's.
fn opened(window: &str) -> (i64, i64) {
    let server = Script::run(|peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        let request = peer.expect_request()?;
        peer.answer(request.stream, b"")?;
        // The connection's may be opened behind the request.
        while peer.frame()?.is_some() {}
        Ok((peer.stream_window, peer.connection_window + 5))
    });
    let mut probe = Probe::grpc(server.port, json!({"window": window}));
    assert_ok(&probe.ping());
    assert_eq!(probe.finish(), 0);
    server.join()
}

#[test]
fn windows_are_those_that_were_asked_for() {
    let whole = MESSAGE_BYTES + 5;
    assert_eq!(opened("large"), (whole, 2 * whole));
    assert_eq!(opened("tonic"), (2 * MIB, 5 * MIB));
    assert_eq!(opened("default"), (65_535, 65_535));
}

#[test]
fn a_small_window_is_opened_again_as_the_answer_is_read_and_a_large_one_when_it_was() {
    for (window, expected) in [("large", false), ("tonic", true), ("default", true)] {
        let server = Script::run(|peers| {
            let mut peer = peers.next()?;
            peer.settings()?;
            let request = peer.expect_request()?;
            let blob = wanlat_proto::bob_storage::Blob {
                data: vec![0; 40 << 20].into(),
                meta: None,
            };
            let answer = framed(&prost::Message::encode_to_vec(&blob));
            peer.headers(request.stream)?;
            let mut may = (peer.stream_window, peer.connection_window);
            let mut was_opened = false;
            for piece in answer.chunks(16_000) {
                let length = piece.len() as i64;
                while may.0.min(may.1) < length {
                    let (kind, _, stream, payload) = peer.frame()?.expect("it goes on");
                    if kind == WINDOW_UPDATE {
                        let more = i64::from(u32::from_be_bytes(payload[..4].try_into().unwrap()));
                        let window = if stream == 0 { &mut may.1 } else { &mut may.0 };
                        *window += more;
                        was_opened = true;
                    }
                }
                may = (may.0 - length, may.1 - length);
                peer.send(DATA, 0, request.stream, piece)?;
            }
            peer.trailers(request.stream, "0")?;
            while peer.frame()?.is_some() {}
            Ok(was_opened)
        });
        let mut probe = Probe::grpc(server.port, json!({"window": window}));
        let get = json!({"key": crate::common::KEY, "object_bytes": 40 << 20});
        assert_ok(&probe.call("Get", get));
        assert_eq!(probe.finish(), 0);
        assert_eq!(server.join(), expected, "{window}");
    }
}

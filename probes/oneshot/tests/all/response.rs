//! The reading of a response does not depend on how the network cuts it.

use crate::common::rows;
use oneshot::http::response::{Malformed, Progress, Response};

/// Feeds `bytes` in pieces of `step`; the response, complete, and how many bytes it took.
fn read(bytes: &[u8], step: usize, to_head: bool) -> Result<(Response, usize), Malformed> {
    let mut response = Response::default();
    response.prepare(0, to_head);
    let mut taken = 0;
    for (index, piece) in bytes.chunks(step).enumerate() {
        response.spare()[..piece.len()].copy_from_slice(piece);
        taken += piece.len();
        if response.received(piece.len(), index as u64)? == Progress::Done {
            return Ok((response, taken));
        }
    }
    assert_eq!(
        response.closed(),
        Progress::Done,
        "cut into {step}s, it never ended"
    );
    Ok((response, taken))
}

/// `~` ends a line, as carriage return and line feed.
fn on_the_wire(text: &str) -> String {
    text.replace('~', "\r\n")
}

#[test]
fn a_response_is_the_same_however_it_is_cut() {
    for [text, status, body, keep_alive] in rows(
        "
        HTTP/1.1 200 OK~Content-Length: 5~~hello | 200 | hello | true
        HTTP/1.1 200 OK~Transfer-Encoding: chunked~~3~hel~2;x=y~lo~0~A: b~~ | 200 | hello | true
        HTTP/1.1 200 OK~transfer-encoding: gzip, Chunked~~5~hello~0~~ | 200 | hello | true
        HTTP/1.1 204 No Content~Content-Length: 9~~ | 204 | | true
        HTTP/1.1 100 Continue~~HTTP/1.1 200 OK~Content-Length: 2~~hi | 200 | hi | true
        HTTP/1.1 200 OK~Connection: Close~~to the end | 200 | to the end | false
        HTTP/1.0 200 OK~Content-Length: 2~~hi | 200 | hi | false
        HTTP/1.0 200 OK~Connection: keep-alive~Content-Length: 2~~hi | 200 | hi | true
        ",
    ) {
        let text = on_the_wire(text);
        for step in 1..=text.len() {
            let (response, taken) = read(text.as_bytes(), step, false).unwrap();
            let head = response.head().unwrap();
            assert_eq!(head.status.to_string(), status, "{text:?} in {step}s");
            assert_eq!(
                head.keep_alive.to_string(),
                keep_alive,
                "{text:?} in {step}s"
            );
            assert_eq!(response.body_text(1 << 20), body, "{text:?} in {step}s");
            assert_eq!(response.body_bytes(), body.len());
            assert_eq!(taken, text.len(), "{text:?} in {step}s ended early");
            assert!(!response.has_leftover());
        }
    }
}

#[test]
fn a_response_to_head_has_no_body_whatever_it_announces() {
    for framing in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let text = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
        let (response, _) = read(text.as_bytes(), text.len(), true).unwrap();
        assert_eq!(response.body_bytes(), 0);
        assert!(!response.is_ended_by_close());
    }
}

#[test]
fn the_first_byte_is_the_final_responses() {
    let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (step, first_byte_piece) in [(25, 1), (text.len(), 0), (1, 25)] {
        let (response, _) = read(text, step, false).unwrap();
        assert_eq!(
            response.started_ns(),
            Some(first_byte_piece),
            "in pieces of {step}"
        );
    }
}

#[test]
fn more_than_a_response_is_noticed() {
    let (response, _) = read(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!",
        1000,
        false,
    )
    .unwrap();
    assert!(response.has_leftover());
    assert_eq!(response.body_text(10), "hi");
}

#[test]
fn length_and_chunks_together_are_read_as_chunks_on_a_connection_not_to_be_trusted() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    let (response, _) = read(text, text.len(), false).unwrap();
    assert_eq!(response.body_text(10), "hi");
    assert!(!response.head().unwrap().keep_alive);
}

#[test]
fn what_is_no_response_is_said_to_be_none() {
    for [text, reason] in rows(
        "
        SSH-2.0-OpenSSH_9.2~~ | not an HTTP response
        HTTP/1.1 200 OK~Content-Length: -1~~ | Content-Length is not a number
        HTTP/1.1 200 OK~Content-Length: 1~Content-Length: 2~~ | two different
        HTTP/1.1 200 OK~Content-Length: 99999999999~~ | which nobody expected
        HTTP/1.1 200 OK~Transfer-Encoding: chunked~~xyz~ | size of a chunk
        HTTP/1.1 200 OK~Transfer-Encoding: chunked~~2~hiho~ | longer than its size
        HTTP/1.1 200 OK~Transfer-Encoding: chunked~~ffffffffffff~ | nobody expected
        HTTP/1.1 101 Switching Protocols~~ | 101
        ",
    ) {
        let text = on_the_wire(text);
        let Err(Malformed(what)) = read(text.as_bytes(), text.len(), false) else {
            panic!("{text:?} was taken for a response");
        };
        assert!(what.contains(reason), "{text:?} gave {what}");
    }
}

#[test]
fn a_head_without_end_is_given_up() {
    let mut response = Response::default();
    response.prepare(0, false);
    let line = b"x: y\r\n";
    response.spare()[..17].copy_from_slice(b"HTTP/1.1 200 OK\r\n");
    let mut result = response.received(17, 0);
    for _ in 0..20_000 {
        if result.is_err() {
            return;
        }
        response.spare()[..line.len()].copy_from_slice(line);
        result = response.received(line.len(), 0);
    }
    panic!("a head of 100 kB is still waited for");
}

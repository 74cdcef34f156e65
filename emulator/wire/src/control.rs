//! The control protocol: one JSON object a line, each answered by one line.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::capture;
use crate::impairment::ImpairmentRequest;
use crate::stats::DirectionStats;

/// What can be asked.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Open the interfaces and begin to move frames. Once.
    Start {
        /// All random numbers follow from it.
        seed: u64,
        /// Quantiles of distributions, by the names that impairments call them.
        #[serde(default)]
        tables: HashMap<String, Vec<f64>>,
        /// The links, numbered from 0 in this order.
        links: Vec<LinkRequest>,
    },
    /// Change impairments, all at one instant or, if one is wrong, none.
    Set {
        /// More tables; those that came before are remembered.
        #[serde(default)]
        tables: HashMap<String, Vec<f64>>,
        /// What to change.
        changes: Vec<Change>,
    },
    /// Tell the counters.
    Stats {},
    /// Begin a record of packets.
    Capture {
        /// What of them, and where to.
        capture: capture::Settings,
        /// Directions of links, in the order of the record's interfaces.
        directions: Vec<Place>,
    },
    /// Tell how the record stands.
    #[serde(rename = "capture_status")]
    CaptureStatus {},
    /// End the record.
    #[serde(rename = "capture_stop")]
    CaptureStop {},
}

/// One direction of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Number of the link.
    pub link: usize,
    /// Which way.
    pub direction: Way,
}

/// A link: two interfaces and what happens between them.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRequest {
    /// Name of one interface.
    pub a: String,
    /// Name of the other.
    pub b: String,
    /// For frames received from `a`, sent out of `b`.
    #[serde(default)]
    pub ab: ImpairmentRequest,
    /// For frames received from `b`, sent out of `a`.
    #[serde(default)]
    pub ba: ImpairmentRequest,
}

/// One direction of one link, and its new impairment.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Number of the link.
    pub link: usize,
    /// Which way.
    pub direction: Way,
    /// Replaces the old one whole.
    pub impairment: ImpairmentRequest,
}

/// One of the two directions of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the interface `a` to `b`.
    Ab,
    /// From the interface `b` to `a`.
    Ba,
}

/// A positive answer. Its instant is `CLOCK_MONOTONIC`.
#[derive(Debug, Serialize)]
struct Done<T> {
    ok: bool,
    t_ns: u64,
    #[serde(flatten)]
    extra: T,
}

#[derive(Debug, Serialize)]
struct Nothing {}

#[derive(Debug, Serialize)]
struct Links<'a> {
    links: &'a [LinkStats],
}

/// The counters of a link, as `stats` answers them.
#[derive(Debug, Serialize)]
pub struct LinkStats {
    /// From `a` to `b`.
    pub ab: DirectionStats,
    /// From `b` to `a`.
    pub ba: DirectionStats,
}

#[derive(Debug, Serialize)]
struct Capture<'a> {
    capture: &'a capture::Status,
}

#[derive(Debug, Serialize)]
struct Refusal<'a> {
    ok: bool,
    error: &'a str,
}

/// Reads a request from a line, or says what is wrong with it.
pub fn parse(line: &[u8]) -> Result<Request, String> {
    serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))
}

/// The answer to a request that took effect at `t_ns`.
pub fn answer_done(t_ns: u64) -> String {
    to_line(&Done {
        ok: true,
        t_ns,
        extra: Nothing {},
    })
}

/// The answer to `stats`.
pub fn answer_stats(t_ns: u64, links: &[LinkStats]) -> String {
    to_line(&Done {
        ok: true,
        t_ns,
        extra: Links { links },
    })
}

/// The answer to what concerns the record of packets.
pub fn answer_capture(t_ns: u64, capture: &capture::Status) -> String {
    to_line(&Done {
        ok: true,
        t_ns,
        extra: Capture { capture },
    })
}

/// The answer to what could not be done.
pub fn answer_error(error: &str) -> String {
    to_line(&Refusal { ok: false, error })
}

fn to_line(answer: &impl Serialize) -> String {
    let mut line = serde_json::to_string(answer).expect("plain structs with string keys");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairment::GilbertElliott;

    fn error(line: &str) -> String {
        parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn start_takes_links_with_the_impairments_of_both_ways() {
        let request = parse(
            br#"{"op":"start","seed":1,"tables":{"skewed":[-1,0,2]},"links":[{"a":"w0a","b":"w0b",
                "ab":{"delay_ns":50000000,"jitter_ns":10000000,"table":"skewed","correlation":0.25,
                      "reorder":true,"overtake":0.01,"loss":0.5,"duplicate":0.02,"corrupt":0.03,
                      "rate_bps":1000000,"queue_bytes":65536},
                "ba":{"delay_ns":7,"table":null,"bursts":{"p":0.01,"r":0.3},
                      "rate_bps":null,"queue_bytes":null}}]}"#,
        );
        let ab = ImpairmentRequest {
            delay_ns: 50_000_000,
            jitter_ns: 10_000_000,
            table: Some("skewed".into()),
            correlation: 0.25,
            reorder: true,
            overtake: 0.01,
            loss: 0.5,
            bursts: None,
            duplicate: 0.02,
            corrupt: 0.03,
            rate_bps: Some(1_000_000),
            queue_bytes: Some(65_536),
        };
        let ba = ImpairmentRequest {
            delay_ns: 7,
            bursts: Some(GilbertElliott {
                p: 0.01,
                r: 0.3,
                h: 0.0,
                k: 1.0,
            }),
            ..ImpairmentRequest::default()
        };
        let link = LinkRequest {
            a: "w0a".into(),
            b: "w0b".into(),
            ab,
            ba,
        };
        assert_eq!(
            request,
            Ok(Request::Start {
                seed: 1,
                tables: HashMap::from([("skewed".into(), vec![-1.0, 0.0, 2.0])]),
                links: vec![link]
            })
        );
    }

    #[test]
    fn set_takes_changes() {
        let request = parse(
            br#"{"op":"set","changes":[{"link":3,"direction":"ba","impairment":{"loss":1}}]}"#,
        );
        let change = Change {
            link: 3,
            direction: Way::Ba,
            impairment: ImpairmentRequest {
                loss: 1.0,
                ..ImpairmentRequest::default()
            },
        };
        assert_eq!(
            request,
            Ok(Request::Set {
                tables: HashMap::new(),
                changes: vec![change]
            })
        );
    }

    #[test]
    fn stats_takes_nothing() {
        assert_eq!(parse(br#"{"op":"stats"}"#), Ok(Request::Stats {}));
    }

    #[test]
    fn unknown_keys_are_errors_that_name_the_key() {
        for line in [
            r#"{"op":"stats","verbose":1}"#,
            r#"{"op":"start","seed":1,"links":[],"verbose":1}"#,
            r#"{"op":"start","seed":1,"links":[{"a":"x","b":"y","verbose":1}]}"#,
            r#"{"op":"start","seed":1,"links":[{"a":"x","b":"y","ab":{"verbose":1}}]}"#,
            r#"{"op":"set","changes":[{"link":0,"direction":"ab","impairment":{},"verbose":1}]}"#,
            r#"{"op":"start","seed":1,"links":[{"a":"x","b":"y","ab":{"bursts":{"p":0,"r":0,"verbose":1}}}]}"#,
        ] {
            assert!(error(line).contains("verbose"), "{line}: {}", error(line));
        }
    }

    #[test]
    fn wrong_requests_are_errors_that_say_why() {
        assert!(error(r#"{"op":"stop"}"#).contains("stop"));
        assert!(error(r#"{"seed":1}"#).contains("op"));
        assert!(error(r#"{"op":"start","links":[]}"#).contains("seed"));
        assert!(error(r#"{"op":"set","changes":[{"link":-1}]}"#).contains("-1"));
        for line in ["", "null", "[]", "{", "\u{1f600}", "{\"op\":\"stats\"} x"] {
            assert!(error(line).starts_with("not a request: "), "{line}");
        }
        assert!(parse(b"\xff\xfe{}").is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn answers_are_lines_of_json() {
        assert_eq!(answer_done(5), "{\"ok\":true,\"t_ns\":5}\n");
        assert_eq!(
            answer_stats(5, &[]),
            "{\"ok\":true,\"t_ns\":5,\"links\":[]}\n"
        );
        assert_eq!(
            answer_error("a \"b\"\nc"),
            "{\"ok\":false,\"error\":\"a \\\"b\\\"\\nc\"}\n"
        );
    }
}

//! The control protocol: one JSON object a line, each answered by one line.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::capture;
use crate::impairment::Impairment;
use crate::lateness::LateBin;
use crate::stats::Counters;
use crate::way::Way;

/// What can be asked.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
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
    /// Tell how late frames left, and whether the machine stood still.
    Lateness {
        /// The number of the first bin to tell; the answer has that of the next.
        #[serde(default)]
        since: u64,
    },
    /// Be late on purpose: for tests.
    PlantLateness {
        /// Number of the link.
        link: usize,
        /// Which way.
        direction: Way,
        /// So much later than they are due.
        late_ns: u64,
        /// Frames that arrive from now on, for so long.
        for_ns: u64,
    },
    /// Begin a record of packets.
    Capture {
        /// What of them, and where to.
        capture: capture::Settings,
    },
    /// Tell how the record stands.
    CaptureStatus {},
    /// End the record.
    CaptureStop {},
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
    pub ab: Impairment,
    /// For frames received from `b`, sent out of `a`.
    #[serde(default)]
    pub ba: Impairment,
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
    pub impairment: Impairment,
}

/// An answer: what it does not tell is left out.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    ok: bool,
    /// When the request took effect: `CLOCK_MONOTONIC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    t_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<LinkStats>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<capture::Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<Vec<LateBin>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The counters of a link.
#[derive(Debug, Serialize)]
pub struct LinkStats {
    /// From `a` to `b`.
    pub ab: Counters,
    /// From `b` to `a`.
    pub ba: Counters,
}

impl Answer {
    /// To a request that took effect at `t_ns`.
    pub fn done(t_ns: u64) -> Answer {
        Answer {
            ok: true,
            t_ns: Some(t_ns),
            ..Answer::default()
        }
    }

    /// To `stats`.
    pub fn stats(t_ns: u64, links: Vec<LinkStats>) -> Answer {
        Answer {
            links: Some(links),
            ..Answer::done(t_ns)
        }
    }

    /// To `lateness`: what happened before `t_ns` is in these bins, or in those before.
    pub fn lateness(t_ns: u64, (late, next): (Vec<LateBin>, u64)) -> Answer {
        Answer {
            late: Some(late),
            next: Some(next),
            ..Answer::done(t_ns)
        }
    }

    /// To what concerns the record of packets.
    pub fn capture(t_ns: u64, status: capture::Status) -> Answer {
        Answer {
            capture: Some(status),
            ..Answer::done(t_ns)
        }
    }

    /// To what could not be done.
    pub fn refusal(error: String) -> Answer {
        Answer {
            error: Some(error),
            ..Answer::default()
        }
    }

    /// The line to write.
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("plain structs with string keys");
        line.push('\n');
        line
    }
}

/// Reads a request from a line, or says what is wrong with it.
pub fn parse(line: &[u8]) -> Result<Request, String> {
    serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        parse(line.as_bytes()).unwrap_err()
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
        for (answer, line) in [
            (Answer::done(5), r#"{"ok":true,"t_ns":5}"#),
            (
                Answer::stats(5, vec![]),
                r#"{"ok":true,"t_ns":5,"links":[]}"#,
            ),
            (
                Answer::refusal("a \"b\"\nc".into()),
                r#"{"ok":false,"error":"a \"b\"\nc"}"#,
            ),
        ] {
            assert_eq!(answer.to_line(), format!("{line}\n"));
        }
    }
}

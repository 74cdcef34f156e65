//! ok, fail, unknown or not_sent: what a request's end says about whether it was executed.
//!
//! `fail` is a promise: certainly not executed. Whoever checks a store's durability builds on it,
//! so everything that leaves a doubt is `unknown`. `not_sent` promises the same, and that the store
//! had no part in it: the client's machine could not send the request. What leaves no doubt:
//!
//! | end | outcome | why |
//! | --- | --- | --- |
//! | 2xx, complete, body checks | ok | |
//! | 2xx, complete, body does not check | fail | a read whose answer is wrong |
//! | 2xx before the request was sent whole | unknown | what did the server act on? |
//! | 2xx, but another one than expected | unknown of a write, fail of a read | something was done |
//! | no socket, port or memory for it ([`is_local`]) before a byte of the request was taken by the kernel | not_sent | the client's machine |
//! | not connected otherwise; or no byte of the request taken by the kernel | fail | it never left |
//! | timed out, reset, closed, truncated, malformed after that | unknown | |
//! | 304, 307, 308; any other 3xx to a read | fail | never followed; the answer says to ask elsewhere |
//! | any other 3xx to a write | unknown | 303, and often 302, says that it was done, and where to look |
//! | 4xx | fail | refused, or answered in the negative |
//! | 400 IncompleteBody to a write | unknown | the body was sent whole: MinIO's word for drives that lost it on the way, full ones for example, while others may have it |
//! | 408, 499 | unknown | a timeout or a cancelled context inside the server; MinIO has 499 for a request cut off anywhere on its way |
//! | 501 | fail | not implemented |
//! | 503 XMinioServerNotInitialized, XMinioIAMNotInitialized | fail | refused at the door |
//! | 503 SlowDown, SlowDownRead to a read | fail | a read not served has no effect to doubt |
//! | 503 SlowDown, SlowDownRead, SlowDownWrite to a write | unknown | MinIO's words for "no quorum": a minority of drives may hold the write |
//! | 503 ServiceUnavailable | unknown | Garage's word for "no quorum" and for its internal timeouts |
//! | 503 RequestTimeout, 503 without a code, any other 5xx | unknown | |
//!
//! 429 is a 4xx like any other: a limiter stands before the work it limits.

use rustix::io::Errno;
use serde::Serialize;

use crate::failure::{Cause, Failure, Stage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    Fail,
    #[default]
    Unknown,
    NotSent,
}

/// How the error of an answer begins that says by itself that there is no such object.
pub const NOT_FOUND: &str = "not found";

/// An outcome and, unless it is ok, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: Outcome,
    pub error: Option<String>,
}

impl Verdict {
    fn new(outcome: Outcome, error: Option<String>) -> Self {
        Verdict { outcome, error }
    }

    pub fn ok() -> Self {
        Verdict::new(Outcome::Ok, None)
    }

    pub fn fail(error: impl Into<String>) -> Self {
        Verdict::new(Outcome::Fail, Some(error.into()))
    }

    /// There is no such object, where neither HTTP nor gRPC has a status that says so.
    pub fn not_found(what: &str) -> Self {
        Verdict::fail(format!("{NOT_FOUND}: {what}"))
    }

    pub fn unknown(error: impl Into<String>) -> Self {
        Verdict::new(Outcome::Unknown, Some(error.into()))
    }

    pub fn not_sent(error: impl Into<String>) -> Self {
        Verdict::new(Outcome::NotSent, Some(error.into()))
    }
}

/// The verdict on a request that got no complete response, of which the kernel had taken
/// `sent_bytes`.
pub fn of_failure(failure: &Failure, sent_bytes: usize) -> Verdict {
    let Failure { stage, cause } = failure;
    let error = match cause {
        Cause::Timeout => format!("timeout ({stage})"),
        Cause::Refused => "refused".to_owned(),
        Cause::Reset => format!("reset ({stage})"),
        Cause::Closed if *stage == Stage::Body => "truncated response".to_owned(),
        Cause::Closed => format!("closed ({stage})"),
        Cause::Malformed(what) => format!("malformed response: {what}"),
        Cause::Os(errno) => format!("{} ({stage})", message_of(*errno)),
    };
    let never_left = *stage == Stage::Connect || sent_bytes == 0;
    if never_left && matches!(cause, Cause::Os(errno) if is_local(*errno)) {
        Verdict::not_sent(error)
    } else if never_left {
        Verdict::fail(error)
    } else {
        Verdict::unknown(error)
    }
}

/// The verdict on a request for which the machine gave no socket.
pub fn no_socket(errno: Errno) -> Verdict {
    Verdict::not_sent(format!("{} (socket)", message_of(errno)))
}

/// Does the client's own machine lack what a request needs: descriptors, memory, ports?
pub fn is_local(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
            | Errno::NOBUFS
            | Errno::ADDRNOTAVAIL
            | Errno::ADDRINUSE
    )
}

fn message_of(errno: Errno) -> String {
    // std adds " (os error 113)", which tells a reader nothing.
    let text = std::io::Error::from(errno).to_string();
    text.rsplit_once(" (os error")
        .map_or(text.clone(), |(message, _)| message.to_lowercase())
}

/// The answer of a server, complete, whose status is not 2xx.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    pub status: u16,
    /// S3's error code, where the body has one.
    pub code: Option<&'a str>,
    pub location: Option<&'a str>,
}

/// The verdict on a request that was answered with anything but 2xx; `writes`: executing it would
/// have changed the store.
pub fn of_refusal(refusal: Refusal<'_>, writes: bool) -> Verdict {
    let Refusal {
        status,
        code,
        location,
    } = refusal;
    let error = match (status, location, code) {
        (300..400, Some(location), _) => format!("http {status} to {location}"),
        (_, _, Some(code)) => format!("http {status} {code}"),
        _ => format!("http {status}"),
    };
    let not_executed = match status {
        400 if code == Some("IncompleteBody") => !writes,
        408 | 499 => false,
        300..=399 => !writes || matches!(status, 304 | 307 | 308),
        400..=499 | 501 => true,
        503 => match code {
            Some("XMinioServerNotInitialized" | "XMinioIAMNotInitialized") => true,
            Some("SlowDown" | "SlowDownRead") => !writes,
            _ => false,
        },
        _ => false,
    };
    if not_executed {
        Verdict::fail(error)
    } else {
        Verdict::unknown(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: Option<&str>, writes: bool) -> (Outcome, String) {
        let verdict = of_refusal(
            Refusal {
                status,
                code,
                location: None,
            },
            writes,
        );
        (verdict.outcome, verdict.error.unwrap())
    }

    #[test]
    fn the_table_of_answers_holds() {
        use Outcome::{Fail, Unknown};
        for (status, code, on_read, on_write) in [
            (302, None, Fail, Unknown),
            (303, None, Fail, Unknown),
            (304, None, Fail, Fail),
            (307, Some("TemporaryRedirect"), Fail, Fail),
            (400, Some("BadDigest"), Fail, Fail),
            (400, Some("IncompleteBody"), Fail, Unknown),
            (403, Some("AccessDenied"), Fail, Fail),
            (404, Some("NoSuchKey"), Fail, Fail),
            (408, None, Unknown, Unknown),
            (409, Some("BucketAlreadyOwnedByYou"), Fail, Fail),
            (429, Some("TooManyRequests"), Fail, Fail),
            (499, Some("ClientDisconnected"), Unknown, Unknown),
            (500, Some("InternalError"), Unknown, Unknown),
            (501, Some("NotImplemented"), Fail, Fail),
            (502, None, Unknown, Unknown),
            (503, None, Unknown, Unknown),
            (503, Some("XMinioServerNotInitialized"), Fail, Fail),
            (503, Some("XMinioIAMNotInitialized"), Fail, Fail),
            (503, Some("SlowDown"), Fail, Unknown),
            (503, Some("SlowDownRead"), Fail, Unknown),
            (503, Some("SlowDownWrite"), Unknown, Unknown),
            (503, Some("ServiceUnavailable"), Unknown, Unknown),
            (503, Some("RequestTimeout"), Unknown, Unknown),
            (504, None, Unknown, Unknown),
            (507, Some("XMinioStorageFull"), Unknown, Unknown),
            (600, None, Unknown, Unknown),
        ] {
            let label = format!("{status} {code:?}");
            assert_eq!(refused(status, code, false).0, on_read, "read: {label}");
            assert_eq!(refused(status, code, true).0, on_write, "write: {label}");
        }
    }

    #[test]
    fn an_error_says_status_and_code_and_a_redirect_where_it_leads() {
        assert_eq!(refused(503, Some("SlowDown"), true).1, "http 503 SlowDown");
        assert_eq!(refused(500, None, true).1, "http 500");
        let refusal = Refusal {
            status: 307,
            code: Some("TemporaryRedirect"),
            location: Some("http://x/"),
        };
        let verdict = of_refusal(refusal, false);
        assert_eq!(verdict, Verdict::fail("http 307 to http://x/"));
    }

    #[test]
    fn what_never_left_failed_and_what_may_have_arrived_is_unknown() {
        use Cause::{Closed, Os, Refused, Reset, Timeout};
        let is = |stage, cause, sent_bytes, expected| {
            assert_eq!(of_failure(&Failure { stage, cause }, sent_bytes), expected);
        };
        is(Stage::Connect, Refused, 0, Verdict::fail("refused"));
        is(
            Stage::Connect,
            Timeout,
            0,
            Verdict::fail("timeout (connect)"),
        );
        is(
            Stage::Connect,
            Os(Errno::HOSTUNREACH),
            0,
            Verdict::fail("no route to host (connect)"),
        );
        let no_port = "cannot assign requested address (connect)";
        is(
            Stage::Connect,
            Os(Errno::ADDRNOTAVAIL),
            0,
            Verdict::not_sent(no_port),
        );
        is(
            Stage::Body,
            Os(Errno::NOMEM),
            9,
            Verdict::unknown("cannot allocate memory (body)"),
        );
        is(Stage::Send, Reset, 0, Verdict::fail("reset (send)"));
        is(Stage::Send, Reset, 1, Verdict::unknown("reset (send)"));
        is(
            Stage::FirstByte,
            Timeout,
            9,
            Verdict::unknown("timeout (first byte)"),
        );
        is(
            Stage::Body,
            Closed,
            9,
            Verdict::unknown("truncated response"),
        );
    }
}

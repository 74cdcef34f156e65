//! What the end of a call says about whether it was executed.
//!
//! [`crate::outcome`] says what the three outcomes promise. What gRPC adds:
//!
//! | end | outcome | why |
//! | --- | --- | --- |
//! | OK, and the answer checks | ok | |
//! | OK, and the answer does not check | fail | a read whose answer is wrong |
//! | OK before the request was sent whole | unknown | what did the server act on? |
//! | OK, and no message, two, or none that can be read | unknown | |
//! | NOT_FOUND, INVALID_ARGUMENT, ALREADY_EXISTS, PERMISSION_DENIED, UNAUTHENTICATED, UNIMPLEMENTED, FAILED_PRECONDITION, OUT_OF_RANGE | fail | refused, or answered in the negative |
//! | any other status | unknown | Bob has INTERNAL and DEADLINE_EXCEEDED for a quorum that was missed, of which some may hold the write |
//! | OK with an OpStatus that holds an error | as the status it stands for, by its first word; else unknown | Bob 2.1 says its errors as a status and leaves this field empty; the words are the same |
//! | no gRPC status, but an HTTP status other than 200 | as for S3 | a proxy's word |
//! | reset by the server: REFUSED_STREAM | fail | RFC 9113, 8.7: not processed |
//! | GOAWAY whose last stream comes before the request's | fail | RFC 9113, 6.8: not processed |
//! | reset by the server with any other code | unknown | |
//! | not connected; or no byte of the request's frames taken by the kernel | fail | it never left |
//! | timed out, reset, closed, truncated, malformed after that | unknown | |
//! | the request is longer than `max_message_bytes` | not_sent | the client's own limit |
//! | the answer to a read of Bob's is longer | fail | a read not served has no effect to doubt |
//! | the answer to anything else is longer | unknown | it was executed, it seems; a method may write |

use h2::Reason;
use tonic::{Code, Status};
use wanlat_proto::bob_storage::BobError;

use crate::grpc::call::End;
use crate::grpc::wire::Facts;
use crate::outcome::{self, Verdict};

/// How much of a server's message becomes part of an error.
const MESSAGE_CHARS: usize = 160;

/// The verdict on a call that was answered with a status other than OK.
pub fn of_status(status: &Status) -> Verdict {
    let error = match shortened(status.message()) {
        message if message.is_empty() => format!("grpc {}", name_of(status.code())),
        message => format!("grpc {}: {message}", name_of(status.code())),
    };
    if is_refusal(status.code()) {
        Verdict::fail(error)
    } else {
        Verdict::unknown(error)
    }
}

/// The verdict on an answer of Bob's that went well but for what it says.
pub fn of_bob_error(error: &BobError) -> Verdict {
    let text = format!("bob error {}: {}", error.code, shortened(&error.desc));
    // The words of `impl From<Error> for Status` in bob-common/src/error.rs, for the statuses that
    // are refusals.
    match error.desc.split_whitespace().next() {
        Some("KeyNotFound" | "VDiskNotFound" | "DuplicateKey" | "Unauthorized") => {
            Verdict::fail(text)
        }
        _ => Verdict::unknown(text),
    }
}

/// The verdict on a call that got no complete answer; `limit` is the longest message taken.
pub fn of_end(end: &End, facts: &Facts, writes: bool, limit: u64) -> Verdict {
    let nothing_sent = facts.stream == 0;
    match end {
        End::Complete => Verdict::ok(),
        End::TooLong(bytes) => {
            let error =
                format!("the answer is {bytes} bytes long, more than `max_message_bytes`, {limit}");
            if writes {
                Verdict::unknown(error)
            } else {
                Verdict::fail(error)
            }
        }
        End::NotTaken => Verdict::fail("not taken: the server is closing the connection"),
        End::StreamReset(stage, code) => {
            let reason = Reason::from(*code);
            let error = format!("stream reset with {reason:?} ({stage})");
            if reason == Reason::REFUSED_STREAM {
                Verdict::fail(error)
            } else {
                Verdict::unknown(error)
            }
        }
        End::Broken(failure) => outcome::of_failure(failure, usize::from(!nothing_sent)),
    }
}

/// A request that is longer than the client sends.
pub fn too_long(what: &str, bytes: u64, limit: u64) -> Verdict {
    Verdict::not_sent(format!(
        "{what} is {bytes} bytes long, more than `max_message_bytes`, {limit}"
    ))
}

fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::NotFound
            | Code::InvalidArgument
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::Unimplemented
            | Code::FailedPrecondition
            | Code::OutOfRange
    )
}

fn shortened(message: &str) -> String {
    let mut line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(MESSAGE_CHARS) {
        line.truncate(at);
        line.push('…');
    }
    line
}

/// `NotFound` is NOT_FOUND on the wire's side of the world.
fn name_of(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Cause, Failure, Stage};
    use crate::outcome::Outcome::{Fail, Unknown};

    #[test]
    fn the_table_of_statuses_holds() {
        for code in 1..=17 {
            let verdict = of_status(&Status::new(Code::from_i32(code), ""));
            let is_refusal = [3, 5, 6, 7, 9, 11, 12, 16].contains(&code);
            let expected = if is_refusal { Fail } else { Unknown };
            assert_eq!(verdict.outcome, expected, "{code}: {:?}", verdict.error);
        }
    }

    #[test]
    fn an_error_says_status_and_message_on_one_short_line() {
        let error = |message: &str| of_status(&Status::not_found(message)).error.unwrap();
        assert_eq!(error("KeyNotFound 7"), "grpc NOT_FOUND: KeyNotFound 7");
        assert_eq!(error(""), "grpc NOT_FOUND");
        assert_eq!(error("a\n b"), "grpc NOT_FOUND: a b");
        assert_eq!(error(&"ä".repeat(1000)).chars().count(), 16 + 160 + 1);
    }

    #[test]
    fn bobs_own_errors_are_judged_by_their_first_word() {
        for (desc, outcome) in [
            ("KeyNotFound 1", Fail),
            ("VDiskNotFound 9", Fail),
            ("DuplicateKey", Fail),
            ("Unauthorized", Fail),
            ("Timeout", Unknown),
            ("VDiskIsNotReady", Unknown),
            ("", Unknown),
        ] {
            let (code, desc) = (3, desc.to_owned());
            let error = format!("bob error 3: {desc}");
            let verdict = of_bob_error(&BobError { code, desc });
            assert_eq!((verdict.outcome, verdict.error), (outcome, Some(error)));
        }
    }

    #[test]
    fn what_was_not_processed_failed_and_what_may_have_been_is_unknown() {
        let sent = Facts {
            stream: 1,
            ..Facts::default()
        };
        let closed = |stage| {
            let cause = Cause::Closed;
            End::Broken(Failure { stage, cause })
        };
        let is = |end, facts: &Facts, expected| assert_eq!(of_end(&end, facts, true, 5), expected);
        let refused = "stream reset with REFUSED_STREAM (first byte)";
        is(
            End::StreamReset(Stage::FirstByte, 7),
            &sent,
            Verdict::fail(refused),
        );
        let cancelled = "stream reset with CANCEL (body)";
        is(
            End::StreamReset(Stage::Body, 8),
            &sent,
            Verdict::unknown(cancelled),
        );
        let not_taken = "not taken: the server is closing the connection";
        is(End::NotTaken, &sent, Verdict::fail(not_taken));
        is(
            closed(Stage::Send),
            &Facts::default(),
            Verdict::fail("closed (send)"),
        );
        is(
            closed(Stage::FirstByte),
            &sent,
            Verdict::unknown("closed (first byte)"),
        );
        let too_long = "the answer is 9 bytes long, more than `max_message_bytes`, 5";
        is(End::TooLong(9), &sent, Verdict::unknown(too_long));
        assert_eq!(of_end(&End::TooLong(9), &sent, false, 5).outcome, Fail);
    }
}

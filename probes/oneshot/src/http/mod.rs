//! One HTTP/1.1 request and its response, timed: S3's, and any other as a template says.

use crate::body;
use crate::connection::Connection;
use crate::http::exchange::{Exchange, Message};
use crate::http::response::{Head, Response};
use crate::outcome::{self, Refusal, Verdict};
use crate::plan::Request;
use crate::record::Record;
use crate::target::Target;
use crate::timing::Timing;
use crate::verify::Verifier;

pub mod exchange;
pub mod response;
pub mod template;

/// Asks one server, and judges what it answers.
pub struct Speaker {
    pub target: Target,
    pub lean: bool,
    pub response: Response,
}

pub fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

impl Speaker {
    pub fn new(target: Target, lean: bool) -> Self {
        Speaker {
            target,
            lean,
            response: Response::default(),
        }
    }

    /// As [`crate::protocol::Protocol::link`].
    pub fn link(&self) -> Result<Connection, Verdict> {
        Connection::new(self.target.address).map_err(outcome::no_socket)
    }

    /// Makes ready for a response whose body is the request's object. A large one whose bytes are
    /// known is compared as it comes, and so is any of a load; anything else is held.
    pub fn expect_object(&mut self, request: &Request) {
        match (request.body_seed, request.object_bytes) {
            (Some(seed), Some(bytes)) if bytes > body::WHOLE_BYTES || self.lean => {
                self.response.prepare_verified(Verifier::new(seed), bytes);
            }
            (_, bytes) => self.response.prepare(bytes.unwrap_or(0), false),
        }
    }

    /// As [`crate::protocol::Protocol::exchange`].
    pub fn exchange(
        &mut self,
        link: &Connection,
        is_new: bool,
        message: &mut Message,
        allowed_ns: u64,
    ) -> (Timing, Exchange) {
        let address = is_new.then_some(self.target.address);
        let done = exchange::run(link, address, message, &mut self.response, allowed_ns);
        (done.timing, done)
    }

    /// Writes down what of a response every request has.
    pub fn note(&self, record: &mut Record) {
        record.status = self.response.head().map(|head| head.status);
        record.object_bytes = self.response.body_bytes() as u64;
        record.verify_ns = self.response.verifier().map(Verifier::spent_ns);
    }

    /// The head of the answer, whole, with a status that is wanted; what it came to otherwise.
    /// `code`: S3's; `writes`: executing the request would have changed the store.
    pub fn answer(
        &self,
        done: &Exchange,
        is_wanted: impl Fn(u16) -> bool,
        code: Option<&str>,
        writes: bool,
    ) -> Result<&Head, Verdict> {
        done.result
            .as_ref()
            .map_err(|failure| outcome::of_failure(failure, done.sent_bytes))?;
        let head = self.response.head();
        let head = head.expect("a complete response has a head");
        let (status, is_wanted) = (head.status, is_wanted(head.status));
        if !is_wanted && !is_success(status) {
            let refusal = Refusal {
                status,
                code,
                location: head.location.as_deref(),
            };
            return Err(outcome::of_refusal(refusal, writes));
        }
        let doubt = match (done.is_sent, is_wanted) {
            (false, _) => format!("http {status} before the request was sent"),
            (true, false) => format!("http {status}, which is not expected"),
            (true, true) => return Ok(head),
        };
        // To read changes nothing, so that what was answered instead is no doubt but an error.
        Err(if done.is_sent && !writes {
            Verdict::fail(doubt)
        } else {
            Verdict::unknown(doubt)
        })
    }

    /// May the connection carry another request?
    pub fn is_reusable(&self, done: &Exchange) -> bool {
        done.result.is_ok()
            && done.is_sent
            && self.response.head().is_some_and(|head| head.keep_alive)
            && !self.response.is_ended_by_close()
            && !self.response.has_leftover()
    }

    /// Judges an object that was compared as it came, or one that was held.
    pub fn check_object(&self, request: &Request, record: &mut Record) -> Verdict {
        let response = &self.response;
        let held = match (response.verifier(), request.body_seed) {
            (None, Some(seed)) => {
                let mut held = Verifier::new(seed);
                response.body_parts().for_each(|part| held.take(part));
                Some(held)
            }
            _ => None,
        };
        let came = response.verifier().or(held.as_ref());
        let bytes = response.body_bytes() as u64;
        let is_short = request
            .object_bytes
            .is_some_and(|expected| bytes < expected);
        let is_right_so_far = came.is_none_or(|came| came.first_wrong().is_none());
        if response.is_ended_by_close() && is_short && is_right_so_far {
            // Nobody said how long it is: the server may have ended amid it.
            record.object_bytes = bytes;
            return Verdict::unknown("truncated response");
        }
        if !self.lean {
            let of_parts = || body::sha256_of(response.body_parts());
            record.sha256 = Some(came.map_or_else(of_parts, Verifier::sha256));
        }
        record.object_came(bytes, came, request.object_bytes)
    }
}

//! gRPC: Bob's API, and any other service by its .proto files.
//!
//! A request is encoded before the clock starts, and its answer decoded once it has stopped. What
//! is timed in between is HTTP/2 alone, by the library that tonic's own transport stands on, on one
//! socket and without a runtime ([`drive`]). tonic's channel is not used, as it buffers requests and
//! connects again by itself: here each connection is made for a request that shows it.

use tonic::{Code, Status};

use crate::grpc::call::{Answer, Done, End, Session};
use crate::grpc::framing::PREFIX_BYTES;
use crate::grpc::request::{Encoder, Ready};
use crate::grpc::window::Window;
use crate::outcome::{self as outcomes, Refusal, Verdict};
use crate::plan::{PlanError, Request};
use crate::protocol::{Built, Judged, Protocol};
use crate::record::Record;
use crate::target::Target;
use crate::tcp_info::{self, TcpInfo};
use crate::timing::Timing;

pub mod blob;
pub mod bob;
pub mod call;
pub mod check;
pub mod drive;
pub mod frames;
pub mod framing;
pub mod header;
pub mod method;
pub mod outcome;
pub mod request;
pub mod template;
pub mod window;
pub mod wire;

pub use header::Header;

/// Speaks gRPC to one server.
pub struct Grpc {
    target: Target,
    encoder: Encoder,
    max_message_bytes: u64,
    window: Window,
    lean: bool,
}

impl Protocol for Grpc {
    type Header = Header;
    type Link = Session;
    type Ready = Ready;
    type Done = Done;

    fn new(header: &Header, lean: bool) -> Result<Self, PlanError> {
        let target = Target::resolve(&header.host, header.port)?;
        let encoder = Encoder::new(header, &target.authority, lean);
        Ok(Grpc {
            target,
            encoder: encoder.map_err(|what| PlanError { line: 1, what })?,
            max_message_bytes: header.max_message_bytes,
            window: header.window,
            lean,
        })
    }

    fn build(&mut self, request: &Request) -> Result<Built<Ready>, String> {
        self.encoder.encode(request)
    }

    fn link(&mut self, _: Option<u64>) -> Result<Session, Verdict> {
        Session::new(self.target.address, self.max_message_bytes, self.window)
            .map_err(outcomes::no_socket)
    }

    fn is_alive(link: &mut Session) -> bool {
        link.settle()
    }

    fn tcp_info(link: &Session) -> TcpInfo {
        tcp_info::read(link.socket())
    }

    fn exchange(
        &mut self,
        link: &mut Session,
        is_new: bool,
        ready: &mut Ready,
        allowed_ns: u64,
    ) -> (Timing, Done) {
        let http = std::mem::take(&mut ready.http);
        let message = std::mem::take(&mut ready.message);
        link.call(
            ready.known.expected.seed(),
            is_new.then_some(self.target.address),
            http,
            message,
            allowed_ns,
        )
    }

    fn judge(&self, _: &Request, ready: &Ready, done: &Done, record: &mut Record) -> Judged {
        let Done { facts, answer, end } = done;
        record.status = answer.head.as_ref().map(|(status, _)| status.as_u16());
        record.object_bytes = answer.received.saturating_sub(PREFIX_BYTES as u64);
        record.verify_ns = answer.blob.as_ref().map(|blob| blob.object().spent_ns());
        if let Some(bytes) = ready.known.object_bytes {
            // Where it was not sent whole, what was sent of it at least.
            let around = ready.message_bytes - bytes;
            record.object_bytes = (facts.message_bytes_sent as u64).saturating_sub(around);
            record.sha256.clone_from(&ready.known.sha256);
            record.make_ns = Some(ready.making_ns.get());
        }
        let is_sent = facts.sent_ns.is_some();
        let verdict = match end {
            End::Complete => self.judge_answer(ready, answer, is_sent, record),
            end => outcome::of_end(end, facts, ready.known.writes, self.max_message_bytes),
        };
        Judged {
            verdict,
            is_reusable: *end == End::Complete && is_sent,
        }
    }
}

impl Grpc {
    fn judge_answer(
        &self,
        ready: &Ready,
        answer: &Answer,
        is_sent: bool,
        record: &mut Record,
    ) -> Verdict {
        let head = answer.head.as_ref().map(|(_, headers)| headers);
        let status = Status::from_header_map(&answer.trailers)
            .or_else(|| head.and_then(Status::from_header_map));
        record.grpc_status = status.as_ref().map(|status| status.code() as i32);
        match (status, record.status) {
            (Some(status), _) if status.code() != Code::Ok => outcome::of_status(&status),
            (Some(_), _) if !is_sent => Verdict::unknown("grpc OK before the request was sent"),
            (Some(_), _) => check::check(&ready.known, answer, self.lean, record)
                .unwrap_or_else(|what| Verdict::unknown(format!("malformed response: {what}"))),
            (None, Some(status)) if status != 200 => {
                let location = head.and_then(|headers| headers.get("location")?.to_str().ok());
                let refusal = Refusal {
                    status,
                    code: None,
                    location,
                };
                outcomes::of_refusal(refusal, ready.known.writes)
            }
            (None, _) => Verdict::unknown("malformed response: no gRPC status"),
        }
    }
}

//! `oneshot grpc`: a plan of requests to Bob, or to any gRPC service, one in flight at a time.
//!
//! tonic encodes a request before the clock starts, and decodes its answer once it has stopped. What
//! is timed in between is HTTP/2 alone, by the library that tonic's own transport stands on, on one
//! socket and without a runtime ([`drive`]). tonic's channel is not used, as it buffers requests and
//! connects again by itself: here each connection is made for a request that shows it.

use std::io::{BufRead, Write};

use tonic::{Code, Status};

use crate::failure::{Cause, Failure, Stage};
use crate::grpc::call::{Answer, Done, End, Session};
use crate::grpc::check::{Expected, Finding};
use crate::grpc::lines::{Header, Request};
use crate::grpc::planned::{Known, Message, Planned, Planner};
use crate::grpc::window::Window;
use crate::outcome::{self as outcomes, Refusal, Verdict};
use crate::plan::{self, ConnectionMode, Plan, PlanError, Stopped};
use crate::record::Record;
use crate::target::Target;
use crate::timing::Timing;
use crate::{clock, tcp_info};

pub mod blob;
pub mod bob;
pub mod call;
pub mod check;
pub mod drive;
pub mod frames;
pub mod framing;
pub mod lines;
pub mod method;
pub mod outcome;
pub mod planned;
pub mod template;
pub mod window;
pub mod wire;

/// Carries out the plan read from `input`; a record for each request goes to `output`.
pub fn run(input: impl BufRead, mut output: impl Write) -> Result<(), Stopped> {
    let mut plan = Plan::new(input);
    let header = plan.header::<Header>().map_err(Stopped::Plan)?;
    let mut client = Client::new(&header).map_err(Stopped::Plan)?;
    while let Some(request) = plan.next_line::<Request>().map_err(Stopped::Plan)? {
        let planned = client
            .planner
            .plan(&request)
            .map_err(|what| Stopped::Plan(plan.error(&what)))?;
        client
            .perform(&request, planned)
            .write(&mut output)
            .map_err(Stopped::Output)?;
    }
    Ok(())
}

struct Client {
    target: Target,
    connection_mode: ConnectionMode,
    deadline_ms: u64,
    max_message_bytes: u64,
    window: Window,
    planner: Planner,
    kept: Option<Session>,
}

impl Client {
    fn new(header: &Header) -> Result<Self, PlanError> {
        let target = Target::resolve(&header.host, header.port)?;
        Ok(Client {
            planner: Planner::new(header, &target.authority)?,
            target,
            connection_mode: header.connection,
            deadline_ms: header.deadline_ms,
            max_message_bytes: header.max_message_bytes,
            window: header.window,
            kept: None,
        })
    }

    fn perform(&mut self, request: &Request, planned: Planned) -> Record {
        let Planned {
            http,
            message,
            known,
        } = planned;
        let message = match message {
            Message::Framed(message) => message,
            Message::TooLong(verdict) => {
                let mut record = unsent(request, verdict);
                record.new_connection = false;
                return record;
            }
        };
        let kept = self
            .kept
            .take()
            .and_then(|mut session| session.settle().then_some(session));
        let address = kept.is_none().then_some(self.target.address);
        let made =
            || Session::with_window(self.target.address, self.max_message_bytes, self.window);
        let mut session = match kept.map_or_else(made, Ok) {
            Ok(session) => session,
            Err(error) => {
                let failure = Failure {
                    stage: Stage::Connect,
                    cause: Cause::Os(error),
                };
                return unsent(request, outcomes::of_failure(&failure, 0));
            }
        };
        // What happened on a kept connection between two requests belongs to neither.
        let before = address.is_none().then(|| tcp_info::read(session.socket()));

        let allowed_ns = plan::allowed_ns(request.deadline_ms, self.deadline_ms);
        let (message_bytes, making_ns) = (message.left(), message.making_ns());
        let seed = known.expected.seed();
        let done = session.call_for(seed, address, http, message, allowed_ns);

        let after = tcp_info::read(session.socket());
        let mut record = self.judge(request, &known, message_bytes, &done);
        record.make_ns = known.sent_object_bytes.map(|_| making_ns.get());
        record.add_tcp_info(before, after);
        record.new_connection = address.is_some();
        if self.reusable(&done) && session.settle() {
            self.kept = Some(session);
        }
        record
    }

    fn judge(&self, request: &Request, known: &Known, message_bytes: u64, done: &Done) -> Record {
        let Done {
            timing,
            facts,
            answer,
            end,
        } = done;
        let mut record = empty_record(request, timing);
        let head = answer.head.as_ref();
        record.status = head.map(|(status, _)| status.as_u16());
        record.sha256 = known.sha256.clone();
        record.object_bytes = match known.sent_object_bytes {
            Some(object) => {
                // Where it was not sent whole, what was sent of it at least.
                let around = message_bytes - object;
                (facts.message_bytes_sent as u64).saturating_sub(around)
            }
            None => answer.received.saturating_sub(call::PREFIX_BYTES as u64),
        };
        record.verify_ns = answer.blob.as_ref().map(|blob| blob.object().spent_ns());
        if *end != End::Complete {
            let limit = self.max_message_bytes;
            return record.judged(outcome::of_end(end, facts, known.writes, limit));
        }
        let status = Status::from_header_map(&answer.trailers)
            .or_else(|| head.and_then(|(_, headers)| Status::from_header_map(headers)));
        record.grpc_status = status.as_ref().map(|status| status.code() as i32);
        let verdict = match (status, record.status) {
            (Some(status), _) if status.code() != Code::Ok => outcome::of_status(&status),
            (Some(_), _) if timing.sent_ns.is_none() => {
                Verdict::unknown("grpc OK before the request was sent")
            }
            (Some(_), _) => match self.found(&known.expected, answer) {
                Ok(finding) => {
                    if known.sent_object_bytes.is_none() {
                        record.object_bytes = finding.object_bytes;
                    }
                    record.sha256 = finding.sha256.or(record.sha256);
                    record.verify_ns = finding.verify_ns;
                    finding.verdict
                }
                Err(what) => Verdict::unknown(format!("malformed response: {what}")),
            },
            (None, Some(status)) if status != 200 => {
                let location = head.and_then(|(_, headers)| headers.get("location")?.to_str().ok());
                let refusal = Refusal {
                    status,
                    code: None,
                    location,
                };
                outcomes::of_refusal(refusal, known.writes)
            }
            (None, _) => Verdict::unknown("malformed response: no gRPC status"),
        };
        record.judged(verdict)
    }

    /// What an OK answer holds. Err: it is malformed.
    fn found(&self, expected: &Expected, answer: &Answer) -> Result<Finding, String> {
        match &answer.blob {
            Some(blob) => Ok(check::compared(expected, blob.finish()?)),
            None => {
                let message = framing::unframed(&answer.data, self.max_message_bytes)?;
                Ok(check::check(expected, &message))
            }
        }
    }

    fn reusable(&self, done: &Done) -> bool {
        self.connection_mode == ConnectionMode::KeepAlive
            && done.end == End::Complete
            && done.timing.sent_ns.is_some()
    }
}

/// Nothing was sent, and no clock ran.
fn unsent(request: &Request, verdict: Verdict) -> Record {
    let timing = Timing {
        start_ns: clock::now_ns(),
        ..Timing::default()
    };
    empty_record(request, &timing).judged(verdict)
}

fn empty_record(request: &Request, timing: &Timing) -> Record {
    Record::new(request.seq, request.phase, request.endpoint.name(), timing)
}

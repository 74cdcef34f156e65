//! A worker's Bob: as [`crate::grpc`] calls it, without looking anything up.

use bytes::Bytes;
use http::{HeaderMap, Request as HttpRequest};
use prost::Message as _;
use tonic::{Code, Status};
use wanlat_proto::bob_storage::{Blob, ExistResponse, OpStatus};

use crate::grpc::bob;
use crate::grpc::call::{Done, End, Session};
use crate::grpc::framing;
use crate::grpc::lines::Header;
use crate::grpc::outcome::{self, of_bob_error};
use crate::grpc::planned::Planner;
use crate::grpc::window::Window;
use crate::load::client::{Came, Client};
use crate::load::kind::Deed;
use crate::load::objects::Objects;
use crate::load::s3::without_socket;
use crate::load::work::Task;
use crate::outcome::{self as outcomes, Refusal, Verdict};
use crate::outgoing::Outgoing;
use crate::plan::{self, ConnectionMode, PlanError};
use crate::target::Target;
use crate::verify::Verifier;

pub struct Bob {
    target: Target,
    connection_mode: ConnectionMode,
    allowed_ns: u64,
    max_message_bytes: u64,
    window: Window,
    objects: Objects,
    planner: Planner,
    kept: Option<Session>,
    http: HttpRequest<()>,
    message: Outgoing,
}

/// What was found out about an answer.
struct Finding {
    verdict: Verdict,
    grpc_status: Option<i32>,
    object_bytes: u64,
    verify_ns: u64,
}

impl Bob {
    pub fn new(header: &Header, target: Target, objects: Objects) -> Result<Self, PlanError> {
        Ok(Bob {
            connection_mode: header.connection,
            allowed_ns: plan::allowed_ns(None, header.deadline_ms),
            max_message_bytes: header.max_message_bytes,
            window: header.window,
            objects,
            planner: Planner::new(header, &target.authority)?,
            target,
            kept: None,
            http: HttpRequest::new(()),
            message: Outgoing::default(),
        })
    }

    fn judge(&self, task: &Task, done: &Done) -> Finding {
        let head = done.answer.head.as_ref();
        let mut finding = Finding {
            verdict: Verdict::ok(),
            grpc_status: None,
            object_bytes: 0,
            verify_ns: 0,
        };
        if done.end != End::Complete {
            let (facts, writes) = (&done.facts, task.kind.writes());
            finding.verdict = outcome::of_end(&done.end, facts, writes, self.max_message_bytes);
            return finding;
        }
        let of = |headers: &HeaderMap| Status::from_header_map(headers);
        let status =
            of(&done.answer.trailers).or_else(|| head.and_then(|(_, headers)| of(headers)));
        finding.grpc_status = status.as_ref().map(|status| status.code() as i32);
        match (status, head) {
            (Some(status), _) if status.code() != Code::Ok => {
                finding.verdict = outcome::of_status(&status);
            }
            (Some(_), _) if done.timing.sent_ns.is_none() => {
                finding.verdict = Verdict::unknown("grpc OK before the request was sent");
            }
            (Some(_), _) => {
                finding.verdict = self
                    .check(task, done, &mut finding)
                    .unwrap_or_else(|what| Verdict::unknown(format!("malformed response: {what}")));
            }
            (None, Some((status, _))) if *status != 200 => {
                let refusal = Refusal {
                    status: status.as_u16(),
                    code: None,
                    location: None,
                };
                finding.verdict = outcomes::of_refusal(refusal, task.kind.writes());
            }
            (None, _) => {
                finding.verdict = Verdict::unknown("malformed response: no gRPC status");
            }
        }
        finding
    }

    /// What an OK answer holds. Err: it is malformed.
    fn check(&self, task: &Task, done: &Done, finding: &mut Finding) -> Result<Verdict, String> {
        if let Some(blob) = &done.answer.blob {
            return Ok(self.compared(blob.finish()?, finding));
        }
        let message = framing::unframed(&done.answer.data, self.max_message_bytes)?;
        let malformed = |error: prost::DecodeError| error.to_string();
        Ok(match task.kind.deed {
            Deed::Put | Deed::Remove => OpStatus::decode(message)
                .map_err(malformed)?
                .error
                .map_or_else(Verdict::ok, |error| of_bob_error(&error)),
            Deed::Head => match ExistResponse::decode(message).map_err(malformed)?.exist[..] {
                [true] => Verdict::ok(),
                _ => Verdict::fail("wrong answer: it is there"),
            },
            Deed::Get => {
                let data = Blob::decode(message).map_err(malformed)?.data;
                let mut verifier = Verifier::new(self.objects.body_seed(task.object));
                verifier.take(&data);
                self.compared(&verifier, finding)
            }
        })
    }

    fn compared(&self, verifier: &Verifier, finding: &mut Finding) -> Verdict {
        let (came, bytes) = (verifier.bytes(), self.objects.bytes);
        finding.object_bytes = came;
        finding.verify_ns = verifier.spent_ns();
        if verifier.is_right(bytes) {
            Verdict::ok()
        } else if came == bytes {
            Verdict::fail("checksum mismatch")
        } else {
            Verdict::fail(format!("length mismatch: {came} bytes, not {bytes}"))
        }
    }
}

impl Client for Bob {
    fn prepare(&mut self, task: &Task) {
        let endpoint = task.kind.bob();
        let key = self.objects.bob_key(task.object);
        self.message = match task.kind.deed {
            Deed::Put => {
                let seed = self.objects.body_seed(task.object);
                bob::put(&key, seed, self.objects.bytes)
            }
            _ => endpoint.message(&key, Bytes::new()).into(),
        };
        self.http = self.planner.http(&endpoint.path());
    }

    fn perform(&mut self, task: &Task) -> Came {
        let kept = self
            .kept
            .take()
            .and_then(|mut session| session.settle().then_some(session));
        let address = kept.is_none().then_some(self.target.address);
        let made =
            || Session::with_window(self.target.address, self.max_message_bytes, self.window);
        let mut session = match kept.map_or_else(made, Ok) {
            Ok(session) => session,
            Err(error) => return without_socket(error),
        };
        let message = std::mem::take(&mut self.message);
        let message_bytes = message.left();
        let http = std::mem::take(&mut self.http);
        let seed = (task.kind.deed == Deed::Get).then(|| self.objects.body_seed(task.object));
        let done = session.call_for(seed, address, http, message, self.allowed_ns);
        let found = self.judge(task, &done);
        let code = found.grpc_status.map(Code::from);
        let came = Came {
            object_bytes: match task.kind.deed {
                Deed::Put => {
                    // Where it was not sent whole, what was sent of it at least.
                    let around = message_bytes - self.objects.bytes;
                    (done.facts.message_bytes_sent as u64).saturating_sub(around)
                }
                _ => found.object_bytes,
            },
            verify_ns: found.verify_ns,
            status: done.answer.head.as_ref().map(|(status, _)| status.as_u16()),
            grpc_status: found.grpc_status,
            new_connection: address.is_some(),
            refused: matches!(
                code,
                Some(
                    Code::InvalidArgument
                        | Code::NotFound
                        | Code::PermissionDenied
                        | Code::Unauthenticated
                        | Code::Unimplemented
                )
            ),
            absent: code == Some(Code::NotFound),
            verdict: found.verdict,
            timing: done.timing,
        };
        let reusable = self.connection_mode == ConnectionMode::KeepAlive
            && done.end == End::Complete
            && done.timing.sent_ns.is_some();
        if reusable && session.settle() {
            self.kept = Some(session);
        }
        came
    }
}

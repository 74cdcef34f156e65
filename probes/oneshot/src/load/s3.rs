//! A worker's S3: as [`crate::s3`] sends its requests, but for what costs the generator most.

use std::io::Write;

use crate::body;
use crate::clock;
use crate::connection::Connection;
use crate::failure::{Cause, Failure, Stage};
use crate::http::exchange::{self, Exchange, Message};
use crate::http::response::Response;
use crate::load::client::{Came, Client};
use crate::load::kind::Deed;
use crate::load::lines::Payload;
use crate::load::objects::Objects;
use crate::load::sign::{self, Signer};
use crate::load::work::Task;
use crate::outcome::{self, Refusal, Verdict};
use crate::outgoing::Outgoing;
use crate::plan::{self, ConnectionMode};
use crate::s3::check::error_code;
use crate::s3::lines::Header;
use crate::target::Target;
use crate::timing::Timing;
use crate::verify::Verifier;

const ERROR_DOCUMENT_BYTES: usize = 64 * 1024;

pub struct S3 {
    target: Target,
    connection_mode: ConnectionMode,
    allowed_ns: u64,
    payload: Payload,
    objects: Objects,
    signer: Signer,
    kept: Option<Connection>,
    message: Message,
    response: Response,
    path: Vec<u8>,
}

impl S3 {
    pub fn new(header: &Header, target: Target, objects: Objects, payload: Payload) -> Self {
        let signer = Signer::new(
            &header.access_key,
            &header.secret_key,
            &header.region,
            &target.authority,
        );
        S3 {
            target,
            connection_mode: header.connection,
            allowed_ns: plan::allowed_ns(None, header.deadline_ms),
            payload,
            objects,
            signer,
            kept: None,
            message: Message::default(),
            response: Response::default(),
            path: Vec::new(),
        }
    }

    fn judge(&self, task: &Task, done: &Exchange) -> (Verdict, u64) {
        let verifier = self.response.verifier();
        let verify_ns = verifier.map_or(0, Verifier::spent_ns);
        let verdict = match (&done.result, self.response.head()) {
            (Err(failure), _) => outcome::of_failure(failure, done.sent_bytes),
            (Ok(()), Some(head)) if (200..300).contains(&head.status) => {
                if !done.is_sent {
                    Verdict::unknown(format!("http {} before the request was sent", head.status))
                } else {
                    match task.kind.deed {
                        Deed::Get => of_body(verifier, self.objects.bytes),
                        Deed::Head => of_length(head.content_length, self.objects.bytes),
                        Deed::Put | Deed::Remove => Verdict::ok(),
                    }
                }
            }
            (Ok(()), Some(head)) => {
                let document = self.response.body_text(ERROR_DOCUMENT_BYTES);
                let refusal = Refusal {
                    status: head.status,
                    code: error_code(&document),
                    location: head.location.as_deref(),
                };
                outcome::of_refusal(refusal, task.kind.writes())
            }
            (Ok(()), None) => unreachable!("a complete response has a head"),
        };
        (verdict, verify_ns)
    }

    fn reusable(&self, done: &Exchange) -> bool {
        self.connection_mode == ConnectionMode::KeepAlive
            && done.result.is_ok()
            && done.is_sent
            && self.response.head().is_some_and(|head| head.keep_alive)
            && !self.response.is_ended_by_close()
            && !self.response.has_leftover()
    }
}

impl Client for S3 {
    fn prepare(&mut self, task: &Task) {
        let (method, puts) = (task.kind.method(), task.kind.deed == Deed::Put);
        let seed = self.objects.body_seed(task.object);
        let bytes = self.objects.bytes;
        let payload = match (puts, self.payload) {
            (false, _) => sign::EMPTY.to_owned(),
            (true, Payload::Unsigned) => sign::UNSIGNED.to_owned(),
            (true, Payload::Signed) => body::sha256(seed, bytes),
        };
        self.message.body = if puts {
            Outgoing::body(seed, bytes)
        } else {
            Outgoing::default()
        };
        match task.kind.deed {
            Deed::Get => self.response.prepare_verified(Verifier::new(seed), bytes),
            deed => self.response.prepare(0, deed == Deed::Head),
        }
        self.path.clear();
        self.objects.path(task.object, &mut self.path);

        let head = &mut self.message.head;
        head.clear();
        let _ = write!(head, "{method} ");
        head.extend_from_slice(&self.path);
        let _ = write!(
            head,
            " HTTP/1.1\r\nhost: {}\r\nuser-agent: wanlat-oneshot/{}\r\n",
            self.target.authority,
            env!("CARGO_PKG_VERSION")
        );
        self.signer
            .write_headers(method, &self.path, puts, &payload, head);
        if puts {
            let _ = write!(
                head,
                "content-type: {}\r\ncontent-length: {bytes}\r\n",
                sign::CONTENT_TYPE
            );
        }
        if self.connection_mode == ConnectionMode::New {
            head.extend_from_slice(b"connection: close\r\n");
        }
        head.extend_from_slice(b"\r\n");
    }

    fn perform(&mut self, task: &Task) -> Came {
        let kept = self.kept.take().filter(|connection| !connection.is_stale());
        let address = kept.is_none().then_some(self.target.address);
        let connection = match kept.map_or_else(|| Connection::new(self.target.address), Ok) {
            Ok(connection) => connection,
            Err(error) => return without_socket(error),
        };
        let head_bytes = self.message.head.len();
        let done = exchange::run(
            &connection,
            address,
            &mut self.message,
            &mut self.response,
            self.allowed_ns,
        );
        let (verdict, verify_ns) = self.judge(task, &done);
        let status = self.response.head().map(|head| head.status);
        let came = Came {
            verdict,
            object_bytes: match task.kind.deed {
                Deed::Put => done.sent_bytes.saturating_sub(head_bytes) as u64,
                Deed::Get => self.response.body_bytes() as u64,
                Deed::Head | Deed::Remove => 0,
            },
            verify_ns,
            status,
            grpc_status: None,
            new_connection: address.is_some(),
            refused: done.result.is_ok()
                && status.is_some_and(|status| matches!(status, 300..=499 | 501))
                && !matches!(status, Some(408 | 429 | 499)),
            absent: done.result.is_ok() && status == Some(404),
            timing: done.timing,
        };
        if self.reusable(&done) {
            self.kept = Some(connection);
        }
        came
    }
}

fn of_body(verifier: Option<&Verifier>, bytes: u64) -> Verdict {
    match verifier {
        Some(verifier) if verifier.is_right(bytes) => Verdict::ok(),
        Some(verifier) if verifier.bytes() == bytes => Verdict::fail("checksum mismatch"),
        Some(verifier) => Verdict::fail(format!(
            "length mismatch: {} bytes, not {bytes}",
            verifier.bytes()
        )),
        None => Verdict::unknown("not verified"),
    }
}

fn of_length(announced: Option<u64>, bytes: u64) -> Verdict {
    match announced {
        Some(announced) if announced == bytes => Verdict::ok(),
        Some(announced) => {
            Verdict::fail(format!("length mismatch: {announced} bytes, not {bytes}"))
        }
        None => Verdict::fail(format!("length mismatch: none given, not {bytes}")),
    }
}

/// The machine gave no socket: nothing was sent.
pub fn without_socket(error: rustix::io::Errno) -> Came {
    let failure = Failure {
        stage: Stage::Connect,
        cause: Cause::Os(error),
    };
    Came {
        timing: Timing {
            start_ns: clock::now_ns(),
            ..Timing::default()
        },
        verdict: outcome::of_failure(&failure, 0),
        object_bytes: 0,
        verify_ns: 0,
        status: None,
        grpc_status: None,
        new_connection: true,
        refused: false,
        absent: false,
    }
}

//! `oneshot s3`: a plan of S3 requests, one in flight at a time.
//!
//! Memory: a large body that is sent is made a block at a time ([`crate::outgoing`]), and one that
//! is read is compared as it comes ([`crate::verify`]), so that neither is ever held, however long
//! it is. Held are small ones ([`body::WHOLE_BYTES`]), and answers whose bytes are not known
//! beforehand: listings, errors, and objects that the plan names no seed for.

use std::io::{BufRead, Write};
use std::time::SystemTime;

use crate::connection::Connection;
use crate::failure::{Cause, Failure, Stage};
use crate::http::exchange::{self, Exchange, Message};
use crate::http::response::Response;
use crate::outcome::{self, Refusal, Verdict};
use crate::outgoing::Outgoing;
use crate::plan::{self, ConnectionMode, Plan, PlanError, Stopped};
use crate::record::Record;
use crate::s3::endpoint::Check;
use crate::s3::lines::{Header, Payload, Request};
use crate::s3::sign::Signer;
use crate::target::Target;
use crate::timing::Timing;
use crate::verify::Verifier;
use crate::{body, clock, tcp_info};

pub mod check;
pub mod endpoint;
pub mod lines;
pub mod sign;

const ERROR_DOCUMENT_BYTES: usize = 64 * 1024;

/// Carries out the plan read from `input`; a record for each request goes to `output`.
pub fn run(input: impl BufRead, mut output: impl Write) -> Result<(), Stopped> {
    let mut plan = Plan::new(input);
    let header = plan.header::<Header>().map_err(Stopped::Plan)?;
    let mut client = Client::new(&header).map_err(Stopped::Plan)?;
    while let Some(request) = plan.next_line::<Request>().map_err(Stopped::Plan)? {
        client
            .perform(&request)
            .write(&mut output)
            .map_err(Stopped::Output)?;
    }
    Ok(())
}

struct Client {
    target: Target,
    connection_mode: ConnectionMode,
    deadline_ms: u64,
    signer: Signer,
    payload: Payload,
    kept: Option<Connection>,
    message: Message,
    response: Response,
}

impl Client {
    fn new(header: &Header) -> Result<Self, PlanError> {
        Ok(Client {
            target: Target::resolve(&header.host, header.port)?,
            connection_mode: header.connection,
            deadline_ms: header.deadline_ms,
            signer: Signer::new(&header.access_key, &header.secret_key, &header.region),
            payload: header.payload,
            kept: None,
            message: Message::default(),
            response: Response::default(),
        })
    }

    fn perform(&mut self, request: &Request) -> Record {
        let object_sha256 = self.build(request);
        self.prepare_response(request);

        let kept = self.kept.take().filter(|connection| !connection.is_stale());
        let address = kept.is_none().then_some(self.target.address);
        let connection = match kept.map_or_else(|| Connection::new(self.target.address), Ok) {
            Ok(connection) => connection,
            Err(error) => return without_socket(request, error),
        };
        // What happened on a kept connection between two requests belongs to neither.
        let before = address.is_none().then(|| tcp_info::read(&connection));

        let making_ns = self.message.body.making_ns();
        let done = exchange::run(
            &connection,
            address,
            &mut self.message,
            &mut self.response,
            plan::allowed_ns(request.deadline_ms, self.deadline_ms),
        );

        let after = tcp_info::read(&connection);
        let mut record = self.judge(request, &done);
        record.add_tcp_info(before, after);
        record.new_connection = address.is_some();
        if request.endpoint.sends_object {
            record.sha256 = Some(object_sha256);
            record.make_ns = Some(making_ns.get());
        }
        if self.reusable(&done) {
            self.kept = Some(connection);
        }
        record
    }

    /// A large GetObject whose bytes are known is compared as it comes; anything else is held.
    fn prepare_response(&mut self, request: &Request) {
        let endpoint = request.endpoint;
        let received = request.object_bytes.filter(|_| !endpoint.sends_object);
        match (endpoint.check, request.body_seed, received) {
            (Check::Object, Some(seed), Some(bytes)) if bytes > body::WHOLE_BYTES => {
                self.response.prepare_verified(Verifier::new(seed), bytes);
            }
            _ => {
                let expected = received.unwrap_or(0);
                self.response.prepare(expected, endpoint.method == "HEAD");
            }
        }
    }

    /// Builds and signs the request's bytes; returns the SHA-256 of its body.
    fn build(&mut self, request: &Request) -> String {
        let endpoint = request.endpoint;
        let (seed, bytes) = match endpoint.sends_object {
            true => (
                request.body_seed.unwrap_or_default(),
                request.object_bytes.unwrap_or_default(),
            ),
            false => (0, 0),
        };
        self.message.body = Outgoing::body(seed, bytes);
        let sha256 = body::sha256(seed, bytes);

        let target = endpoint.target_of(request);
        let content_type: &[(&str, &str)] = if endpoint.sends_object {
            &[("content-type", "application/octet-stream")]
        } else {
            &[]
        };
        let url = format!("http://{}{target}", self.target.authority);
        let signed = self
            .signer
            .headers(
                endpoint.method,
                &url,
                content_type,
                self.payload.hash(&sha256),
                SystemTime::now(),
            )
            .expect("the target is percent-encoded, so the URL is one");

        let head = &mut self.message.head;
        head.clear();
        let _ = write!(
            head,
            "{} {target} HTTP/1.1\r\nhost: {}\r\n",
            endpoint.method, self.target.authority
        );
        let _ = write!(
            head,
            "user-agent: wanlat-oneshot/{}\r\n",
            env!("CARGO_PKG_VERSION")
        );
        for (name, value) in content_type {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        for (name, value) in &signed {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if endpoint.method == "PUT" {
            let _ = write!(head, "content-length: {bytes}\r\n");
        }
        if self.connection_mode == ConnectionMode::New {
            head.extend_from_slice(b"connection: close\r\n");
        }
        head.extend_from_slice(b"\r\n");
        sha256
    }

    fn judge(&self, request: &Request, done: &Exchange) -> Record {
        let mut record = empty_record(request, &done.timing);
        let head = self.response.head();
        record.status = head.map(|head| head.status);
        record.object_bytes = if request.endpoint.sends_object {
            done.sent_bytes.saturating_sub(self.message.head.len()) as u64
        } else {
            self.response.body_bytes() as u64
        };
        record.verify_ns = self.response.verifier().map(Verifier::spent_ns);
        let verdict = match (&done.result, head) {
            (Err(failure), _) => outcome::of_failure(failure, done.sent_bytes),
            (Ok(()), Some(head)) if (200..300).contains(&head.status) => {
                if !done.is_sent {
                    Verdict::unknown(format!("http {} before the request was sent", head.status))
                } else {
                    let finding = check::check(request, &self.response);
                    record.sha256 = finding.sha256;
                    record.verify_ns = finding.verify_ns;
                    record.listed = finding.listed;
                    finding.verdict
                }
            }
            (Ok(()), Some(head)) => {
                let document = self.response.body_text(ERROR_DOCUMENT_BYTES);
                let refusal = Refusal {
                    status: head.status,
                    code: check::error_code(&document),
                    location: head.location.as_deref(),
                };
                outcome::of_refusal(refusal, request.endpoint.writes)
            }
            (Ok(()), None) => unreachable!("a complete response has a head"),
        };
        record.judged(verdict)
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

/// The machine gave no socket: nothing was sent.
fn without_socket(request: &Request, error: rustix::io::Errno) -> Record {
    let timing = Timing {
        start_ns: clock::now_ns(),
        ..Timing::default()
    };
    let failure = Failure {
        stage: Stage::Connect,
        cause: Cause::Os(error),
    };
    empty_record(request, &timing).judged(outcome::of_failure(&failure, 0))
}

fn empty_record(request: &Request, timing: &Timing) -> Record {
    Record::new(request.seq, request.phase, request.endpoint.name, timing)
}

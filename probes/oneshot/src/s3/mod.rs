//! S3, over plain HTTP/1.1.
//!
//! Memory: a large body that is sent is made a block at a time ([`crate::outgoing`]), and one that
//! is read is compared as it comes ([`crate::verify`]), so that neither is ever held, however long
//! it is. Held are small ones ([`body::WHOLE_BYTES`]), and answers whose bytes are not known
//! beforehand: listings, errors, and objects that the plan names no seed for.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;

use serde::Deserialize;

use crate::body;
use crate::connection::Connection;
use crate::http::exchange::{Exchange, Message};
use crate::http::response::Head;
use crate::http::{Speaker, is_success};
use crate::outcome::Verdict;
use crate::outgoing::Outgoing;
use crate::plan::{
    self, ConnectionMode, HeaderLine, LoadTerms, MAX_OBJECT_BYTES, Payload, PlanError, PlanLine,
    Request, Terms,
};
use crate::protocol::{Built, Judged, Protocol};
use crate::record::Record;
use crate::s3::endpoint::{Check, Endpoint};
use crate::s3::sign::Signer;
use crate::target::Target;
use crate::tcp_info::{self, TcpInfo};
use crate::timing::Timing;

pub mod endpoint;
pub mod sign;

const ERROR_DOCUMENT_BYTES: usize = 64 * 1024;

/// The plan's first line: where to, as whom, and for how long at most.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub host: String,
    pub port: u16,
    pub region: String,
    pub access_key: String,
    pub secret_key: String,
    #[serde(default)]
    pub connection: ConnectionMode,
    pub deadline_ms: u64,
    #[serde(default)]
    pub payload: Payload,
}

impl PlanLine for Header {
    fn check(&self) -> Result<(), String> {
        plan::check_deadline(Some(self.deadline_ms))?;
        // They become part of a header line.
        for (name, text) in [("region", &self.region), ("access_key", &self.access_key)] {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!(
                    "`{name}` must be printable ASCII without blanks: {text:?}"
                ));
            }
        }
        Ok(())
    }
}

impl HeaderLine for Header {
    fn terms(&self) -> Terms {
        Terms {
            connection: self.connection,
            deadline_ms: self.deadline_ms,
        }
    }

    fn take(&mut self, load: LoadTerms) -> Result<(), String> {
        self.payload = load.payload;
        Ok(())
    }
}

/// Speaks S3 to one server.
pub struct S3 {
    http: Speaker,
    connection_mode: ConnectionMode,
    signer: Signer,
    payload: Payload,
}

/// A request, signed.
pub struct Ready {
    endpoint: &'static Endpoint,
    message: Message,
    /// Of the object that is sent.
    sha256: Option<String>,
    making_ns: Rc<Cell<u64>>,
}

impl Protocol for S3 {
    type Header = Header;
    type Link = Connection;
    type Ready = Ready;
    type Done = Exchange;

    fn new(header: &Header, lean: bool) -> Result<Self, PlanError> {
        let target = Target::resolve(&header.host, header.port)?;
        let Header {
            access_key,
            secret_key,
            region,
            ..
        } = header;
        Ok(S3 {
            signer: Signer::new(access_key, secret_key, region, &target.authority),
            http: Speaker::new(target, lean),
            connection_mode: header.connection,
            payload: header.payload,
        })
    }

    fn build(&mut self, request: &Request) -> Result<Built<Ready>, String> {
        let endpoint = Endpoint::named(&request.endpoint)?;
        request.check_fields(endpoint.needs, endpoint.may_have)?;
        for (name, text) in [("bucket", &request.bucket), ("key", &request.key)] {
            if text.as_deref() == Some("") {
                return Err(format!("`{name}` is empty"));
            }
        }
        if request.object_bytes > Some(MAX_OBJECT_BYTES) {
            return Err(format!(
                "`object_bytes` is at most {MAX_OBJECT_BYTES}, as in S3"
            ));
        }
        self.prepare_response(endpoint, request);
        Ok(Built::Ready(self.sign(endpoint, request)))
    }

    fn link(&mut self, _: Option<u64>) -> Result<Connection, Verdict> {
        self.http.link()
    }

    fn is_alive(link: &mut Connection) -> bool {
        !link.is_stale()
    }

    fn tcp_info(link: &Connection) -> TcpInfo {
        tcp_info::read(link)
    }

    fn exchange(
        &mut self,
        link: &mut Connection,
        is_new: bool,
        ready: &mut Ready,
        allowed_ns: u64,
    ) -> (Timing, Exchange) {
        self.http
            .exchange(link, is_new, &mut ready.message, allowed_ns)
    }

    fn judge(
        &self,
        request: &Request,
        ready: &Ready,
        done: &Exchange,
        record: &mut Record,
    ) -> Judged {
        let endpoint = ready.endpoint;
        self.http.note(record);
        if endpoint.sends_object {
            record.object_bytes = done.sent_bytes.saturating_sub(ready.message.head.len()) as u64;
            record.sha256.clone_from(&ready.sha256);
            record.make_ns = Some(ready.making_ns.get());
        }
        let document = match record.status {
            Some(status) if !is_success(status) => {
                self.http.response.body_text(ERROR_DOCUMENT_BYTES)
            }
            _ => String::new(),
        };
        let code = error_code(&document);
        let verdict = match self.http.answer(done, is_success, code, endpoint.writes) {
            Ok(head) => self.check(endpoint, request, head, record),
            Err(unwanted) => unwanted,
        };
        Judged {
            verdict,
            is_reusable: self.http.is_reusable(done),
        }
    }
}

impl S3 {
    fn prepare_response(&mut self, endpoint: &Endpoint, request: &Request) {
        if endpoint.check == Check::Object {
            self.http.expect_object(request);
        } else {
            self.http.response.prepare(0, endpoint.method == "HEAD");
        }
    }

    fn sign(&mut self, endpoint: &'static Endpoint, request: &Request) -> Ready {
        let (seed, bytes) = match endpoint.sends_object {
            true => request.object(),
            false => (0, 0),
        };
        let is_unsigned = endpoint.sends_object && self.payload == Payload::Unsigned;
        let sha256 = (!is_unsigned || !self.http.lean).then(|| body::sha256(seed, bytes));
        let payload = match &sha256 {
            Some(sha256) if !is_unsigned => sha256,
            _ => "UNSIGNED-PAYLOAD",
        };
        let content_type: &[(&str, &str)] = match endpoint.sends_object {
            true => &[("content-type", "application/octet-stream")],
            false => &[],
        };
        let (method, target) = (endpoint.method, endpoint.target_of(request));

        let mut head = Vec::with_capacity(1024);
        let _ = write!(
            head,
            "{method} {target} HTTP/1.1\r\nhost: {}\r\nuser-agent: wanlat-oneshot/{}\r\n",
            self.http.target.authority,
            env!("CARGO_PKG_VERSION")
        );
        for (name, value) in content_type {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        self.signer
            .write_headers(method, &target, content_type, payload, &mut head);
        if method == "PUT" {
            let _ = write!(head, "content-length: {bytes}\r\n");
        }
        if self.connection_mode == ConnectionMode::New {
            head.extend_from_slice(b"connection: close\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let body = match endpoint.sends_object {
            true => Outgoing::body(seed, bytes),
            false => Outgoing::default(),
        };
        Ready {
            endpoint,
            making_ns: body.making_ns(),
            message: Message { head, body },
            sha256,
        }
    }

    /// Is what a complete 2xx response holds what was asked for?
    fn check(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        head: &Head,
        record: &mut Record,
    ) -> Verdict {
        match endpoint.check {
            Check::Nothing => Verdict::ok(),
            Check::Object => self.http.check_object(request, record),
            Check::AnnouncedLength => head.check_length(request.object_bytes),
            Check::Listing { root, item } => {
                let text = self.http.response.body_text(usize::MAX);
                if !text.contains(root) {
                    return Verdict::fail(format!("listing mismatch: no {root}> in it"));
                }
                let listed = text.matches(item).count() as u64;
                record.listed = Some(listed);
                match request.listed {
                    Some(expected) if expected != listed => {
                        Verdict::fail(format!("listing mismatch: {listed} keys, not {expected}"))
                    }
                    _ => Verdict::ok(),
                }
            }
        }
    }
}

/// The error code of an S3 error document.
fn error_code(document: &str) -> Option<&str> {
    let (_, code) = document.split_once("<Code>")?;
    let (code, _) = code.split_once("</Code>")?;
    Some(code.trim()).filter(|code| !code.is_empty())
}

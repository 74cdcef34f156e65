//! `oneshot http`: requests of any HTTP/1.1 service, each a template of the plan's.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use crate::body;
use crate::connection::Connection;
use crate::http::exchange::{Exchange, Message};
use crate::http::response::Head;
use crate::http::{Speaker, is_success};
use crate::outcome::{Outcome, Verdict};
use crate::outgoing::Outgoing;
use crate::placeholders::{self, BODY, Placeholders};
use crate::plan::{self, ConnectionMode, HeaderLine, PlanError, PlanLine, Request, Terms};
use crate::protocol::{Built, Judged, Protocol};
use crate::record::Record;
use crate::target::Target;
use crate::tcp_info::{self, TcpInfo};
use crate::timing::Timing;

/// The plan's first line: where to, for how long at most, and what every request is sent with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub host: String,
    pub port: u16,
    #[serde(default)]
    pub connection: ConnectionMode,
    pub deadline_ms: u64,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// Of an answer that is not as it should be.
const SHOWN_CHARACTERS: usize = 200;

/// A line's `request`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    method: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A text, or the object.
    body: Option<String>,
    /// A body in JSON.
    json: Option<Value>,
    /// The status of an answer that is right; none: any 2xx.
    #[serde(default)]
    expect: Vec<u16>,
    /// What the body of an answer that is right has in it.
    contains: Option<String>,
}

impl PlanLine for Header {
    fn check(&self) -> Result<(), String> {
        plan::check_deadline(Some(self.deadline_ms))
    }
}

impl HeaderLine for Header {
    fn terms(&self) -> Terms {
        Terms {
            connection: self.connection,
            deadline_ms: self.deadline_ms,
        }
    }
}

/// Speaks HTTP to one server.
pub struct Http {
    speaker: Speaker,
    connection_mode: ConnectionMode,
    headers: BTreeMap<String, String>,
}

/// What of the answer is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    /// The body is the object.
    Object,
    /// Content-Length is the object's.
    Length,
}

/// A request, ready to be sent.
pub struct Ready {
    message: Message,
    expect: Vec<u16>,
    contains: Option<String>,
    writes: bool,
    check: Check,
    /// What is sent beside the object; where that is in base64, the surplus too.
    around_bytes: usize,
    /// Of the object that is sent.
    sha256: Option<String>,
    making_ns: Rc<Cell<u64>>,
}

impl Ready {
    /// A write that was answered with another object than expected may have been executed.
    fn judged(&self, verdict: Verdict) -> Verdict {
        match verdict.outcome {
            Outcome::Fail if self.writes => Verdict::unknown(verdict.error.unwrap_or_default()),
            _ => verdict,
        }
    }
}

impl Protocol for Http {
    type Header = Header;
    type Link = Connection;
    type Ready = Ready;
    type Done = Exchange;

    fn new(header: &Header, lean: bool) -> Result<Self, PlanError> {
        Ok(Http {
            speaker: Speaker::new(Target::resolve(&header.host, header.port)?, lean),
            connection_mode: header.connection,
            headers: header.headers.clone(),
        })
    }

    fn build(&mut self, request: &Request) -> Result<Built<Ready>, String> {
        let may_have = ["key", "object_bytes", "body_seed", "response_object"];
        request.check_fields(&["request"], &may_have)?;
        let template = request.request.clone().unwrap_or_default();
        let template: Template =
            serde_json::from_value(template).map_err(|error| format!("`request`: {error}"))?;
        let check = match request.response_object.as_deref() {
            None => Check::Nothing,
            Some("body") => Check::Object,
            Some("content-length") => Check::Length,
            Some(other) => {
                return Err(format!(
                    "`response_object` is {other:?}, expected body or content-length"
                ));
            }
        };
        if check == Check::Object && !template.expect.iter().all(|status| is_success(*status)) {
            return Err("`expect` has a status other than 2xx, whose body is no object".into());
        }
        if check != Check::Nothing && template.contains.is_some() {
            return Err("`request` has `contains`, and there is a `response_object`".into());
        }
        if check == Check::Object {
            self.speaker.expect_object(request);
        } else {
            self.speaker.response.prepare(0, template.method == "HEAD");
        }
        self.make(&template, request, check).map(Built::Ready)
    }

    fn link(&mut self, _: Option<u64>) -> Result<Connection, Verdict> {
        self.speaker.link()
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
        self.speaker
            .exchange(link, is_new, &mut ready.message, allowed_ns)
    }

    fn judge(
        &self,
        request: &Request,
        ready: &Ready,
        done: &Exchange,
        record: &mut Record,
    ) -> Judged {
        self.speaker.note(record);
        if ready.sha256.is_some() {
            record.object_bytes = done.sent_bytes.saturating_sub(ready.around_bytes) as u64;
            record.sha256.clone_from(&ready.sha256);
            record.make_ns = Some(ready.making_ns.get());
        }
        let is_wanted = |status| match &ready.expect[..] {
            [] => is_success(status),
            expect => expect.contains(&status),
        };
        let answered = self.speaker.answer(done, is_wanted, None, ready.writes);
        let verdict = match (answered, ready.check) {
            (Err(unwanted), _) => unwanted,
            (Ok(_), Check::Nothing) => self.check_text(ready),
            (Ok(_), Check::Object) => ready.judged(self.speaker.check_object(request, record)),
            (Ok(head), Check::Length) => {
                ready.judged(Head::check_length(head, request.object_bytes))
            }
        };
        Judged {
            verdict,
            is_reusable: self.speaker.is_reusable(done),
        }
    }
}

impl Http {
    /// A service that says in the body what went wrong may have done it or not.
    fn check_text(&self, ready: &Ready) -> Verdict {
        let body = self.speaker.response.body_text(usize::MAX);
        let Some(text) = ready.contains.as_deref().filter(|it| !body.contains(it)) else {
            return Verdict::ok();
        };
        let shown: String = body.chars().take(SHOWN_CHARACTERS).collect();
        let wrong = format!("the answer does not contain {text:?}: {shown}");
        if ready.writes {
            Verdict::unknown(wrong)
        } else {
            Verdict::fail(wrong)
        }
    }

    fn make(&self, template: &Template, request: &Request, check: Check) -> Result<Ready, String> {
        let mut values = Placeholders::of(request);
        let method = &template.method;
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!("`request.method` is {method:?}, no method of HTTP"));
        }
        let path = values.text(&template.path)?;
        if !path.starts_with('/') || PathAndQuery::try_from(path.as_str()).is_err() {
            return Err(format!(
                "`request.path` is {path:?}: it begins with a slash, and what is no character of a \
                 path is written as %XX"
            ));
        }
        let sends_object = template.body.as_deref() == Some(BODY);
        let (content_type, body) = match (&template.body, &template.json) {
            (Some(_), Some(_)) => return Err("`request` has a `body` and `json`".into()),
            (None, None) => (None, Outgoing::default()),
            (None, Some(json)) => {
                let bytes = values.json(json)?.to_string().into_bytes();
                (Some("application/json"), bytes.into())
            }
            (Some(_), None) if sends_object => {
                placeholders::check_object(request)?;
                let (seed, bytes) = request.object();
                values.object = Some(body::sha256(seed, bytes));
                (
                    Some("application/octet-stream"),
                    Outgoing::body(seed, bytes),
                )
            }
            (Some(text), None) => (Some("text/plain"), values.text(text)?.into_bytes().into()),
        };
        let mut headers = HeaderMap::new();
        let mut add = |name: &str, text: &str| -> Result<(), String> {
            let wrong = || format!("`headers`: {name:?}: {text:?} is no header");
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            if [
                "connection",
                "content-length",
                "transfer-encoding",
                "expect",
            ]
            .contains(&key.as_str())
            {
                return Err(format!("`headers`: {name:?} is the protocol's own"));
            }
            headers.insert(key, HeaderValue::from_str(text).map_err(|_| wrong())?);
            Ok(())
        };
        add("host", &self.speaker.target.authority)?;
        add(
            "user-agent",
            concat!("wanlat-oneshot/", env!("CARGO_PKG_VERSION")),
        )?;
        if let Some(content_type) = content_type {
            add("content-type", content_type)?;
        }
        for (name, text) in self.headers.iter().chain(&template.headers) {
            add(name, &values.text(text)?)?;
        }
        let mut head = Vec::with_capacity(1024);
        let _ = write!(head, "{method} {path} HTTP/1.1\r\n");
        for (name, value) in &headers {
            let _ = write!(head, "{name}: ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        if content_type.is_some() || matches!(method.as_str(), "PUT" | "POST" | "PATCH") {
            let _ = write!(head, "content-length: {}\r\n", body.left());
        }
        if self.connection_mode == ConnectionMode::New {
            head.extend_from_slice(b"connection: close\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let (making_ns, message) = (body.making_ns(), Message { head, body });
        let (_, object_bytes) = request.object();
        Ok(Ready {
            making_ns,
            around_bytes: message.bytes().saturating_sub(object_bytes as usize),
            message,
            expect: template.expect.clone(),
            contains: template
                .contains
                .as_deref()
                .map(|it| values.text(it))
                .transpose()?,
            writes: !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS"),
            check,
            sha256: values.object,
        })
    }
}

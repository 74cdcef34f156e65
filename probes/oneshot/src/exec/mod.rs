//! `oneshot exec`: requests that a program of the user's makes, in whatever protocol it knows.
//!
//! The program reads one request a line, `{"op": "write", "key": "0aff"}`, and answers each with one
//! line: `{"ok": true}`, `{"not_found": "which object is not there"}`, `{"fail": "why it was certainly
//! not executed"}` or `{"unknown": "why nobody knows"}`; of a read with `body` (base64) or `sha256`
//! beside it. The clock runs from the line that is written to the line that comes back. The program
//! itself answers `{"op": "nothing"}` with ok: this shows that it is ready, before anything is timed,
//! and how much time it takes itself.
//!
//! A program serves many requests, or is started for each. One that ends or sends anything else is
//! replaced, and no request is sent to two. One that does not answer before the deadline is set aside
//! and used again once it has answered; that answer is dropped. Starting an interpreter takes more CPU
//! time than many requests, and so a slow store is served by the same few programs.
//!
//! A request for which no program became ready, or whose line the program ended without reading, is
//! `not_sent`: the store had no part in that.
//!
//! A program that serves many requests is started before the first one. A request with a deadline of
//! its own waits at most that long for the program to be ready; the next request uses the same program.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::body;
use crate::clock;
use crate::exec::program::{Asked, Debt, Program, Silence};
use crate::failure::{Cause, Failure};
use crate::outcome::{self, Verdict};
use crate::placeholders::Placeholders;
use crate::plan::{self, ConnectionMode, HeaderLine, PlanError, PlanLine, Request, Terms};
use crate::protocol::{Built, Judged, Protocol};
use crate::record::Record;
use crate::tcp_info::TcpInfo;
use crate::timing::Timing;
use crate::verify::Verifier;

pub mod program;

/// For a program to be ready: more than an interpreter needs on a busy machine.
const START_NS: u64 = 30_000_000_000;
const NOTHING: &[u8] = b"{\"op\":\"nothing\"}\n";
/// Of programs whose answer is late; one more, and the oldest is ended.
const MOST_LATE: usize = 4;

/// The plan's first line: which program, for how long a request at most.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub connection: ConnectionMode,
    pub deadline_ms: u64,
}

impl PlanLine for Header {
    fn check(&self) -> Result<(), String> {
        if self.command.is_empty() {
            return Err("`command` names no program".into());
        }
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

/// Asks one program.
pub struct Exec {
    command: Vec<String>,
    environment: BTreeMap<String, String>,
    starting: Option<Starting>,
    /// The oldest first.
    late: Vec<Program>,
}

/// A program that is not ready yet.
struct Starting {
    program: Program,
    until_ns: u64,
}

/// How an answer tells the object that was read.
#[derive(Debug, Clone, Copy)]
enum Object {
    Body,
    Sha256,
}

/// A line.
pub struct Ready {
    line: Vec<u8>,
    object: Option<Object>,
    /// Of the object that is sent.
    sha256: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    ok: bool,
    not_found: Option<String>,
    fail: Option<String>,
    unknown: Option<String>,
    sha256: Option<String>,
    body: Option<String>,
}

impl Protocol for Exec {
    type Header = Header;
    type Link = Program;
    type Ready = Ready;
    type Done = Asked;

    fn new(header: &Header, _: bool) -> Result<Self, PlanError> {
        Ok(Exec {
            command: header.command.clone(),
            environment: header.environment.clone(),
            starting: None,
            late: Vec::new(),
        })
    }

    fn build(&mut self, request: &Request) -> Result<Built<Ready>, String> {
        let may_have = [
            "key",
            "object_bytes",
            "body_seed",
            "request",
            "response_object",
        ];
        request.check_fields(&[], &may_have)?;
        let object = match request.response_object.as_deref() {
            None => None,
            Some("body") => Some(Object::Body),
            Some("sha256") => Some(Object::Sha256),
            Some(other) => {
                return Err(format!(
                    "`response_object` is {other:?}, expected body or sha256"
                ));
            }
        };
        if object.is_some() && request.body_seed.is_none() {
            return Err("`response_object` needs `object_bytes` and `body_seed`".into());
        }
        let mut values = Placeholders::of(request);
        let template = request
            .request
            .clone()
            .unwrap_or_else(|| Value::Object(Default::default()));
        let Value::Object(mut fields) = values.json(&template)? else {
            return Err("`request` is no mapping".into());
        };
        if fields
            .insert("op".into(), request.endpoint.as_ref().into())
            .is_some()
        {
            return Err("`request` has an `op`, which is the endpoint's name".into());
        }
        let mut line = Value::Object(fields).to_string().into_bytes();
        line.push(b'\n');
        Ok(Built::Ready(Ready {
            line,
            object,
            sha256: values.object,
        }))
    }

    fn get_ready(&mut self) {
        self.starting = self.start().ok(); // if not, the first request reports why
    }

    /// A program that is ready: started, and has answered that it does nothing.
    fn link(&mut self, allowed_ns: Option<u64>) -> Result<Program, Verdict> {
        let mut starting = match self.starting.take() {
            Some(starting) => starting,
            None => self.start()?,
        };
        let start_ns = starting.until_ns.saturating_sub(clock::now_ns());
        let allowed_ns = allowed_ns.map_or(start_ns, |own_ns| own_ns.min(start_ns));
        let what = match starting.program.hear(allowed_ns) {
            Ok(line) => match answer(&line) {
                Ok(Answer { ok: true, .. }) => return Ok(starting.program),
                _ => format!(
                    "to {{\"op\": \"nothing\"}} it answers {:.200}, not {{\"ok\": true}}",
                    String::from_utf8_lossy(&line)
                ),
            },
            Err(Silence::Deadline(_)) => {
                if clock::now_ns() < starting.until_ns {
                    self.starting = Some(starting);
                }
                "it has not answered".into()
            }
            Err(Silence::Broken(what)) => what,
        };
        let file = self.file();
        Err(Verdict::not_sent(format!(
            "{file} did not become ready: {what}"
        )))
    }

    fn regained(&mut self) -> Option<Program> {
        let mut free = None;
        for mut program in std::mem::take(&mut self.late) {
            match program.catch_up() {
                Debt::Paid if free.is_none() => free = Some(program),
                Debt::Paid | Debt::Open => self.late.push(program),
                Debt::Bad => {}
            }
        }
        free
    }

    fn put_aside(&mut self, link: Program) {
        if !link.owes() {
            return;
        }
        if self.late.len() == MOST_LATE {
            self.late.remove(0);
        }
        self.late.push(link);
    }

    fn is_alive(link: &mut Program) -> bool {
        link.is_idle()
    }

    fn tcp_info(_: &Program) -> TcpInfo {
        TcpInfo::default()
    }

    fn exchange(
        &mut self,
        link: &mut Program,
        _: bool,
        ready: &mut Ready,
        allowed_ns: u64,
    ) -> (Timing, Asked) {
        let asked = link.ask(&ready.line, allowed_ns);
        (asked.timing, asked)
    }

    fn judge(&self, request: &Request, ready: &Ready, done: &Asked, record: &mut Record) -> Judged {
        if ready.sha256.is_some() {
            let is_sent = done.sent_bytes == ready.line.len();
            record.object_bytes = request.object_bytes.filter(|_| is_sent).unwrap_or(0);
            record.sha256.clone_from(&ready.sha256);
        }
        let (verdict, is_reusable) = match &done.result {
            Err(Silence::Broken(what)) if done.is_unread => (Verdict::not_sent(what), false),
            Err(Silence::Broken(what)) => (Verdict::unknown(what), false),
            Err(Silence::Deadline(stage)) if done.is_unread => {
                (Verdict::not_sent(format!("timeout ({stage})")), false)
            }
            Err(Silence::Deadline(stage)) => {
                let (stage, cause) = (*stage, Cause::Timeout);
                let failure = Failure { stage, cause };
                (outcome::of_failure(&failure, done.sent_bytes), false)
            }
            Ok(line) => match answer(line).and_then(|answer| judge(request, ready, answer, record))
            {
                Ok(verdict) => (verdict, true),
                Err(what) => (
                    Verdict::unknown(format!("malformed response: {what}")),
                    false,
                ),
            },
        };
        Judged {
            verdict,
            is_reusable,
        }
    }
}

impl Exec {
    fn file(&self) -> &str {
        self.command.first().map(String::as_str).unwrap_or_default()
    }

    /// A program that reports when it is ready.
    fn start(&self) -> Result<Starting, Verdict> {
        let not_sent =
            |error| Verdict::not_sent(format!("{} cannot be started: {error}", self.file()));
        let mut program = Program::start(&self.command, &self.environment).map_err(not_sent)?;
        program.tell(NOTHING);
        Ok(Starting {
            program,
            until_ns: clock::now_ns() + START_NS,
        })
    }
}

/// One answer, which says one thing.
fn answer(line: &[u8]) -> Result<Answer, String> {
    let text = || String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    let answer: Answer = serde_json::from_slice(line).map_err(|_| text())?;
    let texts = [&answer.not_found, &answer.fail, &answer.unknown];
    match texts.into_iter().flatten().count() + usize::from(answer.ok) {
        1 => Ok(answer),
        _ => Err(format!(
            "one of ok, not_found, fail and unknown is wanted: {}",
            text()
        )),
    }
}

/// What it says. Err: it is malformed.
fn judge(
    request: &Request,
    ready: &Ready,
    answer: Answer,
    record: &mut Record,
) -> Result<Verdict, String> {
    if let Some(why) = answer.not_found {
        return Ok(Verdict::not_found(&why));
    }
    if let Some(why) = answer.fail {
        return Ok(Verdict::fail(why));
    }
    if let Some(why) = answer.unknown {
        return Ok(Verdict::unknown(why));
    }
    let (seed, bytes) = request.object();
    match ready.object {
        None => Ok(Verdict::ok()),
        Some(Object::Body) => {
            let text = answer.body.ok_or("there is no `body` in it")?;
            let data = BASE64_STANDARD
                .decode(text)
                .map_err(|error| format!("`body`: {error}"))?;
            let mut came = Verifier::new(seed);
            came.take(&data);
            record.sha256 = Some(came.sha256());
            Ok(record.object_came(data.len() as u64, Some(&came), Some(bytes)))
        }
        Some(Object::Sha256) => {
            let sha256 = answer.sha256.ok_or("there is no `sha256` in it")?;
            record.object_bytes = bytes;
            let is_right = sha256.eq_ignore_ascii_case(&body::sha256(seed, bytes));
            record.sha256 = Some(sha256);
            Ok(match is_right {
                true => Verdict::ok(),
                false => Verdict::fail("checksum mismatch"),
            })
        }
    }
}

//! The plan: a header line, then one request a line, read as they come.
//!
//! A line is taken only when the request before it is done, so a driver may write a request, wait
//! for its record, and write the next. What is wrong in a line is said with the line's number.

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Whether the connection is kept between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionMode {
    #[default]
    KeepAlive,
    New,
}

/// What a request is for. Carried through to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Prepare,
    Warmup,
    #[default]
    Measure,
}

/// A line that is understood, but may still make no sense.
pub trait PlanLine: DeserializeOwned {
    /// Says what is wrong with it, and what is allowed.
    fn check(&self) -> Result<(), String>;
}

/// What holds for all requests of a plan.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub connection: ConnectionMode,
    /// For connecting, sending and receiving together.
    pub deadline_ms: u64,
}

/// The most that S3 takes in one PutObject.
pub const MAX_OBJECT_BYTES: u64 = 5 << 30;

/// What the signature says of a request's body, in `x-amz-content-sha256`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// Its SHA-256, which the server computes too, to compare: part of what a write costs it.
    #[default]
    Signed,
    /// Nothing.
    Unsigned,
}

/// What a load's job says of all its requests.
#[derive(Debug, Clone, Copy)]
pub struct LoadTerms {
    pub object_bytes: u64,
    pub payload: Payload,
}

/// The first line of a plan.
pub trait HeaderLine: PlanLine + Send + Sync + 'static {
    fn terms(&self) -> Terms;

    /// Takes what a load's job says of all its requests.
    ///
    /// # Errors
    /// They cannot be so.
    fn take(&mut self, _: LoadTerms) -> Result<(), String> {
        Ok(())
    }
}

/// One request, as planned. Which fields it needs and may have is its endpoint's to say.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub seq: u64,
    pub phase: Phase,
    pub endpoint: Cow<'static, str>,
    pub bucket: Option<String>,
    /// gRPC: bytes, as hexadecimal digits. Elsewhere text.
    pub key: Option<String>,
    pub prefix: Option<String>,
    /// The object's length: of the body to send, or of the body that must come back.
    pub object_bytes: Option<u64>,
    /// The seed its bytes are made from (see [`crate::body`]).
    pub body_seed: Option<u64>,
    /// ListObjects: how many keys must come back.
    pub listed: Option<u64>,
    /// Exist: the answer that is right.
    pub exists: Option<bool>,
    /// A method's request in JSON, with placeholders (see [`crate::grpc::template`]), or a template
    /// of HTTP's or of a program's (see [`crate::placeholders`]).
    pub request: Option<Value>,
    /// What of the response must hold the body. gRPC: a field, its names joined by dots.
    pub response_object: Option<String>,
    /// For this request, in place of the header's.
    pub deadline_ms: Option<u64>,
}

impl PlanLine for Request {
    fn check(&self) -> Result<(), String> {
        check_deadline(self.deadline_ms)?;
        if self.body_seed.is_some() && self.object_bytes.is_none() {
            return Err("`body_seed` without `object_bytes` says nothing about a body".into());
        }
        Ok(())
    }
}

impl Request {
    /// Fails where a field that its endpoint needs is not there, or one is that would silently be
    /// ignored.
    ///
    /// # Errors
    /// Which field it is.
    pub fn check_fields(&self, needs: &[&str], may_have: &[&str]) -> Result<(), String> {
        let endpoint = &self.endpoint;
        for (name, given) in [
            ("bucket", self.bucket.is_some()),
            ("key", self.key.is_some()),
            ("prefix", self.prefix.is_some()),
            ("object_bytes", self.object_bytes.is_some()),
            ("body_seed", self.body_seed.is_some()),
            ("listed", self.listed.is_some()),
            ("exists", self.exists.is_some()),
            ("request", self.request.is_some()),
            ("response_object", self.response_object.is_some()),
        ] {
            if given && !needs.contains(&name) && !may_have.contains(&name) {
                return Err(format!("`{name}` means nothing to {endpoint}"));
            }
            if !given && needs.contains(&name) {
                return Err(format!("{endpoint} needs `{name}`"));
            }
        }
        Ok(())
    }

    /// Seed and length of the object that is sent, or none.
    pub fn object(&self) -> (u64, u64) {
        (
            self.body_seed.unwrap_or_default(),
            self.object_bytes.unwrap_or_default(),
        )
    }
}

/// Fails where the time allowed is none.
pub fn check_deadline(deadline_ms: Option<u64>) -> Result<(), String> {
    match deadline_ms {
        Some(0) => Err("`deadline_ms` is 0: no request could be answered in time".into()),
        _ => Ok(()),
    }
}

/// The time that a request has: its own, or else the header's.
pub fn allowed_ns(own_ms: Option<u64>, header_ms: u64) -> u64 {
    own_ms.unwrap_or(header_ms).saturating_mul(1_000_000)
}

/// A plan that cannot be followed. `line` counts from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanError {
    pub line: u64,
    pub what: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan line {}: {}", self.line, self.what)
    }
}

/// Why a plan was not carried out to its end.
#[derive(Debug)]
pub enum Stopped {
    Plan(PlanError),
    /// Nobody takes the records any more.
    Output(std::io::Error),
}

/// Reads a plan line by line.
pub struct Plan<R> {
    input: R,
    line: u64,
    text: String,
}

impl<R: BufRead> Plan<R> {
    pub fn new(input: R) -> Self {
        Plan {
            input,
            line: 0,
            text: String::new(),
        }
    }

    /// The header, which must be there.
    pub fn header<H: PlanLine>(&mut self) -> Result<H, PlanError> {
        let header = self.next_line()?;
        header.ok_or_else(|| PlanError {
            line: 1,
            what: "there is no header".into(),
        })
    }

    /// The next line, or None at the plan's end.
    pub fn next_line<L: PlanLine>(&mut self) -> Result<Option<L>, PlanError> {
        loop {
            self.text.clear();
            self.line += 1;
            match self.input.read_line(&mut self.text) {
                Ok(0) => return Ok(None),
                Ok(_) if self.text.trim().is_empty() => continue,
                Ok(_) => break,
                Err(error) => return Err(self.error(&format!("cannot be read: {error}"))),
            }
        }
        let line: L = serde_json::from_str(&self.text).map_err(|error| {
            // serde_json ends its message with a line number of its own, always 1 here.
            let text = error.to_string();
            let what = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(what, _)| what);
            self.error(&format!("column {}: {what}", error.column()))
        })?;
        line.check().map_err(|what| self.error(&what))?;
        Ok(Some(line))
    }

    /// Something is wrong with the line that was read last.
    pub fn error(&self, what: &str) -> PlanError {
        PlanError {
            line: self.line,
            what: what.to_owned(),
        }
    }
}

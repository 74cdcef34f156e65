//! A plan's line made into what is sent and what must come back, before the clock starts.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, Uri, Version};
use prost::Message as _;

use crate::body;
use crate::grpc::bob::{self, Bob};
use crate::grpc::call::PREFIX_BYTES;
use crate::grpc::check::{Expected, Object};
use crate::grpc::framing::framed;
use crate::grpc::lines::{Endpoint, Header, Request};
use crate::grpc::method::{self, Methods};
use crate::grpc::outcome;
use crate::grpc::template::{self, Values};
use crate::outcome::Verdict;
use crate::outgoing::Outgoing;
use crate::plan::PlanError;

/// Makes requests ready.
pub struct Planner {
    authority: Authority,
    metadata: HeaderMap,
    methods: Methods,
    max_message_bytes: u64,
}

/// A request that is ready to be sent.
pub struct Planned {
    pub http: HttpRequest<()>,
    pub message: Message,
    pub known: Known,
}

/// What is known of it and of its answer.
pub struct Known {
    /// SHA-256 of the object that the message holds.
    pub sha256: Option<String>,
    /// And its length.
    pub sent_object_bytes: Option<u64>,
    /// Executing it may change the store.
    pub writes: bool,
    pub expected: Expected,
}

/// The message, or why it is not sent.
pub enum Message {
    Framed(Outgoing),
    TooLong(Verdict),
}

impl Planner {
    /// Err: the header's `host`, `protos` or `metadata` are of no use.
    pub fn new(header: &Header, authority: &str) -> Result<Self, PlanError> {
        let unusable = |what: String| PlanError { line: 1, what };
        let authority = Authority::try_from(authority)
            .map_err(|error| unusable(format!("host {:?}: {error}", header.host)))?;
        Ok(Planner {
            authority,
            metadata: metadata(&header.metadata).map_err(unusable)?,
            methods: Methods::compile(&header.protos, &header.includes).map_err(unusable)?,
            max_message_bytes: header.max_message_bytes,
        })
    }

    /// Err: the request does not fit its method.
    pub fn plan(&self, request: &Request) -> Result<Planned, String> {
        match &request.endpoint {
            Endpoint::Bob(bob) => Ok(self.bob(*bob, request)),
            Endpoint::Method { service, method } => self.method(service, method, request),
        }
    }

    fn bob(&self, bob: Bob, request: &Request) -> Planned {
        let key = request.key.as_ref().map_or(&[][..], |key| &key.0);
        let object = Object {
            bytes: request.object_bytes,
            seed: request.body_seed,
        };
        let http = self.http(&bob.path());
        let mut known = Known {
            sha256: None,
            sent_object_bytes: None,
            writes: bob.writes(),
            expected: Expected::Bob {
                bob,
                exists: request.exists.unwrap_or(true),
                object,
            },
        };
        if bob != Bob::Put {
            let message = self.fitting(bob.message(key, Bytes::new()));
            return Planned {
                http,
                message,
                known,
            };
        }
        let bytes = request.object_bytes.unwrap_or_default();
        let seed = request.body_seed.unwrap_or_default();
        let message = match self.too_long(bytes) {
            Some(too_long) => Message::TooLong(too_long),
            None => {
                known.sha256 = Some(body::sha256(seed, bytes));
                known.sent_object_bytes = Some(bytes);
                self.fitting(bob::put(key, seed, bytes))
            }
        };
        Planned {
            http,
            message,
            known,
        }
    }

    fn method(&self, service: &str, method: &str, request: &Request) -> Result<Planned, String> {
        let found = self.methods.unary(service, method)?;
        let object = Object {
            bytes: request.object_bytes,
            seed: request.body_seed,
        };
        let response_object = match &request.response_object {
            Some(path) => Some((method::object_field(&found.output(), path)?, object)),
            None => None,
        };
        // A body too long for any message is not made, but the template is looked at all the same.
        let (body, too_long) = match request.body_seed.map(|_| self.body(request)) {
            Some(Ok(body)) => (Some(body), None),
            Some(Err(verdict)) => (Some(Vec::new()), Some(verdict)),
            None => (None, None),
        };
        let key_hex = request.key.as_ref().map(|key| key.hex());
        let values = Values {
            body: body.as_deref(),
            key: request.key.as_ref().map(|key| key.0.as_slice()),
            key_hex: key_hex.as_deref(),
            seq: request.seq,
            now_s: bob::now_s(),
        };
        let empty = serde_json::Value::Object(serde_json::Map::new());
        let template = request.request.as_ref().unwrap_or(&empty);
        let filled = template::fill(&found.input(), template, &values)?;
        if let Some(bytes) = bob::wrong_key(service, method, &filled.message.encode_to_vec()) {
            return Err(bob::wrong_key_error(bytes));
        }
        let sends_body = filled.has_body;
        Ok(Planned {
            http: self.http(&format!("/{service}/{method}")),
            message: match too_long {
                Some(verdict) if sends_body => Message::TooLong(verdict),
                _ => self.fitting(framed(filled.message)),
            },
            known: Known {
                sha256: body
                    .as_ref()
                    .filter(|_| sends_body)
                    .map(|body| body::sha256_of([body.as_slice()])),
                sent_object_bytes: request.object_bytes.filter(|_| sends_body),
                writes: true, // for all that is known
                expected: Expected::Message {
                    descriptor: found.output(),
                    object: response_object,
                },
            },
        })
    }

    /// The request's body, where it is part of a message of any form. Err: it is longer than any
    /// message may be.
    fn body(&self, request: &Request) -> Result<Vec<u8>, Verdict> {
        let bytes = request.object_bytes.unwrap_or_default();
        if let Some(too_long) = self.too_long(bytes) {
            return Err(too_long);
        }
        let mut body = vec![0; bytes as usize];
        body::fill(request.body_seed.unwrap_or_default(), 0, &mut body);
        Ok(body)
    }

    fn too_long(&self, object_bytes: u64) -> Option<Verdict> {
        let (what, limit) = ("the object alone", self.max_message_bytes);
        (object_bytes > limit).then(|| outcome::not_sent(what, object_bytes, limit))
    }

    fn fitting(&self, framed: impl Into<Outgoing>) -> Message {
        let framed = framed.into();
        let bytes = framed.left() - PREFIX_BYTES as u64;
        if bytes > self.max_message_bytes {
            let what = "the request";
            return Message::TooLong(outcome::not_sent(what, bytes, self.max_message_bytes));
        }
        Message::Framed(framed)
    }

    pub(crate) fn http(&self, path: &str) -> HttpRequest<()> {
        let path = PathAndQuery::try_from(path).expect("names of protobuf's make a path");
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .expect("it has all its parts");
        let mut request = HttpRequest::new(());
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.metadata.clone();
        request
    }
}

/// The headers of every request: gRPC's own and the plan's.
fn metadata(given: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert("te", HeaderValue::from_static("trailers"));
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    let agent = concat!("wanlat-oneshot/", env!("CARGO_PKG_VERSION"));
    headers.insert("user-agent", HeaderValue::from_static(agent));
    for (name, value) in given {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`metadata`: {name:?} is no header's name"))?;
        // Names that HTTP/2 forbids or that gRPC keeps for itself.
        let reserved = [
            "connection",
            "host",
            "transfer-encoding",
            "upgrade",
            "keep-alive",
        ];
        if headers.contains_key(&key)
            || reserved.contains(&key.as_str())
            || key.as_str().starts_with("grpc-")
        {
            return Err(format!("`metadata`: {name:?} is the protocol's own"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| {
            format!("`metadata`: the value of {name:?} must be printable ASCII: {value:?}")
        })?;
        headers.insert(key, value);
    }
    Ok(headers)
}

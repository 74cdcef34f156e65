//! A plan's line made into what is sent and what must come back, before the clock starts.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, Uri, Version};
use prost::Message as _;

use crate::body;
use crate::clock;
use crate::grpc::bob::{self, Bob};
use crate::grpc::check::{Expected, Known, Object};
use crate::grpc::framing::{PREFIX_BYTES, framed};
use crate::grpc::header::Header;
use crate::grpc::method::{self, Methods};
use crate::grpc::outcome;
use crate::grpc::template::{self, Values};
use crate::outgoing::Outgoing;
use crate::plan::Request;
use crate::protocol::Built;

/// A request, encoded.
pub struct Ready {
    pub http: HttpRequest<()>,
    pub message: Outgoing,
    pub message_bytes: u64,
    pub making_ns: Rc<Cell<u64>>,
    pub known: Known,
}

/// Encodes the requests to one server.
pub struct Encoder {
    authority: Authority,
    metadata: HeaderMap,
    methods: Methods,
    max_message_bytes: u64,
    lean: bool,
}

impl Encoder {
    /// Err: what the header gives is of no use.
    pub fn new(header: &Header, authority: &str, lean: bool) -> Result<Self, String> {
        Ok(Encoder {
            authority: Authority::try_from(authority)
                .map_err(|error| format!("host {:?}: {error}", header.host))?,
            metadata: metadata(&header.metadata)?,
            methods: Methods::compile(&header.protos, &header.includes)?,
            max_message_bytes: header.max_message_bytes,
            lean,
        })
    }

    /// Err: the request makes no sense, or does not fit its method.
    pub fn encode(&self, request: &Request) -> Result<Built<Ready>, String> {
        let key = request.key.as_deref().map(key_bytes).transpose()?;
        if let Some(bob) = Bob::named(&request.endpoint) {
            let (needs, may_have) = bob.fields();
            request.check_fields(needs, may_have)?;
            return self.bob(bob, &key.unwrap_or_default(), request);
        }
        match request.endpoint.split_once('/') {
            Some((service, method)) if !service.is_empty() && !method.is_empty() => {
                let may_have = [
                    "key",
                    "object_bytes",
                    "body_seed",
                    "request",
                    "response_object",
                ];
                request.check_fields(&[], &may_have)?;
                self.method(service, method, key.as_deref(), request)
            }
            _ => Err(format!(
                "unknown endpoint `{}`, expected one of {}, or package.Service/Method",
                request.endpoint,
                Bob::ALL.map(Bob::name).join(", ")
            )),
        }
    }

    fn bob(&self, bob: Bob, key: &[u8], request: &Request) -> Result<Built<Ready>, String> {
        if bob != Bob::Ping && key.len() != bob::KEY_BYTES {
            let wrong = bob::wrong_key_error(key.len());
            return Err(format!("{wrong} (`key` has two hexadecimal digits a byte)"));
        }
        let object = Object {
            bytes: request.object_bytes,
            seed: request.body_seed,
        };
        let sent = (bob == Bob::Put).then(|| request.object());
        if let Some(unsent) = sent.and_then(|(_, bytes)| self.too_long("the object alone", bytes)) {
            return Ok(unsent);
        }
        let hashed = sent.filter(|_| !self.lean);
        let known = Known {
            object_bytes: sent.map(|(_, bytes)| bytes),
            sha256: hashed.map(|(seed, bytes)| body::sha256(seed, bytes)),
            writes: bob.writes(),
            expected: Expected::Bob {
                bob,
                exists: request.exists.unwrap_or(true),
                object,
            },
        };
        Ok(self.ready(&bob.path(), bob.message(key, request.object()), known))
    }

    fn method(
        &self,
        service: &str,
        method: &str,
        key: Option<&[u8]>,
        request: &Request,
    ) -> Result<Built<Ready>, String> {
        if request.response_object.is_some() && request.body_seed.is_none() {
            return Err("`response_object` needs `object_bytes` and `body_seed`".into());
        }
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
        let (seed, bytes) = request.object();
        let too_long = self.too_long("the object alone", bytes);
        let made = if too_long.is_some() { 0 } else { bytes };
        let body = request.body_seed.map(|_| body::whole(seed, made));
        let values = Values {
            body: body.as_deref(),
            key,
            seq: request.seq,
            now_s: clock::unix_s(),
        };
        let filled = template::fill(&found.input(), request.request.as_ref(), &values)?;
        if let Some(bytes) = bob::wrong_key(service, method, &filled.message.encode_to_vec()) {
            return Err(bob::wrong_key_error(bytes));
        }
        if let Some(unsent) = too_long.filter(|_| filled.has_body) {
            return Ok(unsent);
        }
        let sent = body.filter(|_| filled.has_body);
        let known = Known {
            object_bytes: sent.as_ref().map(|_| bytes),
            sha256: sent
                .filter(|_| !self.lean)
                .map(|body| body::sha256_of([body.as_slice()])),
            writes: true, // for all that is known
            expected: Expected::Message {
                descriptor: found.output(),
                object: response_object,
            },
        };
        let path = format!("/{service}/{method}");
        Ok(self.ready(&path, framed(&filled.message).into(), known))
    }

    fn ready(&self, path: &str, message: Outgoing, known: Known) -> Built<Ready> {
        let bytes = message.left();
        if let Some(unsent) = self.too_long("the request", bytes - PREFIX_BYTES as u64) {
            return unsent;
        }
        Built::Ready(Ready {
            http: self.http(path),
            message_bytes: bytes,
            making_ns: message.making_ns(),
            message,
            known,
        })
    }

    fn too_long(&self, what: &str, bytes: u64) -> Option<Built<Ready>> {
        let limit = self.max_message_bytes;
        (bytes > limit).then(|| Built::Unsent(outcome::too_long(what, bytes, limit)))
    }

    fn http(&self, path: &str) -> HttpRequest<()> {
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

/// A key's bytes, written as hexadecimal digits.
fn key_bytes(digits: &str) -> Result<Vec<u8>, String> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let [high, low] = *pair else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        Some((digit(high)? * 16 + digit(low)?) as u8)
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.ok_or_else(|| format!("`key` must be hexadecimal digits, two a byte: {digits:?}"))
}

/// The headers of every request: gRPC's own and the plan's.
fn metadata(given: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert("te", HeaderValue::from_static("trailers"));
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    let agent = concat!("wanlat-oneshot/", env!("CARGO_PKG_VERSION"));
    headers.insert("user-agent", HeaderValue::from_static(agent));
    // Names that HTTP/2 forbids.
    let forbidden = [
        "connection",
        "host",
        "transfer-encoding",
        "upgrade",
        "keep-alive",
    ];
    for (name, value) in given {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`metadata`: {name:?} is no header's name"))?;
        let text = key.as_str();
        if headers.contains_key(&key) || forbidden.contains(&text) || text.starts_with("grpc-") {
            return Err(format!("`metadata`: {name:?} is the protocol's own"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| {
            format!("`metadata`: the value of {name:?} must be printable ASCII: {value:?}")
        })?;
        headers.insert(key, value);
    }
    Ok(headers)
}

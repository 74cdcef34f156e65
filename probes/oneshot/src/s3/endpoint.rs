//! What an endpoint is on the wire, as data: one row of a table each.

use serde::{Deserialize, Deserializer};

use crate::s3::lines::Request;

/// What the path of an endpoint names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Service,
    Bucket,
    Object,
}

/// Where the value of a query parameter comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryValue {
    Literal(&'static str),
    /// The request's `prefix`; the parameter is left out when there is none.
    Prefix,
}

/// What is checked of a 2xx response once the clock has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    Nothing,
    /// The body is the object: its length, and every byte of it where the plan says the seed.
    Object,
    /// There is no body, but Content-Length announces the object's.
    AnnouncedLength,
    /// The body is the XML document with this root element, with one such element for each item.
    Listing {
        root: &'static str,
        item: &'static str,
    },
}

/// One API operation.
#[derive(Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub name: &'static str,
    pub method: &'static str,
    pub target: Target,
    pub query: &'static [(&'static str, QueryValue)],
    /// The request carries the object as its body.
    pub sends_object: bool,
    /// Executing it changes the store, so it matters whether a failed one was executed.
    pub writes: bool,
    pub check: Check,
}

/// Every endpoint there is.
pub static TABLE: [Endpoint; 8] = [
    Endpoint {
        name: "ListBuckets",
        method: "GET",
        target: Target::Service,
        query: &[],
        sends_object: false,
        writes: false,
        check: Check::Listing {
            root: "<ListAllMyBucketsResult",
            item: "<Bucket>",
        },
    },
    Endpoint {
        name: "ListObjects",
        method: "GET",
        target: Target::Bucket,
        query: &[
            ("list-type", QueryValue::Literal("2")),
            ("prefix", QueryValue::Prefix),
        ],
        sends_object: false,
        writes: false,
        check: Check::Listing {
            root: "<ListBucketResult",
            item: "<Contents>",
        },
    },
    Endpoint {
        // ListObjects of a whole bucket, as a user without a prefix asks: its first page.
        name: "ListObjectsPage",
        method: "GET",
        target: Target::Bucket,
        query: &[("list-type", QueryValue::Literal("2"))],
        sends_object: false,
        writes: false,
        check: Check::Listing {
            root: "<ListBucketResult",
            item: "<Contents>",
        },
    },
    Endpoint {
        name: "GetObject",
        method: "GET",
        target: Target::Object,
        query: &[],
        sends_object: false,
        writes: false,
        check: Check::Object,
    },
    Endpoint {
        name: "HeadObject",
        method: "HEAD",
        target: Target::Object,
        query: &[],
        sends_object: false,
        writes: false,
        check: Check::AnnouncedLength,
    },
    Endpoint {
        name: "PutObject",
        method: "PUT",
        target: Target::Object,
        query: &[],
        sends_object: true,
        writes: true,
        check: Check::Nothing,
    },
    Endpoint {
        name: "RemoveObject",
        method: "DELETE",
        target: Target::Object,
        query: &[],
        sends_object: false,
        writes: true,
        check: Check::Nothing,
    },
    Endpoint {
        name: "CreateBucket",
        method: "PUT",
        target: Target::Bucket,
        query: &[],
        sends_object: false,
        writes: true,
        check: Check::Nothing,
    },
];

impl Endpoint {
    pub fn named(name: &str) -> Option<&'static Endpoint> {
        TABLE.iter().find(|endpoint| endpoint.name == name)
    }

    /// The request's target: path and query, percent-encoded as SigV4 wants them.
    pub fn target_of(&self, request: &Request) -> String {
        let mut target = String::from("/");
        if self.target != Target::Service {
            percent_encode(
                request.bucket.as_deref().unwrap_or_default(),
                false,
                &mut target,
            );
        }
        if self.target == Target::Object {
            target.push('/');
            percent_encode(
                request.key.as_deref().unwrap_or_default(),
                true,
                &mut target,
            );
        }
        let mut separator = '?';
        for (name, value) in self.query {
            let value = match value {
                QueryValue::Literal(text) => text,
                QueryValue::Prefix => match request.prefix.as_deref() {
                    Some(prefix) => prefix,
                    None => continue,
                },
            };
            target.push(separator);
            target.push_str(name);
            target.push('=');
            percent_encode(value, false, &mut target);
            separator = '&';
        }
        target
    }
}

/// Everything but RFC 3986's unreserved characters becomes %XX; in a key, '/' stays.
fn percent_encode(text: &str, keep_slash: bool, into: &mut String) {
    use std::fmt::Write;
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || (keep_slash && byte == b'/') {
            into.push(byte as char);
        } else {
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

/// For `#[serde(deserialize_with)]`: an endpoint by its name.
pub fn by_name<'de, D: Deserializer<'de>>(from: D) -> Result<&'static Endpoint, D::Error> {
    let name = String::deserialize(from)?;
    Endpoint::named(&name).ok_or_else(|| {
        let known: Vec<&str> = TABLE.iter().map(|endpoint| endpoint.name).collect();
        serde::de::Error::custom(format!(
            "unknown endpoint `{name}`, expected one of {}",
            known.join(", ")
        ))
    })
}

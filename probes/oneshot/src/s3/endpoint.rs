//! What an endpoint is on the wire, as data: one row of a table each.

use crate::plan::Request;

/// What the path of an endpoint names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Service,
    Bucket,
    Object,
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
    /// The query, to which the request's `prefix` is added where there is one.
    pub query: &'static str,
    /// The plan's fields that it needs, and that it may have.
    pub needs: &'static [&'static str],
    pub may_have: &'static [&'static str],
    /// The request carries the object as its body.
    pub sends_object: bool,
    /// Executing it changes the store, so it matters whether a failed one was executed.
    pub writes: bool,
    pub check: Check,
}

/// What an endpoint is where its row says nothing else.
const PLAIN: Endpoint = Endpoint {
    name: "",
    method: "GET",
    target: Target::Object,
    query: "",
    needs: &["bucket", "key"],
    may_have: &[],
    sends_object: false,
    writes: false,
    check: Check::Nothing,
};

const OBJECTS: Check = Check::Listing {
    root: "<ListBucketResult",
    item: "<Contents>",
};

/// Every endpoint there is.
static TABLE: [Endpoint; 8] = [
    Endpoint {
        name: "ListBuckets",
        target: Target::Service,
        needs: &[],
        check: Check::Listing {
            root: "<ListAllMyBucketsResult",
            item: "<Bucket>",
        },
        ..PLAIN
    },
    Endpoint {
        name: "ListObjects",
        target: Target::Bucket,
        query: "list-type=2",
        needs: &["bucket"],
        may_have: &["prefix", "listed"],
        check: OBJECTS,
        ..PLAIN
    },
    Endpoint {
        // ListObjects of a whole bucket, as a user without a prefix asks: its first page.
        name: "ListObjectsPage",
        target: Target::Bucket,
        query: "list-type=2",
        needs: &["bucket"],
        may_have: &["listed"],
        check: OBJECTS,
        ..PLAIN
    },
    Endpoint {
        name: "GetObject",
        may_have: &["object_bytes", "body_seed"],
        check: Check::Object,
        ..PLAIN
    },
    Endpoint {
        name: "HeadObject",
        method: "HEAD",
        may_have: &["object_bytes"],
        check: Check::AnnouncedLength,
        ..PLAIN
    },
    Endpoint {
        name: "PutObject",
        method: "PUT",
        needs: &["bucket", "key", "object_bytes", "body_seed"],
        sends_object: true,
        writes: true,
        ..PLAIN
    },
    Endpoint {
        name: "RemoveObject",
        method: "DELETE",
        writes: true,
        ..PLAIN
    },
    Endpoint {
        name: "CreateBucket",
        method: "PUT",
        target: Target::Bucket,
        needs: &["bucket"],
        writes: true,
        ..PLAIN
    },
];

impl Endpoint {
    /// # Errors
    /// There is none of this name; which there are.
    pub fn named(name: &str) -> Result<&'static Endpoint, String> {
        let found = TABLE.iter().find(|endpoint| endpoint.name == name);
        found.ok_or_else(|| {
            let known = TABLE.each_ref().map(|endpoint| endpoint.name).join(", ");
            format!("unknown endpoint `{name}`, expected one of {known}")
        })
    }

    /// The request's target: path and query, percent-encoded as SigV4 wants them.
    pub fn target_of(&self, request: &Request) -> String {
        let mut target = String::from("/");
        if self.target != Target::Service {
            percent_encode(request.bucket.as_deref(), false, &mut target);
        }
        if self.target == Target::Object {
            target.push('/');
            percent_encode(request.key.as_deref(), true, &mut target);
        }
        if !self.query.is_empty() {
            target.extend(["?", self.query]);
        }
        if request.prefix.is_some() {
            target.push_str("&prefix=");
            percent_encode(request.prefix.as_deref(), false, &mut target);
        }
        target
    }
}

/// Everything but RFC 3986's unreserved characters becomes %XX; in a key, '/' stays.
fn percent_encode(text: Option<&str>, keep_slash: bool, into: &mut String) {
    use std::fmt::Write;
    for byte in text.unwrap_or_default().bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || (keep_slash && byte == b'/') {
            into.push(byte as char);
        } else {
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_encoded_as_sigv4_wants_them() {
        for (fields, expected) in [
            (r#""endpoint":"ListBuckets""#, "/"),
            (
                r#""endpoint":"GetObject","bucket":"b","key":"a b/ü+~""#,
                "/b/a%20b/%C3%BC%2B~",
            ),
            (
                r#""endpoint":"ListObjects","bucket":"b","prefix":"a/b""#,
                "/b?list-type=2&prefix=a%2Fb",
            ),
            (r#""endpoint":"ListObjects","bucket":"b""#, "/b?list-type=2"),
        ] {
            let line = format!(r#"{{"seq":0,"phase":"measure",{fields}}}"#);
            let request: Request = serde_json::from_str(&line).unwrap();
            let endpoint = Endpoint::named(&request.endpoint).unwrap();
            assert_eq!(endpoint.target_of(&request), expected);
        }
    }
}

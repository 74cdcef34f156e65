//! The lines of an S3 plan: a header, then requests.

use serde::Deserialize;

use crate::plan::{self, ConnectionMode, Phase, PlanLine};
use crate::s3::endpoint::{self, Endpoint, Target};

/// The most that S3 takes in one PutObject.
const MAX_OBJECT_BYTES: u64 = 5 << 30;

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
    /// For connecting, sending and receiving together.
    pub deadline_ms: u64,
    #[serde(default)]
    pub payload: Payload,
}

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

impl Payload {
    /// What is signed of a body with this hash.
    pub fn hash(self, sha256: &str) -> &str {
        match self {
            Payload::Signed => sha256,
            Payload::Unsigned => "UNSIGNED-PAYLOAD",
        }
    }
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

/// One request, as planned.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub seq: u64,
    pub phase: Phase,
    #[serde(deserialize_with = "endpoint::by_name")]
    pub endpoint: &'static Endpoint,
    pub bucket: Option<String>,
    pub key: Option<String>,
    pub prefix: Option<String>,
    /// The object's length: of the body to send, or of the body that must come back.
    pub object_bytes: Option<u64>,
    /// The seed its bytes are made from (see [`crate::body`]).
    pub body_seed: Option<u64>,
    /// ListObjects: how many keys must come back.
    pub listed: Option<u64>,
    /// For this request, in place of the header's.
    pub deadline_ms: Option<u64>,
}

impl PlanLine for Request {
    /// It has every field its endpoint needs, and none that its endpoint would silently ignore.
    fn check(&self) -> Result<(), String> {
        let endpoint = self.endpoint;
        let on_object = endpoint.target == Target::Object;
        let lists = endpoint.name.starts_with("ListObjects");
        let prefixed = endpoint.name == "ListObjects";
        let sized = on_object && endpoint.method != "DELETE";
        let seeded = on_object && (endpoint.sends_object || endpoint.method == "GET");
        // (name, is given, may be given, must be given)
        let fields = [
            (
                "bucket",
                self.bucket.is_some(),
                endpoint.target != Target::Service,
                endpoint.target != Target::Service,
            ),
            ("key", self.key.is_some(), on_object, on_object),
            ("prefix", self.prefix.is_some(), prefixed, false),
            (
                "object_bytes",
                self.object_bytes.is_some(),
                sized,
                endpoint.sends_object,
            ),
            (
                "body_seed",
                self.body_seed.is_some(),
                seeded,
                endpoint.sends_object,
            ),
            ("listed", self.listed.is_some(), lists, false),
        ];
        plan::check_fields(endpoint.name, &fields)?;
        plan::check_deadline(self.deadline_ms)?;
        for (name, text) in [("bucket", &self.bucket), ("key", &self.key)] {
            if text.as_deref() == Some("") {
                return Err(format!("`{name}` is empty"));
            }
        }
        if self.body_seed.is_some() && self.object_bytes.is_none() {
            return Err("`body_seed` without `object_bytes` says nothing about a body".into());
        }
        if self.object_bytes > Some(MAX_OBJECT_BYTES) {
            return Err(format!(
                "`object_bytes` is at most {MAX_OBJECT_BYTES}, as in S3"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    const HEADER: &str =
        r#"{"host":"h","port":1,"region":"r","access_key":"a","secret_key":"s","deadline_ms":5}"#;

    fn error_of(request: &str) -> String {
        let text = format!("{HEADER}\n{request}\n");
        let mut plan = Plan::new(text.as_bytes());
        plan.header::<Header>().unwrap();
        plan.next_line::<Request>().unwrap_err().to_string()
    }

    #[test]
    fn every_mistake_names_its_line_and_what_is_allowed() {
        for (request, expected) in [
            (
                r#"{"seq":0,"phase":"measure","endpoint":"ListBuckets","colour":1}"#,
                "plan line 2: column 60: unknown field `colour`",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"Frob"}"#,
                "unknown endpoint `Frob`, expected one of ListBuckets, ListObjects",
            ),
            (
                r#"{"seq":0,"phase":"later","endpoint":"ListBuckets"}"#,
                "expected one of `prepare`, `warmup`, `measure`",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"GetObject","bucket":"b"}"#,
                "GetObject needs `key`",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"PutObject","bucket":"b","key":"k","object_bytes":1}"#,
                "PutObject needs `body_seed`",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"ListBuckets","bucket":"b"}"#,
                "`bucket` means nothing to ListBuckets",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"RemoveObject","bucket":"b","key":"k","object_bytes":1}"#,
                "`object_bytes` means nothing to RemoveObject",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"GetObject","bucket":"","key":"k"}"#,
                "`bucket` is empty",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"GetObject","bucket":"b","key":"k","body_seed":1}"#,
                "`body_seed` without `object_bytes`",
            ),
            (
                r#"{"seq":0,"phase":"measure","endpoint":"ListBuckets","deadline_ms":0}"#,
                "`deadline_ms` is 0",
            ),
            (
                r#"{"seq":-1,"phase":"measure","endpoint":"ListBuckets"}"#,
                "invalid value",
            ),
            ("nonsense", "plan line 2: column"),
        ] {
            let error = error_of(request);
            assert!(error.starts_with("plan line 2: "), "{error}");
            assert!(
                error.contains(expected),
                "{request}\n  gave {error}\n  not  {expected}"
            );
        }
    }

    #[test]
    fn a_header_says_its_own_mistakes() {
        for (header, expected) in [
            ("", "plan line 1: there is no header"),
            (r#"{"host":"h"}"#, "missing field `port`"),
            (&HEADER.replace("5}", "0}"), "`deadline_ms` is 0"),
            (
                &HEADER.replace("5}", r#"5,"connection":"maybe"}"#),
                "expected `keep-alive` or `new`",
            ),
            (
                &HEADER.replace("5}", r#"5,"retries":3}"#),
                "unknown field `retries`",
            ),
        ] {
            let error = Plan::new(header.as_bytes())
                .header::<Header>()
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(expected),
                "{header}\n  gave {error}\n  not  {expected}"
            );
        }
    }

    #[test]
    fn what_no_server_could_take_is_refused() {
        let put = |bytes: u64| {
            format!(
                r#"{{"seq":0,"phase":"prepare","endpoint":"PutObject","bucket":"b","key":"k","object_bytes":{bytes},"body_seed":1}}"#
            )
        };
        assert!(error_of(&put((5 << 30) + 1)).contains("`object_bytes` is at most 5368709120"));
        for (from, to) in [
            ("\"r\"", r#""eu west""#),
            ("\"a\"", r#""a\r\nx: y""#),
            ("\"a\"", r#""""#),
        ] {
            let header = HEADER.replace(from, to);
            let error = Plan::new(header.as_bytes())
                .header::<Header>()
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("must be printable ASCII"),
                "{header}\n  gave {error}"
            );
        }
    }

    #[test]
    fn lines_are_counted_over_blank_ones_and_nulls_are_as_good_as_absent() {
        let text = format!(
            "{HEADER}\n\n{}\n\n{{}}\n",
            r#"{"seq":4,"phase":"warmup","endpoint":"GetObject","bucket":"b","key":"k","prefix":null,"listed":null}"#
        );
        let mut plan = Plan::new(text.as_bytes());
        plan.header::<Header>().unwrap();
        assert_eq!(plan.next_line::<Request>().unwrap().unwrap().seq, 4);
        assert_eq!(plan.next_line::<Request>().unwrap_err().line, 5);
    }

    #[test]
    fn targets_are_encoded_as_sigv4_wants_them() {
        let target = |request: &str| {
            let request: Request = serde_json::from_str(request).unwrap();
            request.endpoint.target_of(&request)
        };
        assert_eq!(
            target(r#"{"seq":0,"phase":"measure","endpoint":"ListBuckets"}"#),
            "/"
        );
        assert_eq!(
            target(
                r#"{"seq":0,"phase":"measure","endpoint":"GetObject","bucket":"b","key":"a b/ü+~"}"#
            ),
            "/b/a%20b/%C3%BC%2B~"
        );
        assert_eq!(
            target(
                r#"{"seq":0,"phase":"measure","endpoint":"ListObjects","bucket":"b","prefix":"a/b"}"#
            ),
            "/b?list-type=2&prefix=a%2Fb"
        );
        assert_eq!(
            target(r#"{"seq":0,"phase":"measure","endpoint":"ListObjects","bucket":"b"}"#),
            "/b?list-type=2"
        );
    }
}

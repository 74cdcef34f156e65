//! Is what came back what was asked for? Judged once the clock has stopped.

use crate::body;
use crate::http::response::Response;
use crate::outcome::Verdict;
use crate::s3::endpoint::Check;
use crate::s3::lines::Request;
use crate::verify::Verifier;

/// What a 2xx response was found to hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    /// SHA-256 of the object that came.
    pub sha256: Option<String>,
    /// How long comparing it took, where its bytes are known.
    pub verify_ns: Option<u64>,
    /// How many items a listing holds.
    pub listed: Option<u64>,
}

impl From<Verdict> for Finding {
    fn from(verdict: Verdict) -> Self {
        Finding {
            verdict,
            sha256: None,
            verify_ns: None,
            listed: None,
        }
    }
}

/// Checks a complete 2xx response against the request's expectations.
pub fn check(request: &Request, response: &Response) -> Finding {
    match request.endpoint.check {
        Check::Nothing => Verdict::ok().into(),
        Check::Object => object(request, response),
        Check::AnnouncedLength => {
            let announced = response.head().and_then(|head| head.content_length);
            length(announced, request.object_bytes)
                .unwrap_or_else(Verdict::ok)
                .into()
        }
        Check::Listing { root, item } => listing(request, response, root, item),
    }
}

/// An object that was compared as it came, or one that was held.
fn object(request: &Request, response: &Response) -> Finding {
    let held = match (response.verifier(), request.body_seed) {
        (None, Some(seed)) => Some(compared(seed, response)),
        _ => None,
    };
    let verifier = response.verifier().or(held.as_ref());
    let sha256 = match verifier {
        Some(verifier) => verifier.sha256(),
        None => body::sha256_of(response.body_parts()),
    };
    let wrong_length = length(Some(response.body_bytes() as u64), request.object_bytes);
    let is_right = verifier.is_none_or(|verifier| verifier.first_wrong().is_none());
    let verdict = match wrong_length {
        Some(wrong) => wrong,
        None if is_right => Verdict::ok(),
        None => Verdict::fail("checksum mismatch"),
    };
    Finding {
        sha256: Some(sha256),
        verify_ns: verifier.map(Verifier::spent_ns),
        ..verdict.into()
    }
}

fn compared(seed: u64, response: &Response) -> Verifier {
    let mut verifier = Verifier::new(seed);
    response.body_parts().for_each(|part| verifier.take(part));
    verifier
}

fn length(actual: Option<u64>, expected: Option<u64>) -> Option<Verdict> {
    let expected = expected?;
    match actual {
        Some(actual) if actual == expected => None,
        Some(actual) => Some(Verdict::fail(format!(
            "length mismatch: {actual} bytes, not {expected}"
        ))),
        None => Some(Verdict::fail(format!(
            "length mismatch: none given, not {expected}"
        ))),
    }
}

fn listing(request: &Request, response: &Response, root: &str, item: &str) -> Finding {
    let text = response.body_text(usize::MAX);
    if !text.contains(root) {
        return Verdict::fail(format!("listing mismatch: no {root}> in it")).into();
    }
    let listed = text.matches(item).count() as u64;
    let verdict = match request.listed {
        Some(expected) if expected != listed => {
            Verdict::fail(format!("listing mismatch: {listed} keys, not {expected}"))
        }
        _ => Verdict::ok(),
    };
    Finding {
        listed: Some(listed),
        ..verdict.into()
    }
}

/// The error code of an S3 error document.
pub fn error_code(document: &str) -> Option<&str> {
    let code = document
        .split_once("<Code>")?
        .1
        .split_once("</Code>")?
        .0
        .trim();
    (!code.is_empty()).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::response::Progress;

    fn checked(request: &str, body: &[u8]) -> Finding {
        let request: Request = serde_json::from_str(request).unwrap();
        let mut bytes =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        if request.endpoint.method != "HEAD" {
            bytes.extend_from_slice(body);
        }
        let mut response = Response::default();
        match request.body_seed {
            Some(seed) => response.prepare_verified(Verifier::new(seed), body.len() as u64),
            None => response.prepare(body.len() as u64, request.endpoint.method == "HEAD"),
        }
        response.spare()[..bytes.len()].copy_from_slice(&bytes);
        assert_eq!(response.received(bytes.len(), 1), Ok(Progress::Done));
        check(&request, &response)
    }

    const GET: &str = r#"{"seq":0,"phase":"measure","endpoint":"GetObject","bucket":"b","key":"k","object_bytes":100,"body_seed":3}"#;

    #[test]
    fn the_object_of_the_seed_is_ok_and_its_hash_is_told() {
        let mut body = [0u8; 100];
        body::fill(3, 0, &mut body);
        let finding = checked(GET, &body);
        assert_eq!(finding.verdict, Verdict::ok());
        assert_eq!(finding.sha256, Some(body::sha256(3, 100)));
    }

    #[test]
    fn one_wrong_bit_is_a_checksum_mismatch() {
        let mut body = [0u8; 100];
        body::fill(3, 0, &mut body);
        body[99] ^= 1;
        assert_eq!(
            checked(GET, &body).verdict,
            Verdict::fail("checksum mismatch")
        );
    }

    #[test]
    fn a_shorter_object_is_a_length_mismatch() {
        let verdict = checked(GET, &[0; 99]).verdict;
        assert_eq!(verdict, Verdict::fail("length mismatch: 99 bytes, not 100"));
    }

    #[test]
    fn head_is_checked_by_the_length_it_announces() {
        let head = GET
            .replace("GetObject", "HeadObject")
            .replace(r#","body_seed":3"#, "");
        assert_eq!(checked(&head, &[0; 100]).verdict, Verdict::ok());
        let verdict = checked(&head, &[0; 7]).verdict;
        assert_eq!(verdict, Verdict::fail("length mismatch: 7 bytes, not 100"));
    }

    #[test]
    fn a_listing_is_counted() {
        let list =
            r#"{"seq":0,"phase":"measure","endpoint":"ListObjects","bucket":"b","listed":2}"#;
        let document = |keys: usize| {
            let items = "<Contents><Key>k</Key></Contents>".repeat(keys);
            format!("<ListBucketResult xmlns=\"x\">{items}</ListBucketResult>")
        };
        let finding = checked(list, document(2).as_bytes());
        assert_eq!(finding.verdict, Verdict::ok());
        assert_eq!(finding.listed, Some(2));
        let verdict = checked(list, document(1).as_bytes()).verdict;
        assert_eq!(verdict, Verdict::fail("listing mismatch: 1 keys, not 2"));
        let verdict = checked(list, b"<Error><Code>InternalError</Code></Error>").verdict;
        assert_eq!(
            verdict,
            Verdict::fail("listing mismatch: no <ListBucketResult> in it")
        );
    }

    #[test]
    fn an_error_documents_code_is_found() {
        assert_eq!(
            error_code("<?xml?><Error><Code>NoSuchKey</Code><Message/></Error>"),
            Some("NoSuchKey")
        );
        assert_eq!(error_code("<html>Bad gateway</html>"), None);
    }
}

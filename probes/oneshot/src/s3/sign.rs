//! AWS Signature Version 4 in the headers, at the price of four hashes a request.
//!
//! The key holds for a day and the text of the date for a second, so they are kept: a load signs
//! tens of thousands of requests a second. That it signs as AWS's own reference and SDK do is tested.

use std::io::Write;

use chrono::DateTime;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::body;
use crate::clock;

const DAY_S: u64 = 86_400;

/// Signs requests to one S3 server.
pub struct Signer {
    access_key: String,
    secret_key: String,
    region: String,
    host: String,
    at_s: u64,
    key: Vec<u8>,
    /// `20130524T000000Z` of `at_s`.
    date: String,
}

impl Signer {
    /// `host` is what the header of that name says.
    pub fn new(access_key: &str, secret_key: &str, region: &str, host: &str) -> Self {
        Signer {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            region: region.to_owned(),
            host: host.to_owned(),
            at_s: u64::MAX,
            key: Vec::new(),
            date: String::new(),
        }
    }

    /// Writes the header lines that sign a request at present: `x-amz-date`, `authorization` and
    /// `x-amz-content-sha256`.
    ///
    /// `target` is path and query, percent-encoded, its parameters in order; `headers` are those
    /// signed beside the host, and `payload` is what is said of the body's hash.
    pub fn write_headers(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        payload: &str,
        into: &mut Vec<u8>,
    ) {
        self.set_time(clock::unix_s());
        self.write_now(method, target, headers, payload, into);
    }

    fn write_now(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        payload: &str,
        into: &mut Vec<u8>,
    ) {
        let Signer {
            access_key, date, ..
        } = self;
        let mut signed = vec![
            ("host", self.host.as_str()),
            ("x-amz-content-sha256", payload),
            ("x-amz-date", date),
        ];
        signed.extend_from_slice(headers);
        signed.sort_unstable();
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");

        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut canonical = format!("{method}\n{path}\n{query}\n");
        for (name, value) in signed {
            canonical.extend([name, ":", value, "\n"]);
        }
        canonical.extend(["\n", &names, "\n", payload]);

        let scope = format!("{}/{}/s3/aws4_request", &date[..8], self.region);
        let hash = body::hex(&Sha256::digest(canonical));
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{hash}");
        let signature = body::hex(&hmac(&self.key, &to_sign));
        let _ = write!(
            into,
            "x-amz-date: {date}\r\nauthorization: AWS4-HMAC-SHA256 Credential={access_key}/{scope}, \
             SignedHeaders={names}, Signature={signature}\r\nx-amz-content-sha256: {payload}\r\n"
        );
    }

    fn set_time(&mut self, at_s: u64) {
        if at_s == self.at_s {
            return;
        }
        self.date = date_of(at_s);
        if self.at_s == u64::MAX || at_s / DAY_S != self.at_s / DAY_S {
            let first = format!("AWS4{}", self.secret_key).into_bytes();
            let parts = [&self.date[..8], &self.region, "s3", "aws4_request"];
            self.key = parts.into_iter().fold(first, |key, part| hmac(&key, part));
        }
        self.at_s = at_s;
    }
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    hmac.update(text.as_bytes());
    hmac.finalize().into_bytes().to_vec()
}

/// ISO 8601's basic form, in UTC.
fn date_of(at_s: u64) -> String {
    let at = DateTime::from_timestamp(at_s as i64, 0).expect("a clock of this millennium");
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of "Signature Calculations for the Authorization Header", Amazon S3 API
    /// reference: these keys, this instant (2013-05-24T00:00:00Z), these signatures.
    #[test]
    fn requests_are_signed_as_in_the_s3_reference() {
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let range = [("range", "bytes=0-9")];
        let text = "Welcome to Amazon S3.";
        for (method, target, headers, payload, expected) in [
            (
                "GET",
                "/test.txt",
                &range[..],
                "",
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f01",
            ),
            (
                "PUT",
                "/test%24file.text",
                &put[..],
                text,
                "98ad721746da40c64f1a55b78f14c238d841",
            ),
            (
                "GET",
                "/?max-keys=2&prefix=J",
                &[],
                "",
                "34b48302e7b5fa45bde8084f4b7868a86f0a53",
            ),
        ] {
            let mut signer = Signer::new(
                "AKIAIOSFODNN7EXAMPLE",
                "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                "us-east-1",
                "examplebucket.s3.amazonaws.com",
            );
            signer.set_time(1_369_353_600);
            let sha256 = body::sha256_of([payload.as_bytes()]);
            let mut lines = Vec::new();
            signer.write_now(method, target, headers, &sha256, &mut lines);
            let lines = String::from_utf8(lines).unwrap();
            assert!(lines.contains(&format!("Signature={expected}")), "{lines}");
            assert!(lines.starts_with("x-amz-date: 20130524T000000Z\r\n"));
        }
    }

    #[test]
    fn the_key_of_another_day_is_another_one() {
        let mut signer = Signer::new("a", "s", "r", "h");
        signer.set_time(DAY_S - 1);
        let key = signer.key.clone();
        signer.set_time(DAY_S);
        assert_ne!(signer.key, key);
        signer.set_time(DAY_S - 1);
        assert_eq!(signer.key, key);
    }
}

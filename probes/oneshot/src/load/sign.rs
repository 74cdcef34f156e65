//! AWS Signature Version 4 at the price of four hashes a request.
//!
//! [`crate::s3::sign`], AWS's own signer, derives its key anew each time and sorts headers that here
//! are always the same ones. This one keeps the key for the day and the text of the date for the
//! second; that both sign alike is tested.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use sha2::{Digest, Sha256};

use crate::body;

pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// SHA-256 of nothing.
pub const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
pub const CONTENT_TYPE: &str = "application/octet-stream";
const DAY_S: u64 = 86_400;

pub struct Signer {
    access_key: String,
    secret_key: String,
    region: String,
    authority: String,
    at_s: u64,
    key: Vec<u8>,
    /// `20130524T000000Z` of `at_s`.
    date: String,
    canonical: Vec<u8>,
}

impl Signer {
    pub fn new(access_key: &str, secret_key: &str, region: &str, authority: &str) -> Self {
        Signer {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            region: region.to_owned(),
            authority: authority.to_owned(),
            at_s: u64::MAX,
            key: Vec::new(),
            date: String::new(),
            canonical: Vec::new(),
        }
    }

    /// Writes the headers that sign a request at present. `path` needs no encoding; `has_body`: the
    /// request has a Content-Type.
    pub fn write_headers(
        &mut self,
        method: &str,
        path: &[u8],
        has_body: bool,
        payload: &str,
        into: &mut Vec<u8>,
    ) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.write_at(
            now.map_or(0, |now| now.as_secs()),
            method,
            path,
            has_body,
            payload,
            into,
        );
    }

    fn write_at(
        &mut self,
        at_s: u64,
        method: &str,
        path: &[u8],
        has_body: bool,
        payload: &str,
        into: &mut Vec<u8>,
    ) {
        self.set_time(at_s);
        let (date, day) = (&self.date, &self.date[..8]);
        let (content_type, signed) = if has_body {
            (
                format!("content-type:{CONTENT_TYPE}\n"),
                "content-type;host;x-amz-content-sha256;x-amz-date",
            )
        } else {
            (String::new(), "host;x-amz-content-sha256;x-amz-date")
        };
        self.canonical.clear();
        let _ = writeln!(self.canonical, "{method}");
        self.canonical.extend_from_slice(path);
        let _ = write!(
            self.canonical,
            "\n\n{content_type}host:{}\nx-amz-content-sha256:{payload}\nx-amz-date:{date}\n\n\
             {signed}\n{payload}",
            self.authority
        );
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let hash = body::hex(&Sha256::digest(&self.canonical));
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{hash}");
        let signature = calculate_signature(&self.key, to_sign.as_bytes());
        let _ = write!(
            into,
            "x-amz-date: {date}\r\nauthorization: AWS4-HMAC-SHA256 Credential={}/{scope}, \
             SignedHeaders={signed}, Signature={signature}\r\nx-amz-content-sha256: {payload}\r\n",
            self.access_key
        );
    }

    fn set_time(&mut self, at_s: u64) {
        if at_s == self.at_s {
            return;
        }
        if self.at_s == u64::MAX || at_s / DAY_S != self.at_s / DAY_S {
            let at = UNIX_EPOCH + Duration::from_secs(at_s);
            let key = generate_signing_key(&self.secret_key, at, &self.region, "s3");
            self.key = key.as_ref().to_vec();
        }
        self.at_s = at_s;
        self.date = date_of(at_s);
    }
}

/// ISO 8601's basic form, in UTC.
fn date_of(at_s: u64) -> String {
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let (days, second) = (at_s / DAY_S + 719_468, at_s % DAY_S);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{:02}Z",
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::s3::sign::Signer as AwsSigner;

    fn headers(text: &[u8]) -> BTreeMap<String, String> {
        let lines = std::str::from_utf8(text).unwrap().lines();
        let pairs = lines.map(|line| line.split_once(": ").unwrap());
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn it_signs_as_the_sdk_does() {
        let (access, secret, region) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG", "garage");
        let aws = AwsSigner::new(access, secret, region);
        let mut ours = Signer::new(access, secret, region, "10.1.0.1:3900");
        // Two of one second, another second, another day, a leap day, another century.
        let instants = [
            1_369_353_600,
            1_369_353_600,
            1_369_353_661,
            1_369_439_999,
            1_369_440_000,
            1_709_164_800 + 3601,
            4_107_542_399,
        ];
        for at_s in instants {
            for (method, payload, types) in [
                ("GET", EMPTY, &[][..]),
                ("PUT", UNSIGNED, &[("content-type", CONTENT_TYPE)][..]),
            ] {
                let path = "/b0/fill-00000017";
                let mut text = Vec::new();
                ours.write_at(
                    at_s,
                    method,
                    path.as_bytes(),
                    !types.is_empty(),
                    payload,
                    &mut text,
                );
                let expected = aws
                    .headers(
                        method,
                        &format!("http://10.1.0.1:3900{path}"),
                        types,
                        payload,
                        UNIX_EPOCH + Duration::from_secs(at_s),
                    )
                    .unwrap();
                assert_eq!(headers(&text), expected.into_iter().collect());
            }
        }
    }
}

//! AWS Signature Version 4 in the headers, by the signer of AWS's own SDK.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningError,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;

/// Signs requests to one S3 server.
pub struct Signer {
    identity: Identity,
    region: String,
    settings: SigningSettings,
}

impl Signer {
    pub fn new(access_key: &str, secret_key: &str, region: &str) -> Self {
        let mut settings = SigningSettings::default();
        // S3's own ways: the payload's hash is a header, the path is encoded once and never
        // normalised ("a//b" and "a/../b" are keys like any other).
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let credentials = Credentials::new(access_key, secret_key, None, None, "plan");
        Signer {
            identity: credentials.into(),
            region: region.to_owned(),
            settings,
        }
    }

    /// The headers that sign the request: `authorization`, `x-amz-date`, `x-amz-content-sha256`.
    ///
    /// `url` is absolute, `headers` are those to be signed beside the host, and `payload_sha256`
    /// is the lowercase hexadecimal hash of the very bytes that will be sent.
    pub fn headers(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        payload_sha256: &str,
        at: SystemTime,
    ) -> Result<Vec<(String, String)>, SigningError> {
        let params = v4::SigningParams::builder()
            .identity(&self.identity)
            .region(&self.region)
            .name("s3")
            .time(at)
            .settings(self.settings.clone())
            .build()
            .expect("every field is set")
            .into();
        let body = SignableBody::Precomputed(payload_sha256.to_owned());
        let request = SignableRequest::new(method, url, headers.iter().copied(), body)?;
        let (instructions, _signature) = sign(request, &params)?.into_parts();
        Ok(instructions
            .headers()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::body;

    /// The examples of "Signature Calculations for the Authorization Header", Amazon S3 API
    /// reference: these keys, this instant (2013-05-24T00:00:00Z), these signatures.
    fn signature(method: &str, url: &str, headers: &[(&str, &str)], payload: &[u8]) -> String {
        let signer = Signer::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "us-east-1",
        );
        let at = UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let sha256 = body::sha256_of([payload]);
        let signed = signer.headers(method, url, headers, &sha256, at).unwrap();
        let header = |name: &str| signed.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!(header("x-amz-date"), "20130524T000000Z");
        assert_eq!(header("x-amz-content-sha256"), sha256);
        header("authorization")
            .rsplit_once("Signature=")
            .unwrap()
            .1
            .to_owned()
    }

    #[test]
    fn get_object_is_signed_as_in_the_s3_reference() {
        assert_eq!(
            signature(
                "GET",
                "https://examplebucket.s3.amazonaws.com/test.txt",
                &[("range", "bytes=0-9")],
                b"",
            ),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }

    #[test]
    fn put_object_is_signed_as_in_the_s3_reference() {
        assert_eq!(
            signature(
                "PUT",
                "https://examplebucket.s3.amazonaws.com/test%24file.text",
                &[
                    ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                    ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                ],
                b"Welcome to Amazon S3.",
            ),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
    }

    #[test]
    fn list_objects_is_signed_as_in_the_s3_reference() {
        assert_eq!(
            signature(
                "GET",
                "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J",
                &[],
                b"",
            ),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }
}

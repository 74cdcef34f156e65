//! The body of a PutObject: received whole, hashed on the way, checked against what the client says.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hyper::HeaderMap;
use md5::{Digest, Md5};
use s3s::checksum::ChecksumHasher;
use s3s::dto::{Checksum, PutObjectInput};
use s3s::{S3Error, S3Request, S3Result, s3_error};
use tokio::sync::SemaphorePermit;

use crate::memory::Memory;

pub struct Upload<'a> {
    pub body: Bytes,
    pub md5: [u8; 16],
    pub crc32: u32,
    /// Gives the memory back when the request is done.
    _memory: SemaphorePermit<'a>,
}

impl Upload<'_> {
    pub async fn receive<'a>(
        memory: &'a Memory,
        request: &mut S3Request<PutObjectInput>,
    ) -> S3Result<Upload<'a>> {
        let announced = request.input.content_length;
        let announced = announced.ok_or_else(|| s3_error!(MissingContentLength))?;
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        let max = memory.max_bytes;
        let room = memory.room(announced).await;
        let room = room.ok_or_else(|| {
            s3_error!(
                EntityTooLarge,
                "objects of at most {max} bytes are accepted"
            )
        })?;

        let mut named = hasher_for(&request.headers);
        let (mut md5, mut crc32) = (Md5::new(), crc32_digest());
        let mut body = BytesMut::with_capacity(announced);
        if let Some(mut stream) = request.input.body.take() {
            while let Some(chunk) = stream.next().await {
                let chunk = chunk.map_err(|error| s3_error!(IncompleteBody, "{error}"))?;
                if body.len() + chunk.len() > announced {
                    return Err(not_as_announced());
                }
                md5.update(&chunk);
                crc32.update(&chunk);
                named.update(&chunk);
                body.extend_from_slice(&chunk);
            }
        }
        if body.len() < announced {
            return Err(not_as_announced());
        }
        let md5: [u8; 16] = md5.finalize().into();
        check_md5(request.input.content_md5.as_deref(), &md5)?;
        let trailers = request
            .trailing_headers
            .as_ref()
            .and_then(|trailers| trailers.take());
        check_sums(&request.headers, trailers.as_ref(), &named.finalize())?;
        Ok(Upload {
            body: body.freeze(),
            md5,
            crc32: crc32.finalize() as u32,
            _memory: room,
        })
    }
}

fn not_as_announced() -> S3Error {
    s3_error!(
        IncompleteBody,
        "the body is not as long as its announced length"
    )
}

fn crc32_digest() -> crc_fast::Digest {
    crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32IsoHdlc)
}

/// Computes those checksums that the client sends, in a header or after the body.
fn hasher_for(headers: &HeaderMap) -> ChecksumHasher {
    let trailer = headers
        .get("x-amz-trailer")
        .and_then(|value| value.to_str().ok());
    let named = |name: &str| {
        headers.contains_key(name)
            || trailer.is_some_and(|trailer| trailer.split(',').any(|t| t.trim() == name))
    };
    ChecksumHasher {
        crc32: named("x-amz-checksum-crc32").then(Default::default),
        crc32c: named("x-amz-checksum-crc32c").then(Default::default),
        crc64nvme: named("x-amz-checksum-crc64nvme").then(Default::default),
        sha1: named("x-amz-checksum-sha1").then(Default::default),
        sha256: named("x-amz-checksum-sha256").then(Default::default),
    }
}

fn check_sums(
    headers: &HeaderMap,
    trailers: Option<&HeaderMap>,
    computed: &Checksum,
) -> S3Result<()> {
    let sums = [
        ("x-amz-checksum-crc32", &computed.checksum_crc32),
        ("x-amz-checksum-crc32c", &computed.checksum_crc32c),
        ("x-amz-checksum-crc64nvme", &computed.checksum_crc64nvme),
        ("x-amz-checksum-sha1", &computed.checksum_sha1),
        ("x-amz-checksum-sha256", &computed.checksum_sha256),
    ];
    for (name, computed) in sums {
        let Some(computed) = computed else { continue };
        let sent = headers.get(name).or_else(|| trailers?.get(name));
        if sent.is_none_or(|sent| sent.as_bytes() != computed.as_bytes()) {
            return Err(s3_error!(
                BadDigest,
                "{name} is not that of the body received"
            ));
        }
    }
    Ok(())
}

fn check_md5(sent: Option<&str>, computed: &[u8; 16]) -> S3Result<()> {
    let computed = base64_simd::STANDARD.encode_to_string(computed);
    match sent {
        Some(sent) if sent != computed => Err(s3_error!(
            BadDigest,
            "Content-MD5 is not that of the body received"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = lines
            .iter()
            .map(|&(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        pairs.collect()
    }

    fn check(headers: &HeaderMap, trailers: Option<&HeaderMap>) -> S3Result<()> {
        let mut hasher = hasher_for(headers);
        hasher.update(b"123456789");
        check_sums(headers, trailers, &hasher.finalize())
    }

    // CRC-32 of "123456789" is cbf43926.
    const RIGHT: (&str, &str) = ("x-amz-checksum-crc32", "y/Q5Jg==");
    const WRONG: (&str, &str) = ("x-amz-checksum-crc32", "AAAAAA==");

    #[test]
    fn a_checksum_in_a_header_or_announced_for_after_the_body_must_come_and_fit() {
        assert!(check(&HeaderMap::new(), None).is_ok());
        assert!(check(&headers(&[RIGHT]), None).is_ok());
        assert!(check(&headers(&[WRONG]), None).is_err());
        let announced = headers(&[("x-amz-trailer", "x-amz-checksum-crc32")]);
        assert!(check(&announced, Some(&headers(&[RIGHT]))).is_ok());
        assert!(check(&announced, Some(&headers(&[WRONG]))).is_err());
        assert!(check(&announced, None).is_err());
    }
}

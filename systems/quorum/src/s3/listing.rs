//! ListObjects, both versions, in and out.

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::{etag, modified};
use crate::listing::Listing;
use crate::store::{After, Listed, Query};

const MAX_KEYS: i32 = 1000;

pub fn query_v2(input: &ListObjectsV2Input) -> S3Result<Query> {
    let after = match (&input.continuation_token, &input.start_after) {
        (Some(token), _) => decode_token(token)
            .ok_or_else(|| s3_error!(InvalidArgument, "an unknown continuation token"))?,
        (None, Some(key)) => After::Key(key.clone()),
        (None, None) => After::Start,
    };
    query(
        input.prefix.as_deref(),
        input.delimiter.as_deref(),
        input.max_keys,
        after,
    )
}

pub fn query_v1(input: &ListObjectsInput) -> S3Result<Query> {
    let delimiter = input
        .delimiter
        .as_deref()
        .filter(|delimiter| !delimiter.is_empty());
    let after = match input.marker.as_deref() {
        None | Some("") => After::Start,
        // A common prefix that the page before ended with.
        Some(marker) if delimiter.is_some_and(|delimiter| marker.ends_with(delimiter)) => {
            After::Prefix(marker.into())
        }
        Some(marker) => After::Key(marker.into()),
    };
    query(input.prefix.as_deref(), delimiter, input.max_keys, after)
}

fn query(
    prefix: Option<&str>,
    delimiter: Option<&str>,
    max_keys: Option<i32>,
    after: After,
) -> S3Result<Query> {
    let max_keys = max_keys.unwrap_or(MAX_KEYS).min(MAX_KEYS);
    let limit = usize::try_from(max_keys)
        .map_err(|_| s3_error!(InvalidArgument, "max-keys is negative"))?;
    Ok(Query {
        prefix: prefix.unwrap_or_default().into(),
        delimiter: delimiter
            .filter(|delimiter| !delimiter.is_empty())
            .map(str::to_owned),
        after,
        limit,
    })
}

pub fn output_v2(input: ListObjectsV2Input, listing: Listing) -> ListObjectsV2Output {
    let encoding = Encoding::of(input.encoding_type.as_ref());
    let count = listing.objects.len() + listing.common_prefixes.len();
    ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(encoding.apply(input.prefix.unwrap_or_default())),
        delimiter: input.delimiter.map(|delimiter| encoding.apply(delimiter)),
        start_after: input.start_after.map(|key| encoding.apply(key)),
        max_keys: Some(input.max_keys.unwrap_or(MAX_KEYS)),
        key_count: Some(count as i32),
        continuation_token: input.continuation_token,
        is_truncated: Some(listing.next.is_some()),
        next_continuation_token: listing.next.as_ref().map(encode_token),
        contents: Some(objects(listing.objects, encoding)),
        common_prefixes: Some(common_prefixes(listing.common_prefixes, encoding)),
        encoding_type: input.encoding_type,
        ..Default::default()
    }
}

pub fn output_v1(input: ListObjectsInput, listing: Listing) -> ListObjectsOutput {
    let encoding = Encoding::of(input.encoding_type.as_ref());
    let next = listing.next.as_ref().and_then(|after| match after {
        After::Start => None,
        After::Key(key) | After::Prefix(key) => Some(encoding.apply(key.clone())),
    });
    ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(encoding.apply(input.prefix.unwrap_or_default())),
        delimiter: input.delimiter.map(|delimiter| encoding.apply(delimiter)),
        marker: Some(encoding.apply(input.marker.unwrap_or_default())),
        max_keys: Some(input.max_keys.unwrap_or(MAX_KEYS)),
        is_truncated: Some(next.is_some()),
        next_marker: next,
        contents: Some(objects(listing.objects, encoding)),
        common_prefixes: Some(common_prefixes(listing.common_prefixes, encoding)),
        encoding_type: input.encoding_type,
        ..Default::default()
    }
}

fn objects(listed: Vec<Listed>, encoding: Encoding) -> Vec<Object> {
    let object = |listed: Listed| {
        let summary = listed.object?;
        Some(Object {
            key: Some(encoding.apply(listed.key)),
            size: Some(summary.size as i64),
            e_tag: Some(etag(&summary.md5)),
            last_modified: Some(modified(listed.version)),
            storage_class: Some(ObjectStorageClass::from_static(
                ObjectStorageClass::STANDARD,
            )),
            ..Default::default()
        })
    };
    listed.into_iter().filter_map(object).collect()
}

fn common_prefixes(prefixes: Vec<String>, encoding: Encoding) -> Vec<CommonPrefix> {
    let prefixes = prefixes.into_iter().map(|prefix| CommonPrefix {
        prefix: Some(encoding.apply(prefix)),
    });
    prefixes.collect()
}

/// `encoding-type=url`: for keys that XML cannot carry.
#[derive(Clone, Copy)]
enum Encoding {
    Plain,
    Url,
}

impl Encoding {
    fn of(wanted: Option<&EncodingType>) -> Self {
        match wanted {
            Some(wanted) if wanted.as_str() == EncodingType::URL => Self::Url,
            _ => Self::Plain,
        }
    }

    fn apply(self, text: String) -> String {
        match self {
            Self::Plain => text,
            Self::Url => text.bytes().map(url_encoded).collect(),
        }
    }
}

fn url_encoded(byte: u8) -> String {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
            char::from(byte).into()
        }
        other => format!("%{other:02X}"),
    }
}

/// Hexadecimal, so that no client or proxy can mangle it.
fn encode_token(after: &After) -> String {
    let encoded = postcard::to_stdvec(after).expect("a place in a listing always encodes");
    encoded.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decode_token(token: &str) -> Option<After> {
    let byte = |at| u8::from_str_radix(token.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..token.len()).step_by(2).map(byte).collect();
    postcard::from_bytes(&bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_given() {
        for after in [After::Key("ключ/1".into()), After::Prefix("a/".into())] {
            assert_eq!(decode_token(&encode_token(&after)), Some(after));
        }
    }

    #[test]
    fn a_token_of_someone_else_is_refused() {
        for token in ["", "x", "0", "zz", "ffffff", "é"] {
            assert_eq!(decode_token(token), None, "{token}");
        }
    }

    #[test]
    fn keys_are_encoded_as_the_sdks_decode_them() {
        assert_eq!(
            Encoding::Url.apply("a b/ü+&\n".into()),
            "a%20b/%C3%BC%2B%26%0A"
        );
    }

    #[test]
    fn a_marker_that_is_a_common_prefix_skips_all_under_it() {
        let input = |marker: &str| ListObjectsInput {
            marker: Some(marker.into()),
            delimiter: Some("/".into()),
            ..Default::default()
        };
        assert_eq!(
            query_v1(&input("a/")).unwrap().after,
            After::Prefix("a/".into())
        );
        assert_eq!(
            query_v1(&input("a/b")).unwrap().after,
            After::Key("a/b".into())
        );
    }
}

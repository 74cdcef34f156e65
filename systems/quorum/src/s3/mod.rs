//! The S3 API: requests into operations, replies and failures back.

mod listing;
mod upload;
mod values;

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::dto::*;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use self::upload::Upload;
use self::values::{etag, modified};
use crate::args::Serve;
use crate::clock::Version;
use crate::disturbances::Client;
use crate::memory::Memory;
use crate::op::{Failure, Op, ROUNDS_HEADER, Reply, Rounds};
use crate::protocol::Protocol;
use crate::record::{Meta, ObjectName};

/// What GetBucketLocation says; requests signed for other regions are served too.
const REGION: &str = "wanlat";

#[derive(Clone)]
pub struct Api {
    service: S3Service,
}

impl Api {
    pub fn new(protocol: Arc<Protocol>, args: &Serve) -> Self {
        let mut builder = S3ServiceBuilder::new(Adapter {
            protocol,
            memory: Memory::new(args.max_object_bytes as usize),
        });
        let (access_key, secret_key) = (args.access_key.as_str(), args.secret_key.as_str());
        builder.set_auth(SimpleAuth::from_single(access_key, secret_key));
        Self {
            service: builder.build(),
        }
    }

    pub fn serve(&self, socket: TokioIo<Client>) -> impl Future<Output: Send> + Send + use<> {
        let api = self.clone();
        let answer = move |request| {
            let api = api.clone();
            async move { api.answer(request).await }
        };
        http1::Builder::new().serve_connection(socket, service_fn(answer))
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Result<Response<Body>, HttpError> {
        let rounds = Arc::new(Rounds::default());
        request.extensions_mut().insert(rounds.clone());
        let mut response = self.service.call(request.map(Body::from)).await?;
        let rounds = HeaderValue::from(rounds.count());
        response.headers_mut().insert(ROUNDS_HEADER, rounds);
        Ok(response)
    }
}

struct Adapter {
    protocol: Arc<Protocol>,
    memory: Memory,
}

impl Adapter {
    async fn run<T>(
        &self,
        request: &S3Request<T>,
        op: Op,
        body: Bytes,
    ) -> S3Result<(Reply, Bytes)> {
        let rounds = request.extensions.get::<Arc<Rounds>>();
        let rounds = rounds.ok_or_else(|| s3_error!(InternalError, "no counter of rounds"))?;
        let outcome = self.protocol.run(op, body, rounds).await;
        outcome.map_err(|failure| match failure {
            Failure::NoSuchBucket => S3ErrorCode::NoSuchBucket.into(),
            Failure::NoSuchKey => S3ErrorCode::NoSuchKey.into(),
            Failure::BucketExists => S3ErrorCode::BucketAlreadyOwnedByYou.into(),
            Failure::BucketNotEmpty => S3ErrorCode::BucketNotEmpty.into(),
            Failure::Unavailable(why) => {
                S3Error::with_message(S3ErrorCode::ServiceUnavailable, why.to_string())
            }
        })
    }

    /// For operations whose reply says nothing.
    async fn done<T>(&self, request: &S3Request<T>, op: Op) -> S3Result<()> {
        self.run(request, op, Bytes::new()).await.map(|_| ())
    }

    async fn get<T>(
        &self,
        request: &S3Request<T>,
        name: ObjectName,
        body: bool,
    ) -> S3Result<(Version, Meta, Bytes)> {
        match self
            .run(request, Op::Get { name, body }, Bytes::new())
            .await?
        {
            (Reply::Object { version, meta }, body) => Ok((version, meta, body)),
            (other, _) => Err(unexpected(&other)),
        }
    }
}

fn unexpected(reply: &Reply) -> S3Error {
    s3_error!(InternalError, "the operation was answered with {reply:?}")
}

fn object_name(bucket: &str, key: &str) -> ObjectName {
    ObjectName {
        bucket: bucket.to_owned(),
        key: key.to_owned(),
    }
}

fn user_metadata(meta: &Meta) -> Option<Metadata> {
    let user = meta.user.iter().cloned().collect::<Metadata>();
    (!user.is_empty()).then_some(user)
}

/// For clients that asked for it: SDKs compare it with what they received.
fn checksum(meta: &Meta, mode: Option<&ChecksumMode>) -> Option<String> {
    let wanted = mode.is_some_and(|mode| mode.as_str() == ChecksumMode::ENABLED);
    wanted.then(|| base64_simd::STANDARD.encode_to_string(meta.crc32.to_be_bytes()))
}

#[async_trait::async_trait]
impl S3 for Adapter {
    async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let buckets = match self.run(&request, Op::ListBuckets, Bytes::new()).await? {
            (Reply::Buckets(buckets), _) => buckets,
            (other, _) => return Err(unexpected(&other)),
        };
        let buckets = buckets.into_iter().map(|(name, created)| Bucket {
            name: Some(name),
            creation_date: Some(modified(created)),
            ..Default::default()
        });
        Ok(S3Response::new(ListBucketsOutput {
            buckets: Some(buckets.collect()),
            owner: Some(Owner::default()),
            ..Default::default()
        }))
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let bucket = request.input.bucket.clone();
        let location = Some(format!("/{bucket}"));
        self.done(&request, Op::CreateBucket { bucket }).await?;
        Ok(S3Response::new(CreateBucketOutput { location }))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        let bucket = request.input.bucket.clone();
        self.done(&request, Op::HeadBucket { bucket }).await?;
        Ok(S3Response::new(HeadBucketOutput {
            bucket_region: Some(REGION.into()),
            ..Default::default()
        }))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        let bucket = request.input.bucket.clone();
        self.done(&request, Op::HeadBucket { bucket }).await?;
        let region = BucketLocationConstraint::from_static(REGION);
        Ok(S3Response::new(GetBucketLocationOutput {
            location_constraint: Some(region),
        }))
    }

    async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        let bucket = request.input.bucket.clone();
        self.done(&request, Op::DeleteBucket { bucket }).await?;
        Ok(S3Response::new(DeleteBucketOutput {}))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let (bucket, query) = (
            request.input.bucket.clone(),
            listing::query(&request.input)?,
        );
        let op = Op::List { bucket, query };
        match self.run(&request, op, Bytes::new()).await? {
            (Reply::Listing(listing), _) => {
                let output = listing::output(request.input, listing)?;
                Ok(S3Response::new(output))
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = &request.input;
        let name = object_name(&input.bucket, &input.key);
        let (version, meta, mut body) = self.get(&request, name, true).await?;
        let mut output = GetObjectOutput {
            accept_ranges: Some("bytes".into()),
            content_type: meta.content_type.clone(),
            e_tag: Some(etag(&meta.md5)),
            last_modified: Some(modified(version)),
            metadata: user_metadata(&meta),
            ..Default::default()
        };
        match input.range {
            Some(range) => {
                let range = range.check(meta.size)?;
                let (first, last, size) = (range.start, range.end - 1, meta.size);
                output.content_range = Some(format!("bytes {first}-{last}/{size}"));
                body = body.slice(range.start as usize..range.end as usize);
            }
            None => output.checksum_crc32 = checksum(&meta, input.checksum_mode.as_ref()),
        }
        output.content_length = Some(body.len() as i64);
        output.body = Some(Body::from(body).into());
        Ok(S3Response::new(output))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = &request.input;
        let name = object_name(&input.bucket, &input.key);
        let (version, meta, _) = self.get(&request, name, false).await?;
        Ok(S3Response::new(HeadObjectOutput {
            accept_ranges: Some("bytes".into()),
            checksum_crc32: checksum(&meta, input.checksum_mode.as_ref()),
            content_length: Some(meta.size as i64),
            content_type: meta.content_type.clone(),
            e_tag: Some(etag(&meta.md5)),
            last_modified: Some(modified(version)),
            metadata: user_metadata(&meta),
            ..Default::default()
        }))
    }

    async fn put_object(
        &self,
        mut request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let upload = Upload::receive(&self.memory, &mut request).await?;
        let input = &mut request.input;
        let name = object_name(&input.bucket, &input.key);
        let user = input.metadata.take().unwrap_or_default();
        let meta = Meta {
            size: upload.body.len() as u64,
            md5: upload.md5,
            crc32: upload.crc32,
            content_type: input.content_type.take(),
            user: user.into_iter().collect(),
        };
        self.run(&request, Op::Put { name, meta }, upload.body)
            .await?;
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(etag(&upload.md5)),
            ..Default::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = &request.input;
        let name = object_name(&input.bucket, &input.key);
        self.done(&request, Op::Delete { name }).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }
}

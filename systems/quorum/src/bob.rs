//! Bob's API over gRPC: requests into reads and writes of the vdisk that a key belongs to, replies
//! and failures back.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tonic::codegen::Service;
use tonic::{Request, Response, Status, async_trait};
use wanlat_proto::bob_storage::bob_api_server::{BobApi, BobApiServer};
use wanlat_proto::bob_storage::{
    Blob, BlobKey, BlobMeta, DeleteRequest, ExistRequest, ExistResponse, GetOptions, GetRequest,
    GetSource, Null, OpStatus, PutRequest,
};

use crate::disturbances::Client;
use crate::memory::Memory;
use crate::op::{Effect, Failure, ROUNDS_HEADER, Rounds};
use crate::placement::{BUCKET, Placement};
use crate::record::{Meta, ObjectName, crc32};
use crate::round::Members;

/// The largest blob, where `--max-object-bytes` does not ask for less.
const MAX_BLOB: usize = 128 << 20;
/// The largest message: such a blob with its key, its time and the options around it. gRPC's own
/// default would be 4 MiB.
const MAX_MESSAGE: usize = MAX_BLOB + (4 << 10);
/// Flow control: a client may send the largest message without waiting to be told that its
/// beginning was taken in, so that a Put waits for nothing but TCP. No more than that on a
/// connection: it is the memory that one needs whose messages wait.
const WINDOW: u32 = 129 << 20;
/// Four times HTTP/2's default: fewer pieces of a large message to handle.
const FRAME_BYTES: u32 = 64 << 10;
/// Requests under way on one connection; more of them wait at the client.
const STREAMS: u32 = 128;
/// Keys of one Exist, each of which is asked for by itself.
const MAX_KEYS: usize = 10_000;
/// Under which a blob's time is kept.
const TIMESTAMP: &str = "timestamp";

#[derive(Clone)]
pub struct Api {
    service: BobApiServer<Adapter>,
    memory: Arc<Memory>,
}

impl Api {
    pub fn new(members: Members, placement: Placement, max_object_bytes: u32) -> Self {
        let adapter = Adapter {
            members,
            placement,
            max_blob: MAX_BLOB.min(max_object_bytes as usize),
        };
        let service = BobApiServer::new(adapter)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        Self {
            service,
            memory: Arc::new(Memory::new(MAX_MESSAGE)),
        }
    }

    /// Serves HTTP/2 without TLS or upgrade.
    pub fn serve(&self, socket: TokioIo<Client>) -> impl Future<Output: Send> + Send + use<> {
        let api = self.clone();
        let answer = move |request| {
            let api = api.clone();
            async move { api.answer(request).await }
        };
        http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_frame_size(FRAME_BYTES)
            .max_concurrent_streams(STREAMS)
            .serve_connection(socket, service_fn(answer))
    }

    async fn answer(
        &self,
        mut request: hyper::Request<Incoming>,
    ) -> Result<hyper::Response<tonic::body::Body>, Infallible> {
        let rounds = Arc::new(Rounds::default());
        request.extensions_mut().insert(rounds.clone());
        let (parts, body) = request.into_parts();
        let (body, _memory) = self.memory.admit(body).await;
        let request = hyper::Request::from_parts(parts, body);
        let mut response = self.service.clone().call(request).await?;
        let rounds = HeaderValue::from(rounds.count());
        response.headers_mut().insert(ROUNDS_HEADER, rounds);
        Ok(response)
    }
}

struct Adapter {
    members: Members,
    placement: Placement,
    max_blob: usize,
}

impl Adapter {
    async fn write(
        &self,
        key: Key,
        object: Option<Meta>,
        body: Bytes,
        rounds: &Rounds,
    ) -> Result<Response<OpStatus>, Status> {
        let (vdisk, name) = (self.placement.of(key.0), key.name());
        let written = self.members.write_blob(vdisk, name, object, body, rounds);
        written.await.map_err(|failure| status(key, failure))?;
        Ok(Response::new(OpStatus { error: None }))
    }

    /// What is known of a blob and, if it is wanted, the blob itself; None: there is none.
    async fn read(
        &self,
        key: Key,
        body: bool,
        rounds: &Rounds,
    ) -> Result<Option<(Meta, Bytes)>, Status> {
        let (vdisk, name) = (self.placement.of(key.0), key.name());
        match self.members.read_blob(vdisk, name, body, rounds).await {
            Ok(found) => Ok(Some(found)),
            Err(Failure::NoSuchKey) => Ok(None),
            Err(failure) => Err(status(key, failure)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Key([u8; 8]);

impl Key {
    /// # Errors
    /// `INVALID_ARGUMENT` without one, and for one of another length.
    fn of(sent: Option<&BlobKey>) -> Result<Self, Status> {
        let sent = sent.ok_or_else(|| Status::invalid_argument("the request has no key"))?;
        let wrong = |_| {
            let len = sent.key.len();
            Status::invalid_argument(format!("a key has 8 bytes, this one has {len}"))
        };
        Ok(Self(sent.key[..].try_into().map_err(wrong)?))
    }

    fn name(self) -> ObjectName {
        ObjectName {
            bucket: BUCKET.into(),
            key: self.to_string(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

#[async_trait]
impl BobApi for Adapter {
    async fn put(&self, request: Request<PutRequest>) -> Result<Response<OpStatus>, Status> {
        let (rounds, request) = counted(request)?;
        let key = Key::of(request.key.as_ref())?;
        let Some(Blob {
            data,
            meta: Some(BlobMeta { timestamp }),
        }) = request.data
        else {
            return Err(Status::invalid_argument(
                "a Put needs data, and in data.meta its timestamp",
            ));
        };
        let options = request.options.unwrap_or_default();
        if options.force_node || !options.remote_nodes.is_empty() {
            return Err(between_nodes("force_node and remote_nodes"));
        }
        if data.len() > self.max_blob {
            let (max, len) = (self.max_blob, data.len());
            return Err(Status::out_of_range(format!(
                "blobs of at most {max} bytes are accepted, this one has {len}"
            )));
        }
        let meta = Meta {
            size: data.len() as u64,
            md5: [0; 16], // S3's alone
            crc32: crc32(&data),
            content_type: None,
            user: vec![(TIMESTAMP.into(), timestamp.to_string())],
        };
        self.write(key, Some(meta), data, &rounds).await
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<Blob>, Status> {
        let (rounds, request) = counted(request)?;
        let key = Key::of(request.key.as_ref())?;
        check(request.options)?;
        let (meta, data) = self
            .read(key, true, &rounds)
            .await?
            .ok_or_else(|| status(key, Failure::NoSuchKey))?;
        let timestamp = timestamp_of(&meta);
        let meta = Some(BlobMeta { timestamp });
        Ok(Response::new(Blob { data, meta }))
    }

    /// The keys are looked for together, so that it takes as many rounds as the slowest of them.
    async fn exist(
        &self,
        request: Request<ExistRequest>,
    ) -> Result<Response<ExistResponse>, Status> {
        let (rounds, request) = counted(request)?;
        check(request.options)?;
        if request.keys.len() > MAX_KEYS {
            let len = request.keys.len();
            return Err(Status::invalid_argument(format!(
                "an Exist has at most {MAX_KEYS} keys, this one has {len}"
            )));
        }
        let keys = request.keys.iter().map(|key| Key::of(Some(key)));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let looked_for = keys.into_iter().map(|key| async move {
            let rounds = Rounds::default();
            let found = self.read(key, false, &rounds).await;
            (found, rounds.count())
        });
        let found = join_all(looked_for).await;
        rounds.add(found.iter().map(|(_, rounds)| *rounds).max().unwrap_or(0));
        let exist = found.into_iter().map(|(found, _)| Ok(found?.is_some()));
        let exist = exist.collect::<Result<_, Status>>()?;
        Ok(Response::new(ExistResponse { exist }))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<OpStatus>, Status> {
        let (rounds, request) = counted(request)?;
        let key = Key::of(request.key.as_ref())?;
        if request.meta.is_none() {
            return Err(Status::invalid_argument(
                "a Delete needs meta, and in it the timestamp",
            ));
        }
        let options = request.options.unwrap_or_default();
        if options.force_node || options.is_alien || !options.force_alien_nodes.is_empty() {
            return Err(between_nodes("force_node, is_alien and force_alien_nodes"));
        }
        self.write(key, None, Bytes::new(), &rounds).await
    }

    async fn ping(&self, _: Request<Null>) -> Result<Response<Null>, Status> {
        Ok(Response::new(Null {}))
    }
}

/// A request, and where its rounds are counted.
fn counted<T>(request: Request<T>) -> Result<(Arc<Rounds>, T), Status> {
    let rounds = request.extensions().get::<Arc<Rounds>>().cloned();
    let rounds = rounds.ok_or_else(|| Status::internal("no counter of rounds"))?;
    Ok((rounds, request.into_inner()))
}

/// Reads know no option but the default, which GetSource::Normal is too where there are no aliens.
fn check(options: Option<GetOptions>) -> Result<(), Status> {
    let options = options.unwrap_or_default();
    match options.force_node || options.source() == GetSource::Alien {
        true => Err(between_nodes("force_node and source ALIEN")),
        false => Ok(()),
    }
}

fn between_nodes(options: &str) -> Status {
    Status::unimplemented(format!(
        "the options {options} are how Bob's nodes ask each other, and not served here"
    ))
}

fn timestamp_of(meta: &Meta) -> u64 {
    let kept = meta.user.iter().find(|(name, _)| name == TIMESTAMP);
    kept.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// The statuses a client can rely on: `UNAVAILABLE` where nothing was changed, `DEADLINE_EXCEEDED`
/// where a write may or may not be kept.
fn status(key: Key, failure: Failure) -> Status {
    match failure {
        Failure::NoSuchKey => Status::not_found(format!("KeyNotFound {key}")),
        Failure::Unavailable(why) if why.effect == Effect::None => {
            Status::unavailable(why.to_string())
        }
        Failure::Unavailable(why) => Status::deadline_exceeded(why.to_string()),
        other => Status::internal(format!("the request was answered with {other:?}")),
    }
}

//! A Bob that keeps blobs in memory and remembers what reached it; tonic's own server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};
use wanlat_proto::bob_storage::bob_api_server::{BobApi, BobApiServer};
use wanlat_proto::bob_storage::{
    Blob, BlobKey, BobError, DeleteRequest, ExistRequest, ExistResponse, GetRequest, Null,
    OpStatus, PutRequest,
};

/// What it does other than well.
#[derive(Default, Clone)]
pub struct Ways {
    /// Every Put and Delete is answered with this error in its OpStatus.
    pub bob_error: Option<BobError>,
    /// Every Get gives this, whatever was put.
    pub blob: Option<Bytes>,
    /// The longest message it takes; 128 MiB where nothing is said.
    pub max_message_bytes: Option<usize>,
}

/// A running one; gone with this value.
pub struct BobServer {
    pub port: u16,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
}

struct State {
    ways: Ways,
    blobs: Mutex<HashMap<Bytes, Blob>>,
    reached: Mutex<Vec<Reached>>,
}

/// A request that reached it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    pub endpoint: &'static str,
    pub keys: Vec<Bytes>,
    pub headers: http::HeaderMap,
    /// Put, Delete: meta's.
    pub timestamp: Option<u64>,
}

impl BobServer {
    pub fn well_behaved() -> Self {
        Self::with(Ways::default())
    }

    pub fn with(ways: Ways) -> Self {
        let state = Arc::new(State {
            ways,
            blobs: Mutex::default(),
            reached: Mutex::default(),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let limit = state.ways.max_message_bytes.unwrap_or(128 << 20);
        let service = BobApiServer::from_arc(state.clone())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(128 << 20);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                let stopped = async { drop(stopped.await) };
                tonic::transport::Server::builder()
                    .serve_with_incoming_shutdown(service, incoming, stopped)
                    .await
            })
        });
        BobServer {
            port,
            state,
            stop: Some(stop),
        }
    }

    pub fn reached(&self) -> Vec<Reached> {
        self.state.reached.lock().unwrap().clone()
    }
}

impl Drop for BobServer {
    fn drop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}

impl State {
    fn note<T>(
        &self,
        endpoint: &'static str,
        request: &Request<T>,
        keys: &[BlobKey],
        timestamp: Option<u64>,
    ) {
        self.reached.lock().unwrap().push(Reached {
            endpoint,
            keys: keys.iter().map(|key| key.key.clone()).collect(),
            headers: request.metadata().clone().into_headers(),
            timestamp,
        });
    }

    fn op_status(&self) -> Answer<OpStatus> {
        Ok(Response::new(OpStatus {
            error: self.ways.bob_error.clone(),
        }))
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl BobApi for State {
    async fn put(&self, request: Request<PutRequest>) -> Answer<OpStatus> {
        let asked = request.get_ref();
        let (key, blob) = (asked.key.clone().unwrap(), asked.data.clone().unwrap());
        let timestamp = blob.meta.map(|meta| meta.timestamp);
        self.note("Put", &request, std::slice::from_ref(&key), timestamp);
        self.blobs.lock().unwrap().insert(key.key, blob);
        self.op_status()
    }

    async fn get(&self, request: Request<GetRequest>) -> Answer<Blob> {
        let key = request.get_ref().key.clone().unwrap();
        self.note("Get", &request, std::slice::from_ref(&key), None);
        if let Some(data) = self.ways.blob.clone() {
            return Ok(Response::new(Blob { data, meta: None }));
        }
        let blob = self.blobs.lock().unwrap().get(&key.key).cloned();
        blob.map(Response::new)
            .ok_or_else(|| Status::not_found("KeyNotFound 42"))
    }

    async fn exist(&self, request: Request<ExistRequest>) -> Answer<ExistResponse> {
        let keys = request.get_ref().keys.clone();
        self.note("Exist", &request, &keys, None);
        let blobs = self.blobs.lock().unwrap();
        let exist = keys.iter().map(|key| blobs.contains_key(&key.key));
        Ok(Response::new(ExistResponse {
            exist: exist.collect(),
        }))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<OpStatus> {
        let key = request.get_ref().key.clone().unwrap();
        let timestamp = request.get_ref().meta.map(|meta| meta.timestamp);
        self.note("Delete", &request, std::slice::from_ref(&key), timestamp);
        self.blobs.lock().unwrap().remove(&key.key);
        self.op_status()
    }

    async fn ping(&self, request: Request<Null>) -> Answer<Null> {
        self.note("Ping", &request, &[], None);
        Ok(Response::new(Null {}))
    }
}

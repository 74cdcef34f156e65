//! A blocking client of Bob's API on one connection.

use std::net::SocketAddr;

use futures_util::future::join_all;
use tokio::runtime::Runtime;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use wanlat_proto::bob_storage::bob_api_client::BobApiClient;
use wanlat_proto::bob_storage::{
    Blob, BlobKey, BlobMeta, DeleteRequest, ExistRequest, ExistResponse, GetRequest, Null,
    OpStatus, PutRequest,
};

use super::cluster::Cluster;
use super::{PATIENCE, runtime};

/// Beyond what the store accepts, so that it is the store that refuses.
const MAX_MESSAGE: usize = 256 << 20;
pub const TIMESTAMP: u64 = 1_700_000_000;

pub const NODES: usize = 5;
/// The even keys on n0, n1 and n2, the odd ones on n2, n3 and n4.
pub const VDISKS: [&str; 4] = ["--vdisk", "n0,n1,n2", "--vdisk", "n2,n3,n4"];
pub const EVEN: u64 = 20;

/// Nodes with these vdisks.
pub fn cluster(options: &[&str]) -> Cluster {
    Cluster::of(NODES, "leaderless", &[&VDISKS, options].concat())
}

pub type Api = BobApiClient<Channel>;

pub struct Bob {
    runtime: Runtime,
    api: Api,
}

#[derive(Debug)]
pub struct Reply<T> {
    outcome: Result<T, Status>,
    metadata: MetadataMap,
}

impl<T> Reply<T> {
    /// The count of sequential rounds.
    pub fn rounds(&self) -> u32 {
        let rounds = self.metadata.get("x-quorum-rounds");
        let rounds = rounds.expect("every response counts its rounds");
        rounds.to_str().unwrap().parse().unwrap()
    }

    #[track_caller]
    pub fn expect(self) -> T {
        self.outcome.unwrap()
    }

    /// The message of a status of this code.
    #[track_caller]
    pub fn refused(self, code: Code) -> String {
        let Err(status) = self.outcome else {
            panic!("it went well");
        };
        assert_eq!(status.code(), code, "{status:?}");
        status.message().to_owned()
    }
}

pub fn key(number: u64) -> Option<BlobKey> {
    let key = number.to_le_bytes().to_vec().into();
    Some(BlobKey { key })
}

fn meta() -> Option<BlobMeta> {
    Some(BlobMeta {
        timestamp: TIMESTAMP,
    })
}

pub fn put(key: Option<BlobKey>, data: &[u8]) -> PutRequest {
    let data = data.to_vec().into();
    PutRequest {
        key,
        data: Some(Blob { data, meta: meta() }),
        options: None,
    }
}

impl Bob {
    pub fn new(address: SocketAddr) -> Self {
        let runtime = runtime();
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let connected = runtime.block_on(endpoint.timeout(5 * PATIENCE).connect());
        let api = BobApiClient::new(connected.expect("the node listens"));
        let api = api.max_decoding_message_size(MAX_MESSAGE);
        Self { runtime, api }
    }

    /// What a request says and costs, whatever it says.
    pub fn ask<T>(
        &mut self,
        request: impl AsyncFnOnce(&mut Api) -> Result<Response<T>, Status>,
    ) -> Reply<T> {
        match self.runtime.block_on(request(&mut self.api)) {
            Ok(response) => {
                let (metadata, message, _) = response.into_parts();
                let outcome = Ok(message);
                Reply { outcome, metadata }
            }
            Err(status) => Reply {
                metadata: status.metadata().clone(),
                outcome: Err(status),
            },
        }
    }

    pub fn put(&mut self, number: u64, data: &[u8]) -> Reply<OpStatus> {
        self.ask(async |api| api.put(put(key(number), data)).await)
    }

    /// Puts the same under each key, all at once on the one connection.
    pub fn put_at_once(&self, numbers: &[u64], data: &[u8]) {
        let request = put(None, data);
        let put = |&number| {
            let (mut api, mut request) = (self.api.clone(), request.clone());
            request.key = key(number);
            async move { api.put(request).await }
        };
        let puts = join_all(numbers.iter().map(put));
        for put in self.runtime.block_on(puts) {
            put.unwrap();
        }
    }

    pub fn get(&mut self, number: u64) -> Reply<Blob> {
        let (key, options) = (key(number), None);
        self.ask(async |api| api.get(GetRequest { key, options }).await)
    }

    pub fn exist(&mut self, numbers: &[u64]) -> Reply<ExistResponse> {
        let request = ExistRequest {
            keys: numbers.iter().filter_map(|&number| key(number)).collect(),
            options: None,
        };
        self.ask(async |api| api.exist(request).await)
    }

    pub fn delete(&mut self, number: u64) -> Reply<OpStatus> {
        let request = DeleteRequest {
            key: key(number),
            meta: meta(),
            options: None,
        };
        self.ask(async |api| api.delete(request).await)
    }

    pub fn ping(&mut self) -> Reply<Null> {
        self.ask(async |api| api.ping(Null {}).await)
    }
}

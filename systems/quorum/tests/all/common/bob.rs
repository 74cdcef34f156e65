//! A blocking client of Bob's API on one connection.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

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

/// No request of these tests takes longer unless something hangs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Beyond what the store accepts, so that it is the store that refuses.
const MAX_MESSAGE: usize = 256 << 20;
pub const TIMESTAMP: u64 = 1_700_000_000;

pub struct Bob {
    runtime: Runtime,
    client: BobApiClient<Channel>,
}

#[derive(Debug)]
pub struct Reply<T> {
    outcome: Result<T, Status>,
    metadata: MetadataMap,
}

impl<T> Reply<T> {
    fn new(outcome: Result<Response<T>, Status>) -> Self {
        match outcome {
            Ok(response) => {
                let (metadata, message, _) = response.into_parts();
                let outcome = Ok(message);
                Self { outcome, metadata }
            }
            Err(status) => Self {
                metadata: status.metadata().clone(),
                outcome: Err(status),
            },
        }
    }

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
        match self.outcome {
            Ok(_) => panic!("it went well"),
            Err(status) => {
                assert_eq!(status.code(), code, "{status:?}");
                status.message().to_owned()
            }
        }
    }
}

pub fn key(number: u64) -> BlobKey {
    let key = number.to_le_bytes().to_vec().into();
    BlobKey { key }
}

pub fn blob(data: &[u8]) -> Blob {
    Blob {
        data: data.to_vec().into(),
        meta: Some(BlobMeta {
            timestamp: TIMESTAMP,
        }),
    }
}

impl Bob {
    pub fn new(address: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let connected = runtime.block_on(endpoint.timeout(TIMEOUT).connect());
        let client = BobApiClient::new(connected.expect("the node listens"));
        let client = client.max_decoding_message_size(MAX_MESSAGE);
        Self { runtime, client }
    }

    pub fn put(&mut self, number: u64, data: &[u8]) -> Reply<OpStatus> {
        self.send_put(PutRequest {
            key: Some(key(number)),
            data: Some(blob(data)),
            options: None,
        })
    }

    pub fn send_put(&mut self, request: PutRequest) -> Reply<OpStatus> {
        wait(&self.runtime, self.client.put(request))
    }

    /// Puts the same under each key, all at once on the one connection.
    pub fn put_at_once(&self, numbers: &[u64], data: &[u8]) {
        let data = blob(data);
        let put = |&number| {
            let mut client = self.client.clone();
            let request = PutRequest {
                key: Some(key(number)),
                data: Some(data.clone()),
                options: None,
            };
            async move { client.put(request).await }
        };
        let puts = join_all(numbers.iter().map(put));
        for put in self.runtime.block_on(puts) {
            put.unwrap();
        }
    }

    pub fn get(&mut self, number: u64) -> Reply<Blob> {
        self.send_get(GetRequest {
            key: Some(key(number)),
            options: None,
        })
    }

    pub fn send_get(&mut self, request: GetRequest) -> Reply<Blob> {
        wait(&self.runtime, self.client.get(request))
    }

    pub fn exist(&mut self, numbers: &[u64]) -> Reply<ExistResponse> {
        self.send_exist(ExistRequest {
            keys: numbers.iter().map(|&number| key(number)).collect(),
            options: None,
        })
    }

    pub fn send_exist(&mut self, request: ExistRequest) -> Reply<ExistResponse> {
        wait(&self.runtime, self.client.exist(request))
    }

    pub fn delete(&mut self, number: u64) -> Reply<OpStatus> {
        self.send_delete(DeleteRequest {
            key: Some(key(number)),
            meta: Some(BlobMeta {
                timestamp: TIMESTAMP,
            }),
            options: None,
        })
    }

    pub fn send_delete(&mut self, request: DeleteRequest) -> Reply<OpStatus> {
        wait(&self.runtime, self.client.delete(request))
    }

    pub fn ping(&mut self) -> Reply<Null> {
        wait(&self.runtime, self.client.ping(Null {}))
    }
}

fn wait<T>(
    runtime: &Runtime,
    answered: impl Future<Output = Result<Response<T>, Status>>,
) -> Reply<T> {
    Reply::new(runtime.block_on(answered))
}

/// The status of a method that no service has.
pub fn call_unknown(address: SocketAddr) -> Code {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let mut grpc = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
        grpc.ready().await.unwrap();
        let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        let answered: Result<Response<Null>, Status> = grpc
            .unary(
                tonic::Request::new(Null {}),
                path.parse().unwrap(),
                tonic_prost::ProstCodec::default(),
            )
            .await;
        answered.unwrap_err().code()
    })
}

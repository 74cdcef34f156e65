//! A Bob that answers every request at once, always alike, and keeps nothing: what the gRPC clients
//! of the benchmarks ask.

use std::error::Error;
use std::thread;

use bytes::Bytes;
use clap::Parser;
use null_servers::{Options, end_with_input, tell_address};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};
use wanlat_proto::bob_storage::bob_api_server::{BobApi, BobApiServer};
use wanlat_proto::bob_storage::{
    Blob, BlobMeta, DeleteRequest, ExistRequest, ExistResponse, GetRequest, Null, OpStatus,
    PutRequest,
};

const MESSAGE_BYTES: usize = 256 << 20;

/// A Bob that answers every request at once and keeps nothing
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

struct NullBob(Bytes);

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl BobApi for NullBob {
    async fn put(&self, _: Request<PutRequest>) -> Answer<OpStatus> {
        Ok(Response::new(OpStatus::default()))
    }

    async fn get(&self, _: Request<GetRequest>) -> Answer<Blob> {
        Ok(Response::new(Blob {
            data: self.0.clone(),
            meta: Some(BlobMeta { timestamp: 1 }),
        }))
    }

    async fn exist(&self, request: Request<ExistRequest>) -> Answer<ExistResponse> {
        let exist = vec![true; request.get_ref().keys.len()];
        Ok(Response::new(ExistResponse { exist }))
    }

    async fn delete(&self, _: Request<DeleteRequest>) -> Answer<OpStatus> {
        Ok(Response::new(OpStatus::default()))
    }

    async fn ping(&self, _: Request<Null>) -> Answer<Null> {
        Ok(Response::new(Null {}))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Arguments::parse().options;
    let service = BobApiServer::new(NullBob(options.object().into()))
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    thread::spawn(|| end_with_input(|| None));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&options.listen).await?;
        tell_address(listener.local_addr()?);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tonic::transport::Server::builder()
            .serve_with_incoming(service, incoming)
            .await?;
        Ok(())
    })
}

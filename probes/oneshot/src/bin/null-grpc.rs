//! A Bob that answers every request at once, always alike, and keeps nothing: what the gRPC clients
//! of `benchmarks/probe/` are measured against.
//!
//! It lives until its standard input is closed, so that it never outlives whoever started it.

use std::io::{self, Read};
use std::process::ExitCode;

use bytes::Bytes;
use clap::{Arg, Command, value_parser};
use oneshot::body;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};
use wanlat_proto::bob_storage::bob_api_server::{BobApi, BobApiServer};
use wanlat_proto::bob_storage::{
    Blob, BlobMeta, DeleteRequest, ExistRequest, ExistResponse, GetRequest, Null, OpStatus,
    PutRequest,
};

const MESSAGE_BYTES: usize = 256 << 20;

struct NullBob {
    blob: Bytes,
}

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl BobApi for NullBob {
    async fn put(&self, _: Request<PutRequest>) -> Answer<OpStatus> {
        Ok(Response::new(OpStatus::default()))
    }

    async fn get(&self, _: Request<GetRequest>) -> Answer<Blob> {
        Ok(Response::new(Blob {
            data: self.blob.clone(),
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

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("null-grpc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let matches = command().get_matches();
    let number = |name: &str| *matches.get_one::<u64>(name).expect("has a default");
    let mut blob = vec![0; number("object-bytes") as usize];
    body::fill(number("object-seed"), 0, &mut blob);
    let service = BobApiServer::new(NullBob { blob: blob.into() })
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);

    std::thread::spawn(|| {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let address = matches.get_one::<String>("listen").expect("has a default");
        let listener = TcpListener::bind(address).await?;
        println!("{{\"listening\":\"{}\"}}", listener.local_addr()?);
        tonic::transport::Server::builder()
            .serve_with_incoming(
                service,
                TcpIncoming::from(listener).with_nodelay(Some(true)),
            )
            .await
            .map_err(io::Error::other)
    })
}

fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .default_value(default)
            .value_parser(value_parser!(u64))
            .help(help)
    };
    Command::new("null-grpc")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A Bob that answers every request at once and keeps nothing")
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS:PORT")
                .default_value("127.0.0.1:0")
                .help("Where; the first line on standard output tells the port"),
        )
        .arg(number(
            "object-bytes",
            "1024",
            "The length of the blob that every Get returns",
        ))
        .arg(number("object-seed", "0", "The seed of that blob's bytes"))
}

//! The least that tonic can do: its generated client on its own channel, one Get after another. What
//! `oneshot grpc` is measured against in `benchmarks/probe/`.
//!
//! Does COUNT requests, with a pause before each, and writes the nanoseconds of all as one JSON
//! array.

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::transport::Endpoint;
use wanlat_proto::bob_storage::bob_api_client::BobApiClient;
use wanlat_proto::bob_storage::{BlobKey, GetRequest};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, count, pause_us] = arguments.as_slice() else {
        eprintln!("usage: bare-grpc ADDRESS:PORT COUNT PAUSE_US");
        std::process::exit(2);
    };
    let count: usize = count.parse()?;
    let pause = Duration::from_micros(pause_us.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let durations = runtime.block_on(gets(address, count, pause))?;
    println!("{durations:?}");
    Ok(())
}

async fn gets(address: &str, count: usize, pause: Duration) -> Result<Vec<u128>, Box<dyn Error>> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
    let mut client = BobApiClient::new(endpoint.connect().await?);
    let mut durations = Vec::with_capacity(count);
    for _ in 0..count {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let request = GetRequest {
            key: Some(BlobKey {
                key: Bytes::from_static(&[7; 8]),
            }),
            options: None,
        };
        let started = Instant::now();
        client.get(request).await?;
        durations.push(started.elapsed().as_nanos());
    }
    Ok(durations)
}

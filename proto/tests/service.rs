//! The paths that the service's methods have on the wire, and the types that go there.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tonic::body::Body;
use tonic::codegen::{Service, http};
use wanlat_proto::bob_storage::bob_api_client::BobApiClient;
use wanlat_proto::bob_storage::{
    DeleteRequest, ExistRequest, GetRequest, Null, PutRequest, bob_api_server,
};

/// A transport that notes where requests go and sends none.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Service<http::Request<Body>> for Noting {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let asked = format!("{} {}", request.method(), request.uri().path());
        self.0.lock().unwrap().push(asked);
        ready(Ok(http::Response::new(Body::empty())))
    }
}

fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("nothing here waits"),
    }
}

#[test]
fn each_method_has_its_path() {
    let noting = Noting::default();
    let mut client = BobApiClient::new(noting.clone());
    let _ = done(client.put(PutRequest::default()));
    let _ = done(client.get(GetRequest::default()));
    let _ = done(client.exist(ExistRequest::default()));
    let _ = done(client.delete(DeleteRequest::default()));
    let _ = done(client.ping(Null::default()));
    assert_eq!(
        *noting.0.lock().unwrap(),
        [
            "POST /bob_storage.BobApi/Put",
            "POST /bob_storage.BobApi/Get",
            "POST /bob_storage.BobApi/Exist",
            "POST /bob_storage.BobApi/Delete",
            "POST /bob_storage.BobApi/Ping",
        ]
    );
}

#[test]
fn the_service_has_bobs_name() {
    assert_eq!(bob_api_server::SERVICE_NAME, "bob_storage.BobApi");
}

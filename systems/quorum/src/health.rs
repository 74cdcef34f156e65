//! `GET /healthz`: whether the node runs and whom it reaches, for those who start it.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::json;

use crate::args::Serve;
use crate::choice::Choice;
use crate::disturbances::Client;
use crate::peers::Peers;
use crate::placement::{Names, Placement};
use crate::store::Store;

pub struct Health {
    pub args: Serve,
    pub leader: String,
    pub peers: Arc<Peers>,
    pub store: Arc<Store>,
    /// Where Bob's API is served too.
    pub placement: Option<Placement>,
}

impl Health {
    pub async fn serve(self: Arc<Self>, socket: TokioIo<Client>) {
        let service = service_fn(move |request| std::future::ready(self.answer(&request)));
        let _ = http1::Builder::new()
            .serve_connection(socket, service)
            .await;
    }

    fn answer(&self, request: &Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let known = request.method() == Method::GET && request.uri().path() == "/healthz";
        let (status, body) = match known {
            true => (StatusCode::OK, self.status()),
            false => (
                StatusCode::NOT_FOUND,
                json!({"error": "only GET /healthz is here"}),
            ),
        };
        let mut response = Response::new(Full::new(body.to_string().into()));
        *response.status_mut() = status;
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn status(&self) -> serde_json::Value {
        let peers = self.peers.status();
        let vdisks = self.placement.iter().flat_map(Placement::vdisks);
        let vdisks = vdisks
            .zip(&self.args.vdisks)
            .map(|(vdisk, Names(names))| json!({"replicas": names, "quorum": vdisk.quorum}));
        json!({
            "node": self.args.name,
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": self.args.protocol.to_string(),
            "leader": (self.args.protocol == Choice::Leader).then_some(&self.leader),
            "peers_connected": peers.values().filter(|&&connected| connected).count(),
            "peers_total": peers.len(),
            "peers": peers,
            "objects": self.store.object_count(),
            "apis": if self.placement.is_some() { vec!["s3", "bob"] } else { vec!["s3"] },
            "vdisks": vdisks.collect::<Vec<_>>(),
        })
    }
}

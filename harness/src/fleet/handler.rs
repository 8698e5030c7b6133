//! The HTTP handler to which the listeners post their messages: records each, and answers whether
//! it is done.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::ledger::Ledger;
use crate::servers::ServerError;

/// Time that the handler takes per message, so that a process has some in flight when it is killed.
const WORK: Duration = Duration::from_millis(5);

/// An HTTP handler that runs until it is dropped.
pub struct Handler {
    /// Address on which it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Handler {
    /// Listens on a free port of this machine.
    pub async fn start(ledger: Arc<Ledger>) -> Result<Self, ServerError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(ServerError::call)?;
        let address = listener.local_addr().map_err(ServerError::call)?;
        let task = tokio::spawn(serve(listener, ledger));
        Ok(Handler { address, task })
    }
}

async fn serve(listener: TcpListener, ledger: Arc<Ledger>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let ledger = ledger.clone();
        let service = service_fn(move |request| answer(request, ledger.clone()));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // A listener that is killed breaks its connections, as this test intends.
        tokio::spawn(async move { drop(connection.await) });
    }
}

async fn answer(
    request: Request<Incoming>,
    ledger: Arc<Ledger>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = match request.into_body().collect().await {
        Ok(body) => {
            tokio::time::sleep(WORK).await;
            match ledger.handle(&String::from_utf8_lossy(&body.to_bytes())) {
                true => StatusCode::OK,
                false => StatusCode::INTERNAL_SERVER_ERROR,
            }
        }
        Err(_) => StatusCode::BAD_REQUEST,
    };
    Ok(response)
}

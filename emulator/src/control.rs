//! The control endpoint: health, metrics, clock, faults, state.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::emulator::Emulator;
use crate::http::accept;

/// The bound control endpoint.
pub struct Control {
    listener: TcpListener,
    token: Option<String>,
    emulator: Emulator,
}

impl Control {
    /// Binds it.
    ///
    /// # Errors
    /// When the address is taken.
    pub async fn bind(
        address: SocketAddr,
        token: Option<String>,
        emulator: Emulator,
    ) -> std::io::Result<Self> {
        Ok(Control {
            listener: TcpListener::bind(address).await?,
            token,
            emulator,
        })
    }

    /// The bound address.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is ready.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let (emulator, token) = (self.emulator, self.token);
        let handle = Arc::new(
            move |_request: http::Request<crate::Body>, _peer: SocketAddr| {
                let (_emulator, _token) = (emulator.clone(), token.clone());
                async move { Ok(http::Response::new(crate::body::empty())) }
            },
        );
        accept(self.listener, None, handle, stop).await;
    }
}

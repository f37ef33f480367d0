//! A TCP load balancer: each connection goes to the next of several addresses; it can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Balancer {
    pub port: u16,
    is_open: watch::Sender<bool>,
    /// The number of connections that each address got.
    pub counts: Arc<Vec<AtomicUsize>>,
}

impl Balancer {
    /// Starts a proxy on a port of 127.0.0.1; 0 is a free one.
    pub async fn start(port: u16, to: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_open, opened) = watch::channel(true);
        let counts: Arc<Vec<AtomicUsize>> = Arc::new(to.iter().map(|_| AtomicUsize::new(0)).collect());
        let counted = Arc::clone(&counts);
        tokio::spawn(async move {
            let mut next = 0;
            while let Ok((mut here, _)) = listener.accept().await {
                let mut opened = opened.clone();
                if !*opened.borrow() {
                    continue;
                }
                let (to, counted) = (to.clone(), Arc::clone(&counted));
                next += 1;
                let first = next;
                tokio::spawn(async move {
                    // An address that refuses the connection is skipped, as by a load balancer.
                    for at in (0..to.len()).map(|more| (first + more) % to.len()) {
                        let Ok(mut there) = TcpStream::connect(to[at]).await else { continue };
                        counted[at].fetch_add(1, Ordering::Relaxed);
                        tokio::select! {
                            _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
                            _ = opened.wait_for(|is_open| !*is_open) => {}
                        }
                        return;
                    }
                });
            }
        });
        Balancer { port, is_open, counts }
    }

    /// Ends all connections, and accepts none until [`Proxy::restore`].
    pub fn cut(&self) {
        self.is_open.send_replace(false);
    }

    pub fn restore(&self) {
        self.is_open.send_replace(true);
    }
}

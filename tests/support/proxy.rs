//! A TCP proxy between minions and master that can stall, cut and refuse connections, and damage what the master sends.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Pass,
    /// Connections stay open without traffic.
    Stall,
    /// Connections are refused.
    Refuse,
}

/// Changes bytes that the target sends; false for as long as the right ones did not come.
type Damage = Box<dyn FnMut(&mut [u8]) -> bool + Send>;
type NextDamage = Arc<Mutex<Option<Damage>>>;

pub struct Proxy {
    pub port: u16,
    damage: NextDamage,
    mode: watch::Sender<Mode>,
    /// The delay of all traffic, in milliseconds.
    delay: Arc<AtomicU64>,
    /// Counts the cuts: connections older than the last cut are closed.
    cuts: watch::Sender<u64>,
    shutdown: CancellationToken,
}

impl Proxy {
    /// Starts a proxy on a free port in front of a port of this host.
    pub async fn start(target: u16) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, super::free_port(), target).await
    }

    /// Starts a proxy at this address and port.
    pub async fn at(address: Ipv4Addr, port: u16, target: u16) -> Self {
        let listener = TcpListener::bind((address, port)).await.unwrap();
        let proxy = Proxy {
            port,
            damage: NextDamage::default(),
            mode: watch::channel(Mode::Pass).0,
            delay: Arc::default(),
            cuts: watch::channel(0).0,
            shutdown: CancellationToken::new(),
        };
        let (mode, cuts) = (proxy.mode.subscribe(), proxy.cuts.subscribe());
        let serving = serve(listener, target, (mode, Arc::clone(&proxy.delay), Arc::clone(&proxy.damage)), cuts);
        let shutdown = proxy.shutdown.clone();
        tokio::spawn(async move { shutdown.run_until_cancelled(serving).await });
        proxy
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Delays all traffic from now on.
    pub fn delay(&self, delay: Duration) {
        self.delay.store(delay.as_millis() as u64, Ordering::Relaxed);
    }

    /// Damages the next bytes of the target that this function accepts, once.
    pub fn damage(&self, change: impl FnMut(&mut [u8]) -> bool + Send + 'static) {
        *self.damage.lock() = Some(Box::new(change));
    }

    /// Whether the last damage is done.
    pub fn is_damaged(&self) -> bool {
        self.damage.lock().is_none()
    }

    /// Closes all open connections.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shutdown.cancel();
        self.cut();
    }
}

async fn serve(
    listener: TcpListener,
    target: u16,
    (mut mode, delay, damage): (watch::Receiver<Mode>, Arc<AtomicU64>, NextDamage),
    cuts: watch::Receiver<u64>,
) {
    let address = listener.local_addr().unwrap();
    let mut listener = Some(listener);
    loop {
        if *mode.borrow_and_update() == Mode::Refuse {
            listener = None;
        } else if listener.is_none() {
            listener = Some(TcpListener::bind(address).await.unwrap());
        }
        let Some(open) = &listener else {
            if mode.changed().await.is_err() {
                return;
            }
            continue;
        };
        tokio::select! {
            accepted = open.accept() => {
                let Ok((near, _)) = accepted else { continue };
                let (mode, delay, mut cuts) = (mode.clone(), Arc::clone(&delay), cuts.clone());
                let damage = Arc::clone(&damage);
                cuts.mark_unchanged();
                // A connection that is accepted during a cut may have been marked as newer than the cut: drop it.
                if *mode.borrow() == Mode::Refuse {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else { return };
                    let _ = (near.set_nodelay(true), far.set_nodelay(true));
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    tokio::select! {
                        () = copy(near_in, far_out, mode.clone(), &delay, None) => {}
                        () = copy(far_in, near_out, mode, &delay, Some(&damage)) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
            changed = mode.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut mode: watch::Receiver<Mode>,
    delay: &AtomicU64,
    damage: Option<&NextDamage>,
) {
    let mut buffer = vec![0; 65_536];
    loop {
        let Ok(length) = from.read(&mut buffer).await else { return };
        if length == 0 || mode.wait_for(|mode| *mode != Mode::Stall).await.is_err() {
            return;
        }
        if let Some(damage) = damage {
            let mut next = damage.lock();
            if next.as_mut().is_some_and(|change| change(&mut buffer[..length])) {
                *next = None;
            }
        }
        tokio::time::sleep(Duration::from_millis(delay.load(Ordering::Relaxed))).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

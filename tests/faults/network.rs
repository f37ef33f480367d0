//! Faults of the network: stalled, cut and refused connections, and more connections than file descriptors.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpStream;

use super::load::join;
use super::random::Random;
use super::world::World;
use crate::support::proxy::Mode;

/// Stalls all traffic for five seconds; connections stay open.
pub async fn stall(world: &World) {
    set(world, Mode::Stall);
    tokio::time::sleep(Duration::from_secs(5)).await;
    set(world, Mode::Pass);
}

/// Cuts all connections, and refuses new ones for up to three seconds.
pub async fn cut(world: &World, random: &mut Random) {
    set(world, Mode::Refuse);
    for proxy in [&world.requests, &world.publishes] {
        proxy.cut();
    }
    tokio::time::sleep(random.millis(100, 3000)).await;
    set(world, Mode::Pass);
}

fn set(world: &World, mode: Mode) {
    world.requests.set(mode);
    world.publishes.set(mode);
}

/// Opens 200 silent connections to each port of a master with at most 64 open files, and closes them again.
pub async fn exhaust_descriptors(world: &World) -> Result<(), String> {
    let mut connections = Vec::new();
    for port in [world.system.ret_port, world.system.publish_port] {
        for _ in 0..200 {
            // The kernel completes these whether or not the master accepts them; its queue may be full.
            let connecting = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
            if let Ok(Ok(connection)) = tokio::time::timeout(Duration::from_millis(50), connecting).await {
                connections.push(connection);
            }
        }
    }
    if connections.len() < 128 {
        return Err(format!("only {} connections could be opened", connections.len()));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(connections);
    join(world, "newcomer", "aes-256-gcm").await.map(drop)
}

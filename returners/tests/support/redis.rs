//! A Redis server on a Unix socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brine_value::{Map, map};

/// A running `redis-server`.
pub struct RedisServer {
    process: Child,
    socket: PathBuf,
}

impl RedisServer {
    /// Starts a server and waits until it replies to PING.
    pub fn start(directory: &Path) -> Self {
        let socket = directory.join("redis.sock");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .current_dir(directory)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("redis-server must be installed (Debian's package redis-server): {error}"));
        let mut server = RedisServer { process, socket };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !server.answers() {
            if let Some(status) = server.process.try_wait().unwrap() {
                panic!("redis-server ended with {status}");
            }
            assert!(Instant::now() < deadline, "redis-server does not answer");
            std::thread::yield_now();
        }
        server
    }

    fn answers(&self) -> bool {
        let ping = || {
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"PING\r\n")?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            std::io::Result::Ok(&answer == b"+PONG")
        };
        ping().unwrap_or(false)
    }

    /// Returns the returner options for this server.
    pub fn opts(&self) -> Map {
        map! {"redis.unix_socket_path" => self.socket.display().to_string()}
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

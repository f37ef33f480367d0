//! A NATS server with JetStream on a free port, and members of a cluster on it.
#![allow(dead_code, missing_docs)]

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use super::support::{System, free_port, until};

/// A running NATS server, whose data outlives it until this is dropped.
pub struct Nats {
    directory: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
}

impl Nats {
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut nats = Nats { directory, port: free_port(), child: None };
        nats.restart().await;
        nats
    }

    /// Starts the server again on its data.
    pub async fn restart(&mut self) {
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]);
        command.arg(self.directory.path()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        until("the NATS server listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok()).await;
    }

    /// Returns everything that the server has stored.
    pub fn stored(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut directories = vec![self.directory.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { directories.push(path) } else { all.extend(std::fs::read(path).unwrap()) }
            }
        }
        all
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Creates a member of the cluster on this port; `extra` is added to its configuration.
pub fn member(port: u16, name: &str, secret: &str, extra: &str) -> System {
    let option = format!(
        "id: {name}\ncluster:\n  servers: ['nats://127.0.0.1:{port}']\n  lease: 2\n  secret_file: ROOT/cluster.secret\n"
    );
    let system = System::new(&format!("{option}{extra}"));
    let file = system.write("cluster.secret", secret);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    system
}

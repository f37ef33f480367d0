//! A NATS server with JetStream on a free port, and members of a cluster on it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{System, free_port, until};

/// JetStream's storage in MiB. Without it a server takes a part of what is free on the disk, which may be little.
const STORAGE: u64 = 65_536;

/// A NATS server. Its data survives kills and restarts, until this is dropped.
pub struct Nats {
    directory: tempfile::TempDir,
    pub port: u16,
    /// The port of the server's monitoring endpoint.
    monitor: u16,
    child: Option<Child>,
    /// Further arguments: those of a server in a NATS cluster.
    arguments: Vec<String>,
}

/// Starts a NATS cluster of three servers.
pub async fn three_servers() -> Vec<Nats> {
    let routes: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let all = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect::<Vec<_>>().join(",");
    let mut servers = Vec::new();
    for (number, port) in routes.iter().enumerate() {
        let arguments = [
            "--server_name".to_owned(),
            format!("n{number}"),
            "--cluster_name".to_owned(),
            "test".to_owned(),
            "--cluster".to_owned(),
            format!("nats://127.0.0.1:{port}"),
            "--routes".to_owned(),
            all.clone(),
            // Clients use only the configured addresses, which may be those of proxies.
            "--no_advertise".to_owned(),
        ];
        servers.push(Nats::start_with(arguments.into()).await);
    }
    for server in &servers {
        server.until_current().await;
    }
    servers
}

impl Nats {
    pub async fn start() -> Self {
        Self::start_with(Vec::new()).await
    }

    /// Starts a server with this much storage for JetStream, in MiB.
    pub async fn start_with_storage(mib: u64) -> Self {
        Self::start_limited(Vec::new(), mib).await
    }

    async fn start_with(arguments: Vec<String>) -> Self {
        Self::start_limited(arguments, STORAGE).await
    }

    async fn start_limited(mut arguments: Vec<String>, mib: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("server.conf");
        std::fs::write(&config, format!("jetstream {{ max_file_store: {mib}MB }}\n")).unwrap();
        arguments.extend(["-c".to_owned(), config.display().to_string()]);
        let mut nats = Nats { directory, port: free_port(), monitor: free_port(), child: None, arguments };
        nats.restart().await;
        nats
    }

    /// Starts the server again on its data.
    pub async fn restart(&mut self) {
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-m", &self.monitor.to_string(), "-js", "-sd"]);
        command.arg(self.directory.path()).args(&self.arguments).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        until("the NATS server listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok()).await;
    }

    /// Waits until this server has caught up with the others; before that no other server may fail.
    pub async fn until_current(&self) {
        until("the NATS server is current", || {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.monitor)) else { return false };
            let mut answer = String::new();
            let asked = stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n");
            asked.and_then(|()| stream.read_to_string(&mut answer)).is_ok() && answer.starts_with("HTTP/1.0 200")
        })
        .await;
    }

    /// Returns the contents of all files of the server's store.
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

    /// Sends a signal to the running server.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().unwrap().id();
        kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
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

/// Creates a member of the cluster on these ports; `extra` is added to its configuration.
pub fn member(ports: &[u16], name: &str, secret: &str, extra: &str) -> System {
    let servers: Vec<String> = ports.iter().map(|port| format!("'nats://127.0.0.1:{port}'")).collect();
    let option = format!(
        "id: {name}\ncluster:\n  servers: [{}]\n  replicas: {}\n  lease: {}\n  secret_file: ROOT/cluster.secret\n",
        servers.join(", "),
        ports.len(),
        // A NATS cluster elects its own leader first, which takes time.
        if ports.len() == 1 { 2 } else { 8 }
    );
    let system = System::new(&format!("{option}{extra}"));
    let file = system.write("cluster.secret", secret);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    system
}

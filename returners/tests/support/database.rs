//! A MariaDB or PostgreSQL server on a free port of the loopback interface, and the server's own client program.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brine_value::{Map, map};

/// The two kinds of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    MariaDb,
    Postgres,
}

/// A running server with the user `salt`, whose password is `secret`.
pub struct DatabaseServer {
    kind: Kind,
    directory: PathBuf,
    port: u16,
    process: Option<Child>,
    /// Options of the server's command line.
    options: Vec<String>,
}

/// Runs a command to its end and returns its output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a file readable for its owner only and, as root, the account of a server its owner.
pub fn hand_over(kind: Kind, path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    if is_root() {
        output(Command::new("chown").arg(if kind == Kind::MariaDb { "nobody" } else { "postgres" }).arg(path));
    }
}

/// Makes a directory accessible for its owner only and, as root, the account of a server its owner.
pub fn hand_over_directory(kind: Kind, path: &Path) {
    hand_over(kind, path);
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}

fn is_root() -> bool {
    output(Command::new("id").arg("-u")).trim() == "0"
}

/// Returns a command for a program of PostgreSQL's server package, which Debian installs outside `PATH`. The program
/// refuses to run as root.
pub fn postgres_program(name: &str) -> Command {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(name)).collect();
    paths.sort();
    let program = paths.pop().unwrap_or_else(|| name.into());
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

/// Returns the ids of the processes whose current directory is this one.
fn processes_in(directory: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let inside = all.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == directory));
    inside.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

impl DatabaseServer {
    /// Creates and starts a server, and waits until it accepts queries.
    pub fn start(kind: Kind, directory: &Path) -> Self {
        Self::start_with(kind, directory, Vec::new())
    }

    /// Creates and starts a server with further options of its command line.
    pub fn start_with(kind: Kind, directory: &Path, options: Vec<String>) -> Self {
        // The server's own account must reach its directory.
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        let port = brine_system::ports::free_port().unwrap();
        let mut server = DatabaseServer { kind, directory: directory.to_owned(), port, process: None, options };
        let data = server.data();
        fs::create_dir(&data).unwrap();
        match kind {
            Kind::MariaDb => {
                let mut install = Command::new("mariadb-install-db");
                install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
                // Concurrent installations interfere in a shared temporary directory.
                install.arg(format!("--datadir={}", data.display())).arg(format!("--tmpdir={}", data.display()));
                if is_root() {
                    output(Command::new("chown").arg("nobody").arg(&data));
                    install.arg("--user=nobody");
                }
                output(&mut install);
            }
            Kind::Postgres => {
                let password = directory.join("password");
                fs::write(&password, "secret\n").unwrap();
                if is_root() {
                    output(Command::new("chown").arg("postgres").args([&data, &password]));
                }
                let mut init = postgres_program("initdb");
                init.args(["--no-sync", "--auth=scram-sha-256", "--username=salt", "--encoding=UTF8", "--locale=C"]);
                init.arg("--pgdata").arg(&data).arg("--pwfile").arg(&password).current_dir(directory);
                output(&mut init);
            }
        }
        server.start_again();
        if kind == Kind::MariaDb {
            server.client_as("root", "", "mysql", "GRANT ALL ON *.* TO salt@'%' IDENTIFIED BY 'secret'");
        }
        server
    }

    /// Returns the directory of the server's data.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Starts the stopped server on its old port, and waits until it answers.
    pub fn start_again(&mut self) {
        let data = self.data();
        let port = self.port.to_string();
        let mut command = match self.kind {
            Kind::MariaDb => {
                let mut command = Command::new("mariadbd");
                command.args(["--no-defaults", "--bind-address=127.0.0.1", "--port", &port]);
                command.arg("--datadir").arg(&data).arg("--socket").arg(data.join("socket"));
                if is_root() {
                    command.arg("--user=nobody");
                }
                command
            }
            Kind::Postgres => {
                let mut command = postgres_program("postgres");
                command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port, "-F", "-k", ""]);
                command
            }
        };
        let log = fs::File::create(self.directory.join("log")).unwrap();
        command.args(&self.options).current_dir(&self.directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.answers() {
            let status = self.process.as_mut().unwrap().try_wait().unwrap();
            let log = || fs::read_to_string(self.directory.join("log")).unwrap();
            assert!(status.is_none(), "the server ended: {}", log());
            assert!(Instant::now() < deadline, "the server does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn answers(&self) -> bool {
        let (user, password, database) = match self.kind {
            Kind::MariaDb => ("root", "", "mysql"),
            Kind::Postgres => ("salt", "secret", "postgres"),
        };
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            && self.command(user, password, database, "SELECT 1").output().unwrap().status.success()
    }

    /// Stops the server without giving it time to end its sessions.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        // The children of a killed PostgreSQL server serve their sessions until they notice its end.
        loop {
            let children = if self.kind == Kind::Postgres { processes_in(&self.data()) } else { Vec::new() };
            if children.is_empty() {
                break;
            }
            output(Command::new("sh").args(["-c", "kill -9 \"$@\" 2> /dev/null || true", "kill"]).args(children));
        }
        let lock = self.data().join("postmaster.pid");
        if lock.exists() {
            fs::remove_file(lock).unwrap();
        }
        while TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates an empty database.
    pub fn create(&self, database: &str) {
        let existing = if self.kind == Kind::MariaDb { "mysql" } else { "postgres" };
        self.client(existing, &format!("CREATE DATABASE {database}"));
    }

    /// Removes a database, although a returner may still be connected to it.
    pub fn drop_database(&self, database: &str) {
        match self.kind {
            Kind::MariaDb => self.client("mysql", &format!("DROP DATABASE {database}")),
            Kind::Postgres => self.client("postgres", &format!("DROP DATABASE {database} WITH (FORCE)")),
        };
    }

    fn command(&self, user: &str, password: &str, database: &str, sql: &str) -> Command {
        let port = self.port.to_string();
        match self.kind {
            Kind::MariaDb => {
                let mut command = Command::new("mariadb");
                command.args(["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", user]);
                command.args(["--default-character-set=utf8mb4", "-N", "-B", "--raw", "-e", sql, database]);
                command.env("MYSQL_PWD", password);
                command
            }
            Kind::Postgres => {
                let mut command = Command::new("psql");
                command.args(["-X", "-h", "127.0.0.1", "-p", &port, "-U", user, "-A", "-t", "-F", "\t", "-c", sql]);
                command.arg(database).env("PGPASSWORD", password);
                command
            }
        }
    }

    /// Runs SQL as this user.
    pub fn client_as(&self, user: &str, password: &str, database: &str, sql: &str) -> String {
        output(&mut self.command(user, password, database, sql))
    }

    /// Runs SQL by the server's own client and returns its output, one row a line, columns separated by tabs.
    pub fn client(&self, database: &str, sql: &str) -> String {
        self.client_as("salt", "secret", database, sql)
    }

    /// Returns the options of a returner for a database of this server.
    pub fn opts(&self, returner: &str, database: &str) -> Map {
        let port = i64::from(self.port);
        if returner == "mysql" {
            return map! {
                "mysql.host" => "127.0.0.1", "mysql.port" => port, "mysql.user" => "salt", "mysql.pass" => "secret",
                "mysql.db" => database, "id" => "boss",
            };
        }
        let password = if returner == "pgjsonb" { "pass" } else { "passwd" };
        let option = |name: &str| match returner {
            "postgres_local_cache" => format!("master_job_cache.postgres.{name}"),
            _ => format!("returner.{returner}.{name}"),
        };
        map! {
            option("host") => "127.0.0.1", option("port") => port, option("user") => "salt",
            option(password) => "secret", option("db") => database, "id" => "boss",
        }
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended already.
            _ = process.kill();
            _ = process.wait();
        }
    }
}

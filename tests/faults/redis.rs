//! A Redis server in which the master stores the events of the load (`event_return`). It has flushed what it has
//! answered, so that it may be killed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brine_value::{Value, json};

use super::journal::Seen;
use super::process::Daemon;
use super::random::Random;

/// The options of the master.
pub const OPTIONS: &str = "event_return: redis
event_return_whitelist: ['fault/*']
redis.unix_socket_path: ROOT/redis/socket
";
/// The timeout of a start.
const START: Duration = Duration::from_secs(30);

pub struct Redis {
    directory: PathBuf,
    process: Option<Daemon>,
}

impl Redis {
    /// Starts a server with its data below this directory.
    pub async fn start(directory: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("creating the directory of Redis failed: {error}"))?;
        let mut redis = Redis { directory: directory.to_owned(), process: None };
        redis.restart().await?;
        Ok(redis)
    }

    /// Starts the server on its data and waits until it has loaded them.
    async fn restart(&mut self) -> Result<(), String> {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--unixsocket"]);
        command.arg(self.directory.join("socket")).current_dir(&self.directory);
        self.process = Some(Daemon::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()))?);
        let began = Instant::now();
        while self.ask(&["PING"]).await.trim() != "PONG" {
            if began.elapsed() > START {
                return Err("redis-server does not answer".into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Kills the server, and starts it again after up to three seconds.
    pub async fn kill_for_a_while(&mut self, random: &mut Random) -> Result<(), String> {
        if let Some(process) = self.process.take() {
            process.kill();
        }
        tokio::time::sleep(random.millis(100, 3000)).await;
        self.restart().await
    }

    async fn ask(&self, words: &[&str]) -> String {
        let mut command = crate::support::within_limit("redis-cli");
        command.arg("-s").arg(self.directory.join("socket")).args(words).stdin(Stdio::null());
        crate::support::stdout(&super::world::run(command).await)
    }

    /// Returns the numbers of the stored events of the load.
    pub async fn events(&self) -> Seen {
        let mut seen: Seen = HashMap::new();
        for line in self.ask(&["--raw", "LRANGE", "salt_events", "0", "-1"]).await.lines() {
            let event = json::from_json(line).unwrap_or_default();
            let tag = event.get("tag").and_then(Value::as_str).unwrap_or_default();
            if let ["fault", "event" | "local" | "runner", number] = tag.split('/').collect::<Vec<_>>()[..]
                && let Ok(number) = number.parse()
            {
                seen.entry(number).or_default().push(0);
            }
        }
        seen
    }
}

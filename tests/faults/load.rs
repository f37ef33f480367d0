//! The load of every round: minions that send events and returns, a pusher, clients of the REST API, and `salt --async`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_agent::channel::Channel;
use brine_config::{MinionConfig, Number};
use brine_event::Event;
use brine_ids::Jid;
use brine_runtime::executors::Executors;
use brine_value::{Map, Value, map};
use brine_zmtp::Push;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::record::{Kind, Record};
use super::web;
use super::world::{DAEMON, MINION, World, run};
use crate::support::stdout;

/// The simulated minion that sends returns.
pub const RETURNER: &str = "returner";
/// Pause after a failure, so that an absent master does not make the load spin.
const PAUSE: Duration = Duration::from_millis(20);

pub struct Load {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Load {
    /// Starts all parts, once each has its session.
    pub async fn start(world: &World, record: &Arc<Record>) -> Result<Self, String> {
        let mut load = Load { tasks: JoinSet::new(), stop: CancellationToken::new() };
        for (id, cipher, tag, kind, pause) in [
            ("gcm", "aes-256-gcm", "event", None, 2),
            ("cbc", "aes-192-cbc-hmac", "event", None, 2),
            ("runner", "aes-256-gcm", "runner", Some(Kind::RunnerReaction), 25),
            ("local", "aes-256-gcm", "local", Some(Kind::LocalReaction), 100),
        ] {
            let channel = join(world, id, cipher).await?;
            let pause = Duration::from_millis(pause);
            load.spawn(publish(channel, Arc::clone(record), tag, kind, pause));
        }
        let channel = join(world, RETURNER, "aes-256-gcm").await?;
        load.spawn(send_returns(channel, Arc::clone(record)));
        load.spawn(push(world.pull_endpoint(), Arc::clone(record)));
        load.spawn(web::hooks(world.api_port, Arc::clone(record)));
        load.spawn(web::follow(world.api_port, Arc::clone(record)));
        load.spawn_jobs(world, Arc::clone(record));
        Ok(load)
    }

    fn spawn(&mut self, part: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(part).await;
        });
    }

    /// Publishes jobs in sequence. A started command is awaited, because its job may be published.
    fn spawn_jobs(&mut self, world: &World, record: Arc<Record>) {
        let (root, stop) = (world.path(""), self.stop.clone());
        let etc = world.system.etc();
        self.tasks.spawn(async move {
            while !stop.is_cancelled() {
                publish_job(&etc, &root, &record).await;
                stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(100))).await;
            }
        });
    }

    /// Stops all parts. Unanswered items are not acknowledged.
    pub async fn stop(mut self) -> Result<(), String> {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.map_err(|error| format!("a part of the load panicked: {error}"))?;
        }
        Ok(())
    }
}

/// Begins the session of a simulated minion.
pub async fn join(world: &World, id: &str, cipher: &str) -> Result<Arc<Channel>, String> {
    let config = MinionConfig {
        pki_dir: world.path(id),
        master_port: world.requests.port,
        ciphers: vec![cipher.to_owned()],
        request_timeout: Number::of(8),
        auth_timeout: Number::of(8),
        ..MinionConfig::default()
    };
    let channel = Channel::new(id.parse().unwrap(), Arc::new(config), "127.0.0.1", Executors::new(1).crypto);
    let channel = Arc::new(channel.map_err(|error| error.to_string())?);
    let joining = async {
        while channel.authenticate().await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    let joined = tokio::time::timeout(DAEMON, joining).await;
    joined.map_err(|_| format!("{id} could not authenticate within {} s", DAEMON.as_secs()))?;
    Ok(channel)
}

/// Whether the master has acknowledged a request; any other answer counts as a refusal.
async fn acknowledged(channel: &Arc<Channel>, load: Map, record: &Record) -> bool {
    match channel.request(load).await {
        Ok(Value::Bool(true)) => return true,
        Ok(_) => record.refuse(),
        Err(_) => {}
    }
    tokio::time::sleep(PAUSE).await;
    false
}

async fn publish(
    channel: Arc<Channel>,
    record: Arc<Record>,
    tag: &'static str,
    reaction: Option<Kind>,
    pause: Duration,
) {
    loop {
        let number = record.number();
        let load = map! {
            "cmd" => "_minion_event", "tag" => format!("fault/{tag}/{number}"),
            "data" => map! {"number" => number}, "pretag" => Value::Nil,
        };
        if acknowledged(&channel, load, &record).await {
            record.acknowledge(Kind::Event, number);
            if let Some(reaction) = reaction {
                record.acknowledge(reaction, number);
            }
        }
        tokio::time::sleep(pause).await;
    }
}

async fn send_returns(channel: Arc<Channel>, record: Arc<Record>) {
    loop {
        let number = record.number();
        let load = map! {
            "cmd" => "_return", "jid" => &Jid::new(), "fun" => "test.arg", "fun_args" => Value::List(vec![]),
            "return" => number, "retcode" => 0, "success" => true,
        };
        if acknowledged(&channel, load, &record).await {
            record.acknowledge(Kind::Return, number);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn push(endpoint: brine_zmtp::Endpoint, record: Arc<Record>) {
    let mut open: Option<Push> = None;
    loop {
        let Some(push) = &mut open else {
            open = Push::connect(&endpoint).await.ok();
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let number = record.number();
        let event = Event::from_map(&format!("fault/push/{number}"), &map! {"number" => number}).unwrap();
        match push.send(event.frame()).await {
            Ok(()) => record.acknowledge(Kind::Push, number),
            Err(_) => open = None,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn publish_job(etc: &str, root: &std::path::Path, record: &Record) {
    let number = record.number();
    let line = format!("echo {number} $(date +%s%N) >> {}", root.join("jobs").display());
    let mut command = crate::support::within_limit(&super::world::binary());
    command.args(["salt", "-c", etc, "--async", MINION, "cmd.run", &line]).stdin(std::process::Stdio::null());
    let output = run(command).await;
    if output.status.success() && stdout(&output).contains("job ID") {
        record.acknowledge(Kind::Job, number);
    }
}

/// Returns the numbers in a file of jobs, each with the times (milliseconds since 1970) at which its job ran.
pub fn ran(file: &PathBuf) -> std::collections::HashMap<u64, Vec<u64>> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut seen: std::collections::HashMap<u64, Vec<u64>> = std::collections::HashMap::new();
    for line in text.lines() {
        if let Some((number, nanos)) = line.split_once(' ')
            && let (Ok(number), Ok(nanos)) = (number.parse(), nanos.parse::<u64>())
        {
            seen.entry(number).or_default().push(nanos / 1_000_000);
        }
    }
    seen
}

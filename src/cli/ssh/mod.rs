//! `salt-ssh`: calls functions on hosts by ssh, without minions and without a running master.

mod arguments;
mod deploy;
mod plan;
pub(super) mod runner;

use std::collections::HashMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use brine_client::MasterClient;
use brine_config::MasterConfig;
use brine_context::Mask;
use brine_event::Event;
use brine_function::Args;
use brine_ids::{Jid, MinionId};
use brine_job::plan::Groups;
use brine_runtime::executors::Executor;
use brine_ssh::askpass::{self, AskPass};
use brine_ssh::roster::direct::{self, Found};
use brine_ssh::roster::{RosterHost, RosterOptions};
use brine_ssh::{Call, Caller, MasterData, MasterMine, Mine, Multiplexing, Programs, Reply};
use brine_target::TargetKind;
use brine_text::nearest::nearest;
use brine_value::{Map, Value, map};
use clap::CommandFactory;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::arguments::Arguments;
use self::plan::{Planning, applying, planned};
use super::client;
use super::common::{ResultPrinter, mask};
use super::host::MasterHost;
use super::plan_file;
use super::runtime;
use super::salt::wire_args;
use super::usage;
use crate::ui::{print_plain, print_plain_error};

const NAME: &str = "salt-ssh";
pub const USAGE: &str = "salt-ssh [options] '<target>' <function> [arguments]";
/// The exit status after SIGTERM or SIGINT.
const TERMINATED: u8 = 143;
/// The time for calls to end at the exit.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Salt's exit status if a host of several failed.
const ONE_FAILED: u8 = 20;
/// The number of requests from hosts that are served at the same time, and of those that may wait.
const REQUEST_LIMITS: (usize, usize) = (8, 10_000);

/// Acts as the program on a host, or as the askpass program of `ssh`, if the command line selects one of them.
pub(super) fn intercept(words: &[OsString]) -> Option<ExitCode> {
    let called = std::path::Path::new(words.first()?).file_name()?;
    if called == askpass::NAME {
        let prompt = words.get(1).map(|word| word.to_string_lossy()).unwrap_or_default();
        return Some(ExitCode::from(askpass::answer(&prompt)));
    }
    if words.get(1).is_some_and(|word| word == brine_ssh_host::COMMAND) && words.len() == 2 {
        return Some(match brine_ssh_host::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                print_plain_error(format_args!("{}: {error}", brine_ssh_host::COMMAND));
                ExitCode::FAILURE
            }
        });
    }
    None
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    if let Err(message) = arguments.target.check_with(arguments.range.then_some(TargetKind::Range)) {
        return Ok(usage::error(NAME, USAGE, &message));
    }
    let applied = arguments.apply.as_deref().map(plan_file::read).transpose()?;
    if applied.as_ref().is_some_and(|plan| plan.minions().is_empty()) {
        print_plain_error("the plan changes nothing: no host is called");
        return Ok(ExitCode::SUCCESS);
    }
    let (target, rest) = match &arguments.words[..] {
        [] if applied.is_some() => (String::new(), Vec::new()),
        _ if applied.is_some() => {
            return Ok(usage::error(NAME, USAGE, "--apply takes target and function from the plan: leave them out"));
        }
        [target, rest @ ..] if !rest.is_empty() || arguments.hosts => (target.clone(), rest.to_vec()),
        [] if arguments.hosts => ("*".to_owned(), Vec::new()),
        _ => return Ok(usage::error(NAME, USAGE, "name a target and a function, such as: salt-ssh '*' test.ping")),
    };
    let config = Arc::new(arguments.common.start_ssh()?);
    let password = match (&arguments.ssh.passwd, arguments.ssh.askpass) {
        (Some(password), _) => Some(password.clone()),
        (None, true) => Some(rpassword::prompt_password("Password: ")?),
        (None, false) => None,
    };
    let runtime = runtime::multi_thread(Some(2))?;
    let mut options = arguments.roster_options(&config, password, arguments.common.config_file("roster"));
    if options.roster == "cache" {
        options.cached = runtime::block_on(&runtime, cached(&config))?;
    }
    let master_data = Arc::new(MasterData::open(Arc::clone(&config), Arc::new(MasterHost::new(&config)))?);
    let (tgt, kind) = if let Some(plan) = &applied {
        (plan.minions().into(), TargetKind::List.to_string())
    } else if arguments.range {
        (Value::from(target.as_str()), TargetKind::Range.to_string())
    } else {
        arguments.target.read(&target)
    };
    let functions = master_data.functions(None);
    let mut hosts = match direct::hosts(&options, &tgt, kind.parse()?, &functions)? {
        Found::Known(hosts) => hosts,
        Found::New(id, host) => {
            if arguments.update_roster || config.ssh_update_roster {
                direct::add(&options, &id, &host, &functions)?;
            }
            IndexMap::from([(id, *host)])
        }
    };
    if arguments.hosts && !hosts.is_empty() {
        hosts.keys().for_each(|id| print_plain(format_args!("{id}: {}", hosts[id].host)));
        return Ok(ExitCode::SUCCESS);
    }
    if hosts.is_empty() {
        print_plain_error(format_args!(
            "No hosts found with target {target} of type {kind} in {}",
            options.file.display()
        ));
        if kind == TargetKind::Glob.name() {
            let all = direct::hosts(&options, &Value::from("*"), TargetKind::Glob, &functions);
            let ids: Vec<String> = match all {
                Ok(Found::Known(hosts)) => hosts.into_keys().map(|id| id.to_string()).collect(),
                _ => Vec::new(),
            };
            if let Some(near) = nearest(&target, ids) {
                print_plain_error(format_args!("'{target}' matches no host: did you mean '{near}'?"));
            }
        }
        // Salt's `--hosts` succeeds.
        let is_list = arguments.hosts && config.salt_exit_status;
        return Ok(if is_list { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if let Some(plan) = &applied {
        for id in plan.minions().iter().filter(|id| !hosts.keys().any(|host| host.as_str() == id.as_str())) {
            print_plain_error(format_args!(
                "{id}: no host in {} has this id: nothing is applied there",
                options.file.display()
            ));
        }
    }
    if arguments.rand_thin_dir {
        let directory = format!("/tmp/.brine-{:016x}", rand::random::<u64>());
        hosts.values_mut().for_each(|host| host.thin_dir = Some(directory.clone()));
    }
    let jid = match &arguments.jid {
        Some(jid) => jid.parse()?,
        None => Jid::new(),
    };
    if arguments.verbose {
        let line = format!("Executing job with jid {jid}");
        print_plain(format_args!("{line}\n{}\n", "-".repeat(line.len())));
    }
    let (call, planning) = match (&applied, &arguments.plan) {
        (Some(plan), _) => (applying(plan, &jid, &config), None),
        (None, Some(path)) => {
            let (call, job) = planned(called(&arguments, &config, &jid, &rest), &tgt, &kind)?;
            (call, Some(Planning { job, path: path.clone() }))
        }
        (None, None) => (called(&arguments, &config, &jid, &rest), None),
    };
    let within = runtime.enter();
    // Before the caller, whose directories are removed at the end.
    let ended = terminated()?;
    let caller = Arc::new(caller(&arguments, &config, master_data, &options)?);
    let (user, at_once, mask) = (client::user(), arguments.at_once(&config), mask(&config)?);
    let run = Run { config: &config, jid, call, caller, user, at_once, mask, planning };
    let printer = arguments.output.printer(&config.opts)?;
    let key = if arguments.ssh.key_deploy { Some(deploy::public_key(&options)?) } else { None };
    let status = runtime::block_on(&runtime, async {
        tokio::select! {
            status = run.show(hosts, key, arguments.fixed, printer) => status.map(Some),
            () = ended => Ok(None),
        }
    });
    drop(within);
    // A request that still blocks must not delay the exit. The calls are dropped, and each kills its `ssh`.
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    Ok(status?.unwrap_or(ExitCode::from(TERMINATED)))
}

/// Returns a future that ends when a signal asks the process to end.
fn terminated() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Creates the caller, with the state that the calls of all hosts share.
fn caller(
    arguments: &Arguments,
    config: &Arc<MasterConfig>,
    master_data: Arc<MasterData>,
    options: &RosterOptions,
) -> anyhow::Result<Caller> {
    let own = std::env::current_exe()?;
    Ok(Caller {
        master_data,
        programs: Programs::read(&config.ssh_program_dir, &own)?,
        options: arguments.ssh_options(config),
        askpass: AskPass::new(&own)?,
        ssh: "ssh".to_owned(),
        wipe: arguments.wipe || arguments.rand_thin_dir || config.ssh_wipe,
        always_pre_flight: arguments.pre_flight || config.ssh_run_pre_flight,
        blocking: Executor::new("ssh answers", REQUEST_LIMITS.0, REQUEST_LIMITS.1),
        mine: Some(Mine {
            roster: options.clone(),
            master: master_mine(Arc::clone(config)),
            concurrency: arguments.at_once(config),
            results: Mutex::default(),
        }),
        multiplexing: Multiplexing::new(config.ssh_control_persist).unwrap_or_else(|error| {
            tracing::warn!(%error, "ssh connections are not multiplexed");
            None
        }),
        total_timeout: Some(config.ssh_call_timeout).filter(|seconds| *seconds > 0).map(Duration::from_secs),
    })
}

/// Returns the call to make on the hosts.
fn called(arguments: &Arguments, config: &MasterConfig, jid: &Jid, rest: &[String]) -> Call {
    if arguments.raw {
        return Call::Raw(rest.join(" "));
    }
    let no_parse: Vec<String> =
        arguments.no_parse.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect();
    Call::Function {
        fun: rest.first().cloned().unwrap_or_default(),
        args: wire_args(rest.get(1..).unwrap_or_default(), &no_parse),
        jid: jid.to_string(),
        opts: Arguments::minion_opts(config),
    }
}

/// Returns the grains of the minions that the running master knows.
async fn cached(config: &MasterConfig) -> anyhow::Result<HashMap<String, Map>> {
    let client = client::MasterClient::new(config)?;
    let grains = client.ask_runner("cache.grains", Args::from_wire(&["*".into()])).await?;
    let all = grains.as_map().cloned().unwrap_or_default();
    Ok(all.into_iter().filter_map(|(id, grains)| Some((id.to_string(), grains.as_map()?.clone()))).collect())
}

/// Returns the function that reads the mine of the running master.
fn master_mine(config: Arc<MasterConfig>) -> MasterMine {
    Box::new(move |query: Map| {
        let config = Arc::clone(&config);
        Box::pin(async move {
            let asked = async {
                let client = client::MasterClient::new(&config)?;
                client.ask_runner("mine.get", Args { positional: Vec::new(), keyword: query }).await
            };
            match asked.await {
                Ok(mine) => mine.as_map().cloned().unwrap_or_default(),
                Err(error) => {
                    tracing::error!(%error, "reading the mine of the master failed");
                    Map::new()
                }
            }
        })
    })
}

/// One call of several hosts.
struct Run<'a> {
    config: &'a MasterConfig,
    jid: Jid,
    call: Call,
    caller: Arc<Caller>,
    /// The user in whose name returns are published.
    user: String,
    /// The number of hosts that are called at the same time.
    at_once: usize,
    mask: Mask,
    /// The plan that is made.
    planning: Option<Planning>,
}

impl Run<'_> {
    /// Calls all hosts, some at a time, publishes their returns and passes them on as they arrive. A public key is
    /// installed first.
    async fn each(
        &self,
        hosts: IndexMap<MinionId, RosterHost>,
        key: Option<String>,
        mut on_reply: impl FnMut(&MinionId, Reply) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let room = Arc::new(Semaphore::new(self.at_once));
        let mut running = JoinSet::new();
        for (id, host) in hosts {
            let (caller, room, call, key) =
                (Arc::clone(&self.caller), Arc::clone(&room), self.call.clone(), key.clone());
            running.spawn(async move {
                let _permit = room.acquire_owned().await;
                if let Some(key) = key {
                    deploy::install(&caller, &id, &host, &key).await;
                }
                let reply = caller.call(&id, &host, &call).await;
                (id, reply)
            });
        }
        let master = MasterClient::new(self.config);
        while let Some(ended) = running.join_next().await {
            let (id, reply) = ended?;
            self.publish(&master, &id, &reply).await;
            on_reply(&id, reply)?;
        }
        Ok(())
    }

    /// Calls all hosts and shows their results as they arrive, or together at the end.
    async fn show(
        &self,
        hosts: IndexMap<MinionId, RosterHost>,
        key: Option<String>,
        together: bool,
        mut printer: ResultPrinter,
    ) -> anyhow::Result<ExitCode> {
        let mut failed = false;
        let mut gathered = Map::new();
        let mut hint = "nested".to_owned();
        let mut groups = Groups::default();
        let all = self.each(hosts, key, |id, reply| {
            failed |= reply.retcode != 0;
            let Reply { value, retcode, out } = reply;
            if let Some(advice) = host_key_advice(&value) {
                print_plain_error(format_args!("{id}: {advice}"));
            }
            if self.planning.is_some() {
                groups.add(id.as_str(), &shown(value), self.jid.as_str());
                return Ok(());
            }
            if together {
                if let Some(out) = out {
                    hint = out;
                }
                gathered.insert(id.as_str().into(), shown(value));
                return Ok(());
            }
            printer.set_retcode(retcode);
            printer.show(&map! {id.as_str() => shown(value)}.into(), out.as_deref().unwrap_or("nested"))
        });
        all.await?;
        if let Some(planning) = &self.planning {
            failed |= groups.has_failures();
            planning.finish(&groups, printer)?;
        } else if together {
            printer.show(&gathered.into(), &hint)?;
        }
        Ok(if failed { ExitCode::from(ONE_FAILED) } else { ExitCode::SUCCESS })
    }

    /// Returns the function and its arguments as returns name them: with masked secrets.
    fn named(&self) -> (&str, Vec<Value>) {
        match &self.call {
            Call::Function { fun, args, .. } => {
                (fun.as_str(), self.mask.arguments(fun, args).unwrap_or_else(|| args.clone()))
            }
            Call::Mine { fun, .. } => (fun.as_str(), Vec::new()),
            Call::Raw(command) => ("ssh.raw", vec![command.as_str().into()]),
        }
    }

    /// Publishes a return on the bus of the master of this host, if one runs: as in Salt it is in the job cache then.
    async fn publish(&self, master: &MasterClient, id: &MinionId, reply: &Reply) {
        if !self.config.sock_dir.join("master_event_pull.ipc").exists() {
            return;
        }
        let (fun, args) = self.named();
        let data = map! {
            "jid" => &self.jid,
            "id" => id,
            "fun" => fun,
            "fun_args" => args.clone(),
            "arg" => args,
            "tgt" => id,
            "tgt_type" => "glob",
            "user" => self.user.as_str(),
            "return" => reply.value.clone(),
            "retcode" => reply.retcode,
            "success" => reply.retcode == 0,
        };
        let fired = match Event::from_map(&format!("salt/job/{}/ret/{id}", self.jid), &data) {
            Ok(event) => master.fire(&event).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = fired {
            tracing::warn!(host = %id, error, "publishing the return of a host failed");
        }
    }
}

/// Returns what to do if `ssh` has refused the key of a host.
fn host_key_advice(value: &Value) -> Option<&'static str> {
    let message = value.get("stderr").and_then(Value::as_str)?;
    if message.contains("HOST IDENTIFICATION HAS CHANGED") {
        return Some(
            "its key is not the one in known_hosts: this may be a man in the middle; only if the host was reinstalled, \
             remove the old key with ssh-keygen -R",
        );
    }
    message.contains("Host key verification failed").then_some(
        "its key is not in known_hosts: log in once with ssh and compare the fingerprint, or accept any key with -i \
         (--ignore-host-keys)",
    )
}

/// Returns a result as Salt shows it: of a failed login only the message.
fn shown(value: Value) -> Value {
    let message = value.get("stderr").and_then(Value::as_str).filter(|_| value.get("stdout").is_some());
    match message {
        Some(text) if text.starts_with("ssh:") || text.contains("Permission denied") => text.into(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_host_keys_are_explained() {
        let advice =
            |stderr: &str| host_key_advice(&map! {"stderr" => stderr, "stdout" => "", "retcode" => 255}.into());
        assert!(advice("Host key verification failed.\r\n").unwrap().contains("accept any key with -i"));
        let changed = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n";
        assert!(advice(changed).unwrap().contains("ssh-keygen -R"));
        assert_eq!(advice("Permission denied (publickey)."), None);
        assert_eq!(host_key_advice(&true.into()), None);
    }
}

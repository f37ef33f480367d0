//! One call on one host: starts `ssh` and with it the program, and answers the requests of the host until the result
//! arrives.

use std::sync::Arc;
use std::time::Duration;

use brine_ids::MinionId;
use brine_runtime::executors::Executor;
use brine_ssh_host::frame;
use brine_value::{FromValue, Map, Value, map};
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};

use crate::askpass::{Answering, AskPass};
use crate::child::{Ssh, Timed};
use crate::command::{self, Options};
use crate::master_data::MasterData;
use crate::mine::{Mine, MineHosts};
use crate::multiplexing::{self, Multiplexing};
use crate::program::Programs;
use crate::roster::{self, RosterHost, RosterOptions};

/// The maximum number of bytes of the output of `ssh` and the login that are kept.
pub(crate) const MAX_LOGIN_OUTPUT: usize = 64 << 10;
/// The maximum size of each output stream of a raw command, in bytes.
const MAX_OUTPUT: usize = 64 << 20;
/// The retcode of an unreachable host, equal to the exit status of `ssh`.
const UNREACHABLE: i64 = 255;

/// The maximum size of an `ssh_pre_flight` script, in bytes.
const MAX_SCRIPT: u64 = 16 << 20;

/// The time that a login may take in addition to connecting.
const LOGIN_TIME: Duration = Duration::from_secs(10);
/// The number of times that the host may be silent for the longest time before the program starts.
const LOGIN_SILENCES: u32 = 5;
/// The time that the host has to remove the program after a call.
const WIPE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of messages of a host in one call: its requests, and those that only show that it is there.
const MAX_MESSAGES: usize = 1_000_000;

/// An operation on a host.
#[derive(Debug, Clone)]
pub enum Call {
    /// An execution function.
    Function {
        /// Its name.
        fun: String,
        /// Its arguments, in their wire format.
        args: Vec<Value>,
        /// The jid.
        jid: String,
        /// Options of the minion that runs it.
        opts: Map,
    },
    /// A function among the host's `mine_functions`, for `mine.get` of another host.
    Mine {
        /// Its name.
        fun: String,
        /// Options of the minion that runs it.
        opts: Map,
    },
    /// A raw shell command on the host (`-r`).
    Raw(String),
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The return of the function, or `retcode`, `stdout` and `stderr` of `ssh`.
    pub value: Value,
    /// 0 for success.
    pub retcode: i64,
    /// The outputter that the function requests.
    pub out: Option<String>,
}

/// Runs calls on hosts.
pub struct Caller {
    /// The source of files, pillars and options that hosts request.
    pub master_data: Arc<MasterData>,
    /// The programs that are pushed.
    pub programs: Programs,
    /// The settings that apply to all hosts.
    pub options: Options,
    /// The askpass link for passwords.
    pub askpass: AskPass,
    /// The name or path of the program `ssh`.
    pub ssh: String,
    /// Whether the program and its cache are removed from the host after the call.
    pub wipe: bool,
    /// Whether `ssh_pre_flight` runs even if the directory of the program exists.
    pub always_pre_flight: bool,
    /// The executor for requests that access the disk or render pillars.
    pub blocking: Executor,
    /// The sources of data for `mine.get`.
    pub mine: Option<Mine>,
    /// The settings of shared connections.
    pub multiplexing: Option<Multiplexing>,
    /// The time that the call of a host may take in all.
    pub total_timeout: Option<Duration>,
}

/// The reason why a call has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// `ssh` has exited; the value is its output so far.
    Ended(Vec<u8>),
    /// The host has sent invalid data, or cannot run the program.
    Host(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::BrokenPipe => Failure::Ended(Vec::new()),
            std::io::ErrorKind::TimedOut => {
                Failure::Host(format!("the host does not answer: {error} (--timeout, ssh_timeout)"))
            }
            _ => Failure::Host(format!("the host sent an invalid message: {error}")),
        }
    }
}

impl Caller {
    /// Runs a call on a host.
    pub fn call<'a>(&'a self, id: &'a MinionId, host: &'a RosterHost, call: &'a Call) -> BoxFuture<'a, Reply> {
        // Boxed, because the code of a future is compiled by the crate that polls it.
        Box::pin(async move {
            let Some(time) = self.total_timeout else { return self.call_again_if_lost(id, host, call).await };
            // Dropping the call kills its `ssh`.
            tokio::time::timeout(time, self.call_again_if_lost(id, host, call)).await.unwrap_or_else(|_| {
                tracing::warn!(host = %id, seconds = time.as_secs(), "a call by ssh was ended: it takes too long");
                let message = format!("the call was ended: it has taken {} seconds (ssh_call_timeout)", time.as_secs());
                failed(UNREACHABLE, "", &message)
            })
        })
    }

    async fn call_again_if_lost(&self, id: &MinionId, host: &RosterHost, call: &Call) -> Reply {
        if let Call::Raw(command) = call {
            return self.run(host, &command::raw(host, command), &[]).await;
        }
        if let Err(reply) = self.prepare(host).await {
            return reply;
        }
        match self.attempt(id, host, call, self.multiplexing.as_ref()).await {
            Ok(reply) => reply,
            // The shared connection was lost before the function was called, so it is safe to retry.
            Err(_) => self.attempt(id, host, call, None).await.unwrap_or_else(|reply| reply),
        }
    }

    /// Makes one attempt at a call. Returns the reply as an error if a shared connection was broken before the program
    /// started.
    async fn attempt(
        &self,
        id: &MinionId,
        host: &RosterHost,
        call: &Call,
        shared: Option<&Multiplexing>,
    ) -> Result<Reply, Reply> {
        let token = format!("brine-{:016x}", rand::random::<u64>());
        let line = command::start(host, &self.programs, &token, self.wipe);
        let silence = self.silence(host);
        let (ssh, mut stdin, stdout) = match self.begin(host, &line, MAX_LOGIN_OUTPUT, shared, Some(silence)).await {
            Ok(begun) => begun,
            Err(reply) => return Ok(reply),
        };
        let mut stdout = BufReader::new(stdout);
        let started = self.start(&token, &mut stdin, &mut stdout, silence * LOGIN_SILENCES).await;
        let has_started = started.is_ok();
        let exchanged = match started {
            Ok(()) => self.exchange(id, host, call, stdin, stdout).await,
            Err(failure) => Err(failure),
        };
        match exchanged {
            Ok(reply) => {
                ssh.close().await;
                Ok(reply)
            }
            Err(Failure::Ended(output)) => {
                let (code, errors) = ssh.end().await;
                let code = code.filter(|code| *code != 0).unwrap_or(UNREACHABLE);
                let reply = failed(code, &String::from_utf8_lossy(&output), &errors);
                let is_broken = shared.is_some() && !has_started && multiplexing::is_broken(&errors);
                if is_broken { Err(reply) } else { Ok(reply) }
            }
            Err(Failure::Host(message)) => {
                let errors = ssh.abort().await;
                tracing::warn!(host = %id, message, "a call by ssh was ended");
                Ok(failed(UNREACHABLE, "", &[message.as_str(), errors.as_str()].join("\n")))
            }
        }
    }

    /// Returns the time for which a host may be silent: that for connecting, and some for the login. While a function
    /// runs, the program on the host sends messages at a shorter interval.
    fn silence(&self, host: &RosterHost) -> Duration {
        Duration::from_secs(host.timeout.unwrap_or(self.options.connect_timeout)) + LOGIN_TIME
    }

    /// Runs the preparation steps of the roster: `ssh_pre_hook`, and `ssh_pre_flight` on a host without the directory
    /// of the program. Returns the reply of a failed step as an error.
    async fn prepare(&self, host: &RosterHost) -> Result<(), Reply> {
        if host.pre_hook.is_none() && host.pre_flight.is_none() {
            return Ok(());
        }
        // Without a terminal, which would not pass on the end of input that ends a script.
        let host = &RosterHost { tty: false, ..host.clone() };
        if let Some(hook) = &host.pre_hook {
            succeeded(self.run(host, hook, &[]).await)?;
        }
        let Some(path) = &host.pre_flight else { return Ok(()) };
        let read = async {
            let mut script = Vec::new();
            let file = tokio::fs::File::open(path).await?;
            file.take(MAX_SCRIPT + 1).read_to_end(&mut script).await?;
            if script.len() as u64 > MAX_SCRIPT {
                return Err(std::io::Error::other(format!("it is larger than {} MiB", MAX_SCRIPT >> 20)));
            }
            Ok(script)
        };
        match read.await {
            Ok(script) => {
                let line = command::pre_flight(host, self.always_pre_flight);
                succeeded(self.run(host, &line, &script).await)
            }
            // As in Salt, the call continues without it.
            Err(error) => {
                tracing::error!(script = %path.display(), %error, "reading the ssh_pre_flight script failed");
                Ok(())
            }
        }
    }

    /// Runs a command line in the host's shell with `input` on its stdin, and returns its output.
    async fn run(&self, host: &RosterHost, line: &str, input: &[u8]) -> Reply {
        // A command may be silent for as long as it runs.
        let begun = self.begin(host, line, MAX_OUTPUT, self.multiplexing.as_ref(), None).await;
        let (ssh, mut stdin, stdout) = match begun {
            Ok(begun) => begun,
            Err(reply) => return reply,
        };
        let feed = async {
            // The command may exit without reading its input.
            _ = stdin.write_all(input).await;
            drop(stdin);
        };
        let read = async {
            let mut output = Vec::new();
            _ = stdout.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut output).await;
            output
        };
        let feeding = async {
            feed.await;
            std::future::pending::<()>().await;
        };
        // A host that has ended its output need not read the rest.
        let mut output = tokio::select! {
            output = read => output,
            () = feeding => Vec::new(),
        };
        let is_too_large = output.len() > MAX_OUTPUT;
        output.truncate(MAX_OUTPUT);
        let (code, mut errors) = if is_too_large { (None, ssh.abort().await) } else { ssh.end().await };
        if is_too_large {
            errors = format!("the command was ended: its output exceeds {} MiB\n{errors}", MAX_OUTPUT >> 20);
        }
        failed(code.unwrap_or(UNREACHABLE), &String::from_utf8_lossy(&output), &errors)
    }

    /// Starts `ssh`, and a task that reads up to `limit` bytes of its stderr.
    async fn begin(
        &self,
        host: &RosterHost,
        line: &str,
        limit: usize,
        shared: Option<&Multiplexing>,
        silence: Option<Duration>,
    ) -> Result<(Ssh, Timed<ChildStdin>, Timed<ChildStdout>), Reply> {
        let started = self.command(host, line, shared).await.and_then(|(mut command, answering)| {
            let (mut ssh, stdin, stdout) = Ssh::start(&mut command, limit, silence)?;
            if let Some(answering) = answering {
                ssh.answer_by(answering);
            }
            Ok((ssh, stdin, stdout))
        });
        started.map_err(|error| failed(UNREACHABLE, "", &format!("starting '{}' failed: {error}", self.ssh)))
    }

    /// Returns the command that starts `ssh`, and the socket that answers it with the password of the host.
    async fn command(
        &self,
        host: &RosterHost,
        line: &str,
        shared: Option<&Multiplexing>,
    ) -> std::io::Result<(Command, Option<Answering>)> {
        let password = host.passwd.as_ref().or(host.priv_passwd.as_ref());
        // A call with a wrong password must not use a connection that was opened with the right one. A shared
        // connection would also keep its own terminal settings.
        let config = match shared.filter(|_| password.is_none() && !host.tty) {
            Some(shared) => Some(shared.configuration(host, &self.options).await?),
            None => None,
        };
        let config = config.as_ref().map(|path| path.to_string_lossy());
        let mut command = Command::new(&self.ssh);
        command.args(command::arguments(host, &self.options, config.as_deref(), line));
        let answering = password.map(|password| self.askpass.answering(password)).transpose()?;
        if let Some(answering) = &answering {
            command.envs(answering.environment());
        }
        Ok((command, answering))
    }

    async fn exchange(
        &self,
        id: &MinionId,
        host: &RosterHost,
        call: &Call,
        mut stdin: Timed<ChildStdin>,
        mut stdout: BufReader<Timed<ChildStdout>>,
    ) -> Result<Reply, Failure> {
        let (mut request, mut opts) = match call {
            Call::Function { fun, args, jid, opts } => {
                (map! {"fun" => fun.as_str(), "arg" => args.clone(), "jid" => jid.as_str()}, opts.clone())
            }
            Call::Mine { fun, opts } => {
                (map! {"fun" => fun.as_str(), "mine" => host.mine_functions.clone()}, opts.clone())
            }
            Call::Raw(_) => return Err(Failure::Host("no function".to_owned())),
        };
        opts.extend(host.minion_opts.clone());
        let data = Arc::clone(&self.master_data);
        let modules = self.blocking.run(move |_| data.modules().clone()).await;
        let modules = modules.map_err(|error| Failure::Host(error.to_string()))?;
        request.extend(map! {"id" => id, "opts" => opts, "grains" => host.grains.clone(), "modules" => modules});
        frame::send(&mut stdin, &request).await?;
        for _ in 0..MAX_MESSAGES {
            let mut message = frame::receive(&mut stdout).await?;
            if message.contains_key(frame::ALIVE) {
                continue;
            }
            let Some(Value::Map(load)) = message.shift_remove("ask") else {
                let retcode = message.get("retcode").and_then(i64::from_value).unwrap_or(UNREACHABLE);
                let out = message.get("out").and_then(Value::as_str).map(str::to_owned);
                let value = message.shift_remove("return").unwrap_or_default();
                // With `wipe` the host removes the program when its input is closed.
                drop(stdin);
                if self.wipe {
                    let mut rest = stdout.take(MAX_LOGIN_OUTPUT as u64);
                    _ = tokio::time::timeout(WIPE_TIMEOUT, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
                }
                return Ok(Reply { value, retcode, out });
            };
            if load.get("cmd").and_then(Value::as_str) == Some("_mine_get") {
                // A mine function must not request mine data of other hosts.
                let answer = match (call, &self.mine) {
                    (Call::Function { opts, .. }, Some(mine)) => mine.get(self, id, opts, &load).await,
                    _ => Map::new(),
                };
                frame::send(&mut stdin, &map! {"answer" => answer}).await?;
                continue;
            }
            let (master_data, id) = (Arc::clone(&self.master_data), id.clone());
            let answer = self.blocking.run(move |_| master_data.answer(&id, load)).await.unwrap_or_else(|error| {
                tracing::error!(%error, "answering a host failed");
                Value::Nil
            });
            frame::send(&mut stdin, &map! {"answer" => answer}).await?;
        }
        Err(Failure::Host(format!("the host has sent more than {MAX_MESSAGES} messages")))
    }
}

impl MineHosts for Caller {
    fn matching<'a>(
        &'a self,
        roster: &'a RosterOptions,
        tgt: Value,
        tgt_type: String,
    ) -> BoxFuture<'a, Result<Vec<(MinionId, RosterHost)>, String>> {
        let (options, master_data) = (roster.clone(), Arc::clone(&self.master_data));
        Box::pin(async move {
            let hosts = self.blocking.run(move |_| {
                let kind = tgt_type.parse().map_err(|error: brine_target::TargetError| error.to_string())?;
                roster::hosts(&options, &tgt, kind, &master_data.functions(None)).map_err(|error| error.to_string())
            });
            Ok(hosts.await.map_err(|error| error.to_string())??.into_iter().collect())
        })
    }

    fn call_function<'a>(
        &'a self,
        id: &'a MinionId,
        host: &'a RosterHost,
        fun: &'a str,
        opts: &'a Map,
    ) -> BoxFuture<'a, Result<Value, Value>> {
        Box::pin(async move {
            let call = Call::Mine { fun: fun.to_owned(), opts: opts.clone() };
            let reply = self.call(id, host, &call).await;
            if reply.retcode == 0 { Ok(reply.value) } else { Err(reply.value) }
        })
    }
}

/// Returns the outcome of `ssh` itself, in Salt's form.
fn failed(retcode: i64, stdout: &str, stderr: &str) -> Reply {
    let value = map! {"retcode" => retcode, "stderr" => stderr.trim_end(), "stdout" => stdout};
    Reply { value: value.into(), retcode, out: None }
}

/// Converts the reply of a failed command into an error.
fn succeeded(reply: Reply) -> Result<(), Reply> {
    if reply.retcode == 0 { Ok(()) } else { Err(reply) }
}

//! One call on one host: `ssh` is started, the program with it, and requests of the host are answered until its result is
//! there.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use brine_ids::MinionId;
use brine_runtime::executors::Executor;
use brine_ssh_host::frame;
use brine_value::{FromValue, Map, Value, map};
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::askpass::AskPass;
use crate::command::{self, Options};
use crate::master_data::MasterData;
use crate::mine::Mine;
use crate::multiplexing::{self, Multiplexing};
use crate::program::Programs;
use crate::roster::Host;

/// The maximum number of bytes that are kept of what `ssh` and a login print.
pub(crate) const NOISE: usize = 64 << 10;
/// The maximum number of bytes of each output of a raw command.
const OUTPUT: usize = 64 << 20;
/// The status of a host that cannot be reached, as that of `ssh`.
const UNREACHABLE: i64 = 255;

/// The maximum number of bytes of a script (`ssh_pre_flight`).
const SCRIPT: u64 = 16 << 20;

/// The time until the errors of an ended `ssh` are read: a connection that it leaves to later calls may hold them open.
const LAST_ERRORS: Duration = Duration::from_secs(1);

/// A running `ssh`: its streams, and the task that reads its errors.
type Begun = (Child, ChildStdin, ChildStdout, tokio::task::JoinHandle<Vec<u8>>);

/// What is done on a host.
#[derive(Debug, Clone)]
pub enum Call {
    /// An execution function.
    Function {
        /// Its name.
        fun: String,
        /// Its arguments, in their wire format.
        args: Vec<Value>,
        /// The job id.
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
    /// A command of the host's shell (`-r`).
    Raw(String),
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The return of the function, or `retcode`, `stdout` and `stderr` of `ssh`.
    pub value: Value,
    /// 0 for success.
    pub retcode: i64,
    /// The outputter of the function.
    pub out: Option<String>,
}

/// Calls hosts.
pub struct Caller {
    /// What hosts ask for.
    pub answers: Arc<MasterData>,
    /// The programs that are pushed.
    pub programs: Programs,
    /// Settings of all hosts.
    pub options: Options,
    /// The link for passwords.
    pub askpass: AskPass,
    /// The program `ssh`.
    pub ssh: String,
    /// Whether the program and its cache are removed from the host afterwards.
    pub wipe: bool,
    /// Whether `ssh_pre_flight` of a host is run although the directory of the program is there.
    pub always_pre_flight: bool,
    /// For requests that block on a disk or render pillars.
    pub blocking: Executor,
    /// Where `mine.get` finds data.
    pub mine: Option<Mine>,
    /// How successive calls share connections.
    pub multiplexing: Option<Multiplexing>,
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// `ssh` ended, with this that was not read.
    Ended(Vec<u8>),
    /// The host has sent what is no message, or says that it cannot run the program.
    Host(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::BrokenPipe => Failure::Ended(Vec::new()),
            _ => Failure::Host(format!("the host has sent what is no message: {error}")),
        }
    }
}

impl Caller {
    /// Calls one host.
    pub fn call<'a>(&'a self, id: &'a MinionId, host: &'a Host, call: &'a Call) -> BoxFuture<'a, Reply> {
        // Boxed, because the code of a future is compiled by the crate that polls it.
        Box::pin(self.call_again_if_lost(id, host, call))
    }

    async fn call_again_if_lost(&self, id: &MinionId, host: &Host, call: &Call) -> Reply {
        if let Call::Raw(command) = call {
            return self.run(host, &command::raw(host, command), &[]).await;
        }
        if let Err(reply) = self.prepare(host).await {
            return reply;
        }
        match self.attempt(id, host, call, self.multiplexing.as_ref()).await {
            Ok(reply) => reply,
            // Nothing has been called yet: the connection was lost since the call that opened it.
            Err(_) => self.attempt(id, host, call, None).await.unwrap_or_else(|reply| reply),
        }
    }

    /// Calls one host once. The error is the reply where a shared connection has broken before the program was started.
    async fn attempt(
        &self,
        id: &MinionId,
        host: &Host,
        call: &Call,
        shared: Option<&Multiplexing>,
    ) -> Result<Reply, Reply> {
        let token = format!("brine-{:016x}", rand::random::<u64>());
        let line = command::start(host, &self.programs, &token, self.wipe);
        let (mut child, mut stdin, stdout, errors) = match self.begin(host, &line, NOISE, shared).await {
            Ok(begun) => begun,
            Err(reply) => return Ok(reply),
        };
        let mut stdout = BufReader::new(stdout);
        let started = self.start(&token, &mut stdin, &mut stdout).await;
        let has_started = started.is_ok();
        let exchanged = match started {
            Ok(()) => self.exchange(id, host, call, stdin, stdout).await,
            Err(failure) => Err(failure),
        };
        match exchanged {
            Ok(reply) => {
                _ = child.start_kill();
                _ = child.wait().await;
                Ok(reply)
            }
            Err(Failure::Ended(output)) => {
                let (code, errors) = end(&mut child, errors).await;
                let code = if code == 0 { UNREACHABLE } else { code };
                let reply = failed(code, &String::from_utf8_lossy(&output), &errors);
                let is_broken = shared.is_some() && !has_started && multiplexing::is_broken(&errors);
                if is_broken { Err(reply) } else { Ok(reply) }
            }
            Err(Failure::Host(message)) => {
                _ = child.start_kill();
                let (_, errors) = end(&mut child, errors).await;
                Ok(failed(UNREACHABLE, "", &[message.as_str(), errors.as_str()].join("\n")))
            }
        }
    }

    /// Runs what the roster wants to be run before the program: `ssh_pre_hook`, and `ssh_pre_flight` on a host without the
    /// directory of the program. The error is what the call has as its result.
    async fn prepare(&self, host: &Host) -> Result<(), Reply> {
        if host.pre_hook.is_none() && host.pre_flight.is_none() {
            return Ok(());
        }
        // The end of a script is that of the input, which a terminal does not pass on.
        let host = &Host { tty: false, ..host.clone() };
        if let Some(hook) = &host.pre_hook {
            succeeded(self.run(host, hook, &[]).await)?;
        }
        let Some(path) = &host.pre_flight else { return Ok(()) };
        let read = async {
            let mut script = Vec::new();
            let file = tokio::fs::File::open(path).await?;
            file.take(SCRIPT + 1).read_to_end(&mut script).await?;
            if script.len() as u64 > SCRIPT {
                return Err(std::io::Error::other(format!("it is larger than {} MiB", SCRIPT >> 20)));
            }
            Ok(script)
        };
        match read.await {
            Ok(script) => {
                let line = command::pre_flight(host, self.always_pre_flight);
                succeeded(self.run(host, &line, &script).await)
            }
            // As in Salt, the call goes on without it.
            Err(error) => {
                tracing::error!(script = %path.display(), %error, "reading the ssh_pre_flight script failed");
                Ok(())
            }
        }
    }

    /// Runs a line of the host's shell with this input, and returns what it printed.
    async fn run(&self, host: &Host, line: &str, input: &[u8]) -> Reply {
        let begun = self.begin(host, line, OUTPUT, self.multiplexing.as_ref()).await;
        let (mut child, mut stdin, stdout, errors) = match begun {
            Ok(begun) => begun,
            Err(reply) => return reply,
        };
        let feed = async {
            // A command may end without reading it.
            _ = stdin.write_all(input).await;
            drop(stdin);
        };
        let (output, ()) = tokio::join!(bounded(stdout, OUTPUT), feed);
        let (code, errors) = end(&mut child, errors).await;
        failed(code, &String::from_utf8_lossy(&output), &errors)
    }

    /// Starts `ssh`, and a task that keeps the first bytes of what it prints as errors.
    async fn begin(
        &self,
        host: &Host,
        line: &str,
        limit: usize,
        shared: Option<&Multiplexing>,
    ) -> Result<Begun, Reply> {
        let mut child = self
            .spawn(host, line, shared)
            .await
            .map_err(|error| failed(UNREACHABLE, "", &format!("starting '{}' failed: {error}", self.ssh)))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(UNREACHABLE, "", "the standard streams of ssh are not there"));
        };
        Ok((child, stdin, stdout, tokio::spawn(bounded(stderr, limit))))
    }

    async fn spawn(&self, host: &Host, line: &str, shared: Option<&Multiplexing>) -> std::io::Result<Child> {
        let password = host.passwd.as_ref().or(host.priv_passwd.as_ref());
        // A call with a wrong password must not use the connection of one with the right password, and a terminal of a shared
        // connection has other settings.
        let config = match shared.filter(|_| password.is_none() && !host.tty) {
            Some(shared) => Some(shared.configuration(host, &self.options).await?),
            None => None,
        };
        let config = config.as_ref().map(|path| path.to_string_lossy());
        let mut command = Command::new(&self.ssh);
        command.args(command::arguments(host, &self.options, config.as_deref(), line));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(password) = password {
            command.envs(self.askpass.environment(password));
        }
        command.spawn()
    }

    async fn exchange(
        &self,
        id: &MinionId,
        host: &Host,
        call: &Call,
        mut stdin: ChildStdin,
        mut stdout: BufReader<ChildStdout>,
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
        request.extend(map! {"id" => id, "opts" => opts, "grains" => host.grains.clone()});
        frame::send(&mut stdin, &request).await?;
        loop {
            let mut message = frame::receive(&mut stdout).await?;
            let Some(Value::Map(load)) = message.shift_remove("ask") else {
                let retcode = message.get("retcode").and_then(i64::from_value).unwrap_or(UNREACHABLE);
                let out = message.get("out").and_then(Value::as_str).map(str::to_owned);
                let value = message.shift_remove("return").unwrap_or_default();
                // With `wipe` the host removes the program when its input ends.
                drop(stdin);
                if self.wipe {
                    _ = bounded(stdout, NOISE).await;
                }
                return Ok(Reply { value, retcode, out });
            };
            if load.get("cmd").and_then(Value::as_str) == Some("_mine_get") {
                // A function for the mine does not ask for the mine of others.
                let answer = match (call, &self.mine) {
                    (Call::Function { opts, .. }, Some(mine)) => mine.get(self, id, opts, &load).await,
                    _ => Map::new(),
                };
                frame::send(&mut stdin, &map! {"answer" => answer}).await?;
                continue;
            }
            let (answers, id) = (Arc::clone(&self.answers), id.clone());
            let answer = self.blocking.run(move |_| answers.answer(&id, &load)).await.unwrap_or_else(|error| {
                tracing::error!(%error, "answering a host failed");
                Value::Nil
            });
            frame::send(&mut stdin, &map! {"answer" => answer}).await?;
        }
    }
}

/// Returns the outcome of `ssh` itself, in Salt's form.
fn failed(retcode: i64, stdout: &str, stderr: &str) -> Reply {
    let value = map! {"retcode" => retcode, "stderr" => stderr.trim_end(), "stdout" => stdout};
    Reply { value: value.into(), retcode, out: None }
}

/// Returns the result of a command that failed as an error.
fn succeeded(reply: Reply) -> Result<(), Reply> {
    if reply.retcode == 0 { Ok(()) } else { Err(reply) }
}

/// Reads to the end, and keeps the first bytes.
async fn bounded(mut from: impl AsyncRead + Unpin, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    // The rest is read, too: a full pipe would stop its writer.
    _ = (&mut from).take(limit as u64).read_to_end(&mut kept).await;
    _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    kept
}

/// Waits for the end of `ssh`. Returns its status and what it has printed on stderr.
async fn end(child: &mut Child, errors: tokio::task::JoinHandle<Vec<u8>>) -> (i64, String) {
    let status = child.wait().await.ok().and_then(|status| status.code()).map_or(UNREACHABLE, i64::from);
    let stop = errors.abort_handle();
    let errors = if let Ok(errors) = tokio::time::timeout(LAST_ERRORS, errors).await {
        errors.unwrap_or_default()
    } else {
        stop.abort();
        Vec::new()
    };
    (status, String::from_utf8_lossy(&errors).into_owned())
}

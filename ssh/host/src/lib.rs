//! The host side of `salt-ssh` (`brine ssh-target`, `brine-ssh-host`): runs one call on the host, with files and pillar
//! from the caller.
//!
//! Messages go over the standard input and output of the process. Both are replaced by `/dev/null` first, so that
//! nothing that a function or its child processes read or print mixes with the messages.

#![warn(clippy::self_named_module_files)]

pub mod frame;

use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_agent::master_files::{FileRequests, MasterFiles};
use brine_config::MinionConfig;
use brine_context::{Context, Grains, Job, MasterEvent, Minion, Upstream, UpstreamError, jobs, minion_id};
use brine_function::{Args, CallError};
use brine_host::grains;
use brine_ids::{Jid, MinionId};
use brine_value::{Map, Value, map};
use parking_lot::Mutex;

use crate::frame::text;

/// The subcommand that starts the program on a host.
pub const COMMAND: &str = "ssh-target";
/// The name of the directory with the minion's cache and keys, next to the program.
const DATA: &str = "data";

/// The name of the file with the digest of the custom modules that the host has.
const MODULES: &str = "modules";

/// The interval of messages that show that the host is there.
const ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// The stream to the caller; the lock keeps messages apart.
type Output = Arc<Mutex<File>>;

/// The connection to the caller.
struct Link {
    /// The stream from the caller; the lock admits one request at a time.
    input: Mutex<BufReader<File>>,
    output: Output,
    id: MinionId,
    grains: Arc<Grains>,
}

impl FileRequests for Link {
    fn ask(&self, load: Map) -> Result<Value, UpstreamError> {
        let input = &mut *self.input.lock();
        let asked = frame::write(&mut *self.output.lock(), &map! {"ask" => load});
        let answered = asked.and_then(|()| frame::read(input));
        let mut answer = answered.map_err(|source| UpstreamError::Lost { source })?;
        Ok(answer.shift_remove("answer").unwrap_or_default())
    }

    fn is_brine(&self) -> bool {
        true
    }
}

/// Shares the link: the file client needs an `Arc<dyn FileRequests>`, the minion a `dyn Upstream`.
struct Shared(Arc<Link>);

impl FileRequests for Shared {
    fn ask(&self, load: Map) -> Result<Value, UpstreamError> {
        FileRequests::ask(&*self.0, load)
    }

    fn is_brine(&self) -> bool {
        self.0.is_brine()
    }
}

impl Link {
    /// Requests the pillar with the parameters in `load`.
    fn ask_pillar(&self, mut load: Map) -> Result<Map, UpstreamError> {
        let grains = self.grains.get();
        load.extend(map! {"cmd" => "_pillar", "id" => &self.id, "grains" => (*grains).clone()});
        match FileRequests::ask(self, load)? {
            Value::Map(pillar) => Ok(pillar),
            _ => Err(UpstreamError::NoPillar { peer: "salt-ssh" }),
        }
    }
}

impl Upstream for Link {
    fn has_master(&self) -> bool {
        false
    }

    fn has_mine(&self) -> bool {
        true
    }

    fn ask(&self, load: Map) -> Result<Value, UpstreamError> {
        match text(&load, "cmd") {
            "_mine_get" => FileRequests::ask(self, load),
            command => Err(UpstreamError::NoMaster {
                command: command.to_owned(),
                reason: "salt-ssh is not connected to a master",
            }),
        }
    }

    fn fire_master(&self, event: MasterEvent) -> Result<(), UpstreamError> {
        Err(UpstreamError::NoBus { tag: event.tag })
    }

    fn master_tops(&self, opts: Map) -> Result<Map, UpstreamError> {
        match FileRequests::ask(self, map! {"cmd" => "_master_tops", "opts" => opts})? {
            Value::Map(assigned) => Ok(assigned),
            _ => Ok(Map::new()),
        }
    }

    fn pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>, over: &Map) -> Result<Map, UpstreamError> {
        self.ask_pillar(map! {"saltenv" => saltenv, "pillarenv" => pillarenv, "pillar_override" => over.clone()})
    }

    fn pillar_with(&self, external: &Map, over: &Map) -> Result<Map, UpstreamError> {
        self.ask_pillar(map! {"ext" => external.clone(), "pillar_override" => over.clone()})
    }
}

/// Duplicates standard input and output for the messages, and replaces the originals by `/dev/null`, which child
/// processes inherit.
fn take_streams() -> io::Result<(BufReader<File>, File)> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let null = File::options().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    Ok((BufReader::new(input), output))
}

/// Runs the call that the caller sends, and sends its result.
///
/// # Errors
/// The connection is closed, or the received data is not a message.
pub fn run() -> io::Result<()> {
    let (mut input, output) = take_streams()?;
    let output: Output = Arc::new(Mutex::new(output));
    let request = frame::read(&mut input)?;
    show_life(&output);
    let reply = match minion(&request, input, Arc::clone(&output)) {
        Ok(minion) => call(&minion, &request),
        Err(message) => map! {"return" => message, "retcode" => 1},
    };
    frame::write(&mut *output.lock(), &reply)
}

/// Sends messages that show that the host is there, until the process ends: a function may take hours.
fn show_life(output: &Output) {
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(ALIVE_INTERVAL);
            if frame::write(&mut *output.lock(), &map! {frame::ALIVE => true}).is_err() {
                return;
            }
        }
    });
}

/// Returns the data directory of the current user, next to the program: `data/UID`. It is separate for each user, such
/// as root under sudo.
fn directory() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().unwrap_or(Path::new("/")).join(DATA).join(nix::unistd::geteuid().to_string()))
}

fn minion(request: &Map, input: BufReader<File>, output: Output) -> Result<Arc<Minion>, String> {
    let directory = directory().map_err(|error| error.to_string())?;
    brine_system::files::create_private_dir(&directory).map_err(|error| error.to_string())?;
    let mut options = map! {
        "id" => text(request, "id"),
        "cachedir" => directory.join("cache"),
        "pki_dir" => directory.join("pki"),
        "sock_dir" => directory.join("run"),
        "extension_modules" => directory.join("cache/extmods"),
    };
    if let Some(Value::Map(opts)) = request.get("opts") {
        options.extend(opts.clone());
    }
    let nowhere = Path::new("/nonexistent");
    let config = MinionConfig::load(nowhere, &options).map_err(|error| error.to_string())?.config;
    let id = minion_id(&config).map_err(|error| error.to_string())?;
    let mut grains = grains::collect(&config, id.as_str());
    if let Some(Value::Map(more)) = request.get("grains") {
        grains.extend(more.clone());
    }
    let grains = Arc::new(Grains::from(grains));
    let link = Arc::new(Link { input: Mutex::new(input), output, id: id.clone(), grains: Arc::clone(&grains) });
    let files = Arc::new(MasterFiles::of(Arc::new(Shared(Arc::clone(&link)))));
    let config = Arc::new(config);
    let upstream = Arc::clone(&link) as Arc<dyn Upstream>;
    let minion = Minion::new(&id, &config, brine_modules::MODULES, grains, files, upstream, None);
    if let Some(Value::Map(modules)) = request.get("modules") {
        copy_modules(&minion, &directory.join(MODULES), modules)
            .map_err(|error| format!("copying the custom modules failed: {error}"))?;
    }
    minion.add_custom_grains();
    let pillar = link.pillar(config.saltenv.as_deref(), config.pillarenv.as_deref(), &Map::new());
    let pillar = pillar.map_err(|error| error.to_string())?;
    *minion.pillar.write() = Arc::new(pillar);
    Ok(minion)
}

/// Synchronises the custom modules with the file server of `salt-ssh`, unless the digests are equal.
fn copy_modules(minion: &Arc<Minion>, digest_file: &Path, modules: &Map) -> Result<(), String> {
    let digest = text(modules, "digest");
    if std::fs::read_to_string(digest_file).unwrap_or_default() == digest {
        return Ok(());
    }
    let saltenv = modules.get("saltenv").filter(|saltenv| saltenv.is_truthy()).cloned();
    let saltenv = saltenv.unwrap_or_else(|| "base".into());
    let args = Args::keyword(map! {"saltenv" => saltenv, "refresh" => false});
    let job = Job::local(&Jid::new(), "saltutil.sync_all", &args);
    let context = Context::new(Arc::clone(minion), Arc::new(job));
    context.call("saltutil.sync_all", args).map_err(|error| error.to_string())?;
    brine_system::files::write_atomic(digest_file, digest.as_bytes(), 0o600).map_err(|error| error.to_string())
}

fn call(minion: &Arc<Minion>, request: &Map) -> Map {
    let fun = text(request, "fun");
    if let Some(arguments) = request.get("mine") {
        let args = Args::default();
        let context = Context::new(Arc::clone(minion), Arc::new(Job::local(&Jid::new(), fun, &args)));
        let result = brine_modules::mine_result(&context, fun, arguments.clone());
        let retcode = i64::from(result.is_none());
        return map! {"return" => result, "retcode" => retcode};
    }
    if minion.functions.get(fun).is_none() {
        let module = fun.split('.').next().unwrap_or_default();
        let message = minion.custom.failure("modules", module);
        let message = message.unwrap_or_else(|| CallError::NotAvailable(fun.to_owned()).to_string());
        return map! {"return" => message, "retcode" => 254};
    }
    let mut args = Args::from_wire(request.get("arg").and_then(Value::as_list).unwrap_or_default());
    let jid = text(request, "jid").parse().unwrap_or_else(|_| Jid::new());
    let mut job = Job::local(&jid, fun, &args);
    job.load = map! {"fun" => fun, "jid" => &job.jid, "pid" => job.pid, "tgt" => &minion.id};
    let context = Context::new(Arc::clone(minion), Arc::new(job));
    minion.jobs.lock().insert(context.job.jid.clone(), Arc::clone(&context.job));
    jobs::add_publish_keywords(&context, fun, &mut args);
    let outcome = jobs::call(&context, fun, args);
    let mut reply = map! {"return" => outcome.value, "retcode" => outcome.retcode};
    reply.extend(outcome.out.map(|out| ("out".into(), out.into())));
    reply
}

//! `service`: the services of this host, by systemd or by the scripts of System V.

pub(crate) mod state;
pub(crate) mod systemd;
mod sysv;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brine_context::{Context, Room};
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_host::programs::which;
use brine_text::glob::{fnmatch, is_pattern};
use brine_value::{Map, Value};

/// What starts services here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// systemd runs.
    Systemd,
    /// systemd is installed and does not run, as in many containers and while an image is made.
    Offline,
    /// Scripts in `/etc/init.d`.
    SysV,
}

/// How something is done to a service; systemd alone knows these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// Not to wait for the end of it.
    pub no_block: Option<bool>,
    /// To unmask the service before.
    pub unmask: bool,
    /// To unmask the service before, if it is masked until the next start of the host.
    pub unmask_runtime: bool,
}

impl Init {
    /// That of this host.
    pub fn of_host() -> Self {
        if Path::new("/run/systemd/system").exists() {
            Init::Systemd
        } else if which("systemctl").is_some_and(|program| is_program(&program)) {
            Init::Offline
        } else {
            Init::SysV
        }
    }

    /// Whether the service runs; without systemd, with `sig`, whether a process does that has it in its command line.
    pub fn is_running(self, context: &Context, name: &str, sig: Option<&str>) -> Result<bool, CallError> {
        match (self, sig) {
            (Init::Systemd, _) => systemd::is_running(context, name),
            (_, Some(sig)) => Ok(sysv::has_process(sig)),
            (_, None) => sysv::act(context, "status", name),
        }
    }

    /// Whether there is such a service.
    pub fn is_available(self, context: &Context, name: &str) -> Result<bool, CallError> {
        match self {
            Init::Systemd => systemd::is_available(context, name),
            _ => Ok(sysv::all(context)?.iter().any(|service| service == name)),
        }
    }

    /// Whether the service starts with the host.
    pub fn is_enabled(self, context: &Context, name: &str) -> Result<bool, CallError> {
        match self {
            Init::Systemd => systemd::is_enabled(context, name),
            _ => sysv::is_enabled(context, name),
        }
    }

    /// Whether services can be kept from being started at all.
    pub fn can_mask(self) -> bool {
        self != Init::SysV
    }

    /// Does something to a service, and says whether that worked. systemd's complaint is an error.
    pub fn act(self, context: &Context, action: &str, name: &str, how: How) -> Result<bool, CallError> {
        match self {
            Init::Systemd => systemd::act(context, action, name, how),
            _ => sysv::act(context, action, name),
        }
    }

    fn all(self, context: &Context) -> Result<Vec<String>, CallError> {
        match self {
            Init::Systemd => Ok(systemd::all()),
            _ => sysv::all(context),
        }
    }

    fn need_systemd(self, function: &str) -> Result<(), CallError> {
        if self == Init::Systemd { Ok(()) } else { Err(CallError::NotAvailable(format!("service.{function}"))) }
    }
}

/// All functions of this room.
pub(super) static ROOM: Room =
    Room { functions: &[FUNCTIONS], states: &[state::FUNCTIONS], unavailable: Some(unavailable), ..Room::EMPTY };

/// Services of other kernels than Linux are started by unknown means.
fn unavailable(context: &Context) -> Option<String> {
    let grain = |name: &str| context.grains().get(name).map(Value::to_string).unwrap_or_default();
    (!matches!(grain("kernel").as_str(), "Linux" | "")).then(|| {
        let system = grain("osfinger");
        format!("No service execution module loaded: check support for service management on {system} ")
    })
}

/// Execution functions of `service`.
pub static FUNCTIONS: &[Function<Context>] = registry!(
    "service",
    [
        start,
        stop,
        restart,
        reload,
        force_reload,
        status,
        available,
        missing,
        enable,
        disable,
        enabled,
        disabled,
        get_all,
        get_enabled,
        get_disabled,
        get_static,
        get_running,
        mask,
        unmask,
        masked,
        show,
        systemctl_reload,
        offline
    ]
);

/// Starts a service.
///
/// CLI Example:
///
///     salt '*' service.start <service name>
#[function]
pub fn start(
    context: &Context,
    name: String,
    #[default] no_block: Option<bool>,
    #[default(false)] unmask: bool,
    #[default(false)] unmask_runtime: bool,
) -> CallResult {
    Ok(Init::of_host().act(context, "start", &name, How { no_block, unmask, unmask_runtime })?.into())
}

/// Stops a service.
///
/// CLI Example:
///
///     salt '*' service.stop <service name>
#[function]
pub fn stop(context: &Context, name: String, #[default] no_block: Option<bool>) -> CallResult {
    Ok(Init::of_host().act(context, "stop", &name, How { no_block, ..How::default() })?.into())
}

/// Stops and starts a service.
///
/// CLI Example:
///
///     salt '*' service.restart <service name>
#[function]
pub fn restart(
    context: &Context,
    name: String,
    #[default] no_block: Option<bool>,
    #[default(false)] unmask: bool,
    #[default(false)] unmask_runtime: bool,
) -> CallResult {
    Ok(Init::of_host().act(context, "restart", &name, How { no_block, unmask, unmask_runtime })?.into())
}

/// Has a service read its configuration again.
///
/// CLI Example:
///
///     salt '*' service.reload <service name>
#[function]
pub fn reload(
    context: &Context,
    name: String,
    #[default] no_block: Option<bool>,
    #[default(false)] unmask: bool,
    #[default(false)] unmask_runtime: bool,
) -> CallResult {
    Ok(Init::of_host().act(context, "reload", &name, How { no_block, unmask, unmask_runtime })?.into())
}

/// Has a service read its configuration again, or restarts one that cannot.
///
/// CLI Example:
///
///     salt '*' service.force_reload <service name>
#[function]
pub fn force_reload(
    context: &Context,
    name: String,
    #[default(true)] no_block: bool,
    #[default(false)] unmask: bool,
    #[default(false)] unmask_runtime: bool,
) -> CallResult {
    let how = How { no_block: Some(no_block), unmask, unmask_runtime };
    Ok(Init::of_host().act(context, "force-reload", &name, how)?.into())
}

/// Whether a service runs; for a glob, all that match.
///
/// CLI Example:
///
///     salt '*' service.status <service name> [service signature]
#[function]
pub fn status(context: &Context, name: String, #[default] sig: Option<String>) -> CallResult {
    let init = Init::of_host();
    if !is_pattern(&name) {
        return Ok(init.is_running(context, &name, sig.as_deref())?.into());
    }
    let mut found = Map::new();
    for service in init.all(context)?.iter().filter(|service| fnmatch(&name, service)) {
        found.insert(service.into(), init.is_running(context, service, None)?.into());
    }
    Ok(found.into())
}

/// Whether there is such a service.
///
/// CLI Example:
///
///     salt '*' service.available sshd
#[function]
pub fn available(context: &Context, name: String) -> CallResult {
    Ok(Init::of_host().is_available(context, &name)?.into())
}

/// Whether there is no such service.
///
/// CLI Example:
///
///     salt '*' service.missing sshd
#[function]
pub fn missing(context: &Context, name: String) -> CallResult {
    Ok((!Init::of_host().is_available(context, &name)?).into())
}

/// Has a service start with the host.
///
/// CLI Example:
///
///     salt '*' service.enable <service name>
#[function]
pub fn enable(
    context: &Context,
    name: String,
    #[default] no_block: Option<bool>,
    #[default(false)] unmask: bool,
    #[default(false)] unmask_runtime: bool,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(Init::of_host().act(context, "enable", &name, How { no_block, unmask, unmask_runtime })?.into())
}

/// Has a service not start with the host.
///
/// CLI Example:
///
///     salt '*' service.disable <service name>
#[function]
pub fn disable(
    context: &Context,
    name: String,
    #[default] no_block: Option<bool>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(Init::of_host().act(context, "disable", &name, How { no_block, ..How::default() })?.into())
}

/// Whether a service starts with the host.
///
/// CLI Example:
///
///     salt '*' service.enabled <service name>
#[function]
pub fn enabled(context: &Context, name: String, #[keywords] _kwargs: Map) -> CallResult {
    Ok(Init::of_host().is_enabled(context, &name)?.into())
}

/// Whether a service does not start with the host. Without systemd, only one that is there.
///
/// CLI Example:
///
///     salt '*' service.disabled <service name>
#[function]
pub fn disabled(context: &Context, name: String) -> CallResult {
    let init = Init::of_host();
    let is_service = init == Init::Systemd || init.is_available(context, &name)?;
    Ok((is_service && !init.is_enabled(context, &name)?).into())
}

/// The names of all services; of other units of systemd, with their kinds.
///
/// CLI Example:
///
///     salt '*' service.get_all
#[function]
pub fn get_all(context: &Context) -> CallResult {
    Ok(Init::of_host().all(context)?.into())
}

/// The names of the services that start with the host.
///
/// CLI Example:
///
///     salt '*' service.get_enabled
#[function]
pub fn get_enabled(context: &Context) -> CallResult {
    match Init::of_host() {
        Init::Systemd => Ok(systemd::in_state(context, "enabled")?.into()),
        _ => Ok(sysv::enabled(context)?.into()),
    }
}

/// The names of the services that do not start with the host.
///
/// CLI Example:
///
///     salt '*' service.get_disabled
#[function]
pub fn get_disabled(context: &Context) -> CallResult {
    if Init::of_host() == Init::Systemd {
        return Ok(systemd::in_state(context, "disabled")?.into());
    }
    let enabled = sysv::enabled(context)?;
    Ok(sysv::all(context)?.into_iter().filter(|name| !enabled.contains(name)).collect())
}

/// The names of the units that others need and nobody enables.
///
/// CLI Example:
///
///     salt '*' service.get_static
#[function]
pub fn get_static(context: &Context) -> CallResult {
    Init::of_host().need_systemd("get_static")?;
    Ok(systemd::in_state(context, "static")?.into())
}

/// The names of the units that run.
///
/// CLI Example:
///
///     salt '*' service.get_running
#[function]
pub fn get_running(context: &Context) -> CallResult {
    Init::of_host().need_systemd("get_running")?;
    Ok(systemd::running(context)?.into())
}

/// Keeps a service from being started.
///
/// CLI Example:
///
///     salt '*' service.mask foo
///     salt '*' service.mask foo runtime=True
#[function]
pub fn mask(context: &Context, name: String, #[default(false)] runtime: bool) -> CallResult {
    Init::of_host().need_systemd("mask")?;
    systemd::set_mask(context, &name, true, runtime)?;
    Ok(true.into())
}

/// Lets a service be started again.
///
/// CLI Example:
///
///     salt '*' service.unmask foo
///     salt '*' service.unmask foo runtime=True
#[function]
pub fn unmask(context: &Context, name: String, #[default(false)] runtime: bool) -> CallResult {
    Init::of_host().need_systemd("unmask")?;
    systemd::set_mask(context, &name, false, runtime)?;
    Ok(true.into())
}

/// Whether a service is kept from being started.
///
/// CLI Example:
///
///     salt '*' service.masked foo
///     salt '*' service.masked foo runtime=True
#[function]
pub fn masked(context: &Context, name: String, #[default(false)] runtime: bool) -> CallResult {
    Init::of_host().need_systemd("masked")?;
    Ok(systemd::is_masked(context, &name, runtime)?.into())
}

/// What systemd knows of a unit.
///
/// CLI Example:
///
///     salt '*' service.show <service name>
#[function]
pub fn show(context: &Context, name: String) -> CallResult {
    Init::of_host().need_systemd("show")?;
    Ok(systemd::show(context, &name)?.into())
}

/// Has systemd read its unit files again.
///
/// CLI Example:
///
///     salt '*' service.systemctl_reload
#[function]
pub fn systemctl_reload(context: &Context) -> CallResult {
    Init::of_host().need_systemd("systemctl_reload")?;
    systemd::read_units_again(context)?;
    Ok(true.into())
}

/// Whether systemd is installed and does not run.
///
/// CLI Example:
///
///     salt '*' service.offline
#[function]
pub fn offline(_context: &Context) -> CallResult {
    Ok((Init::of_host() == Init::Offline).into())
}

/// Whether a file is one that can be run.
fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
}

/// The names of what is in a folder, sorted.
fn names_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

//! `service`: states of services.

mod boot;
mod masks;
#[cfg(test)]
mod tests;

use brine_context::state_beacon::{BeaconArgs, StateBeacon};
use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value, map};

use self::boot::{apply, toggle};
use crate::service::manager::{ServiceOptions, Services, services};

/// State functions of `service`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("service", [running, dead, enabled, disabled, masked, unmasked, mod_watch, mod_beacon]);

/// The beacon of a state.
const BEACON: StateBeacon<'_> = StateBeacon { state: "service", functions: &["running", "dead"], module: "service" };

/// The arguments of `service.running` and `service.dead`.
#[derive(Args)]
pub struct ControlArgs {
    /// Whether the service is enabled at boot; unchanged by default.
    enable: Option<bool>,
    /// String in the command line by which the process is found.
    sig: Option<String>,
    /// Seconds to wait after the service was started or stopped.
    #[default]
    init_delay: Value,
    /// Further arguments: `no_block`, `unmask`, `unmask_runtime`. `wait` and `full_restart` are without effect.
    #[keywords(further_control)]
    kwargs: Map,
}

impl ControlArgs {
    fn control(self, context: &StateContext, name: &str, runs: bool) -> CallResult {
        let how = systemd_options(&self.kwargs);
        let desired = Desired { runs, enable: self.enable, sig: self.sig, delay: self.init_delay, how };
        report(
            name,
            invalid_arguments(name, &self.kwargs).map_or_else(|| ensure_state(services(), context, name, &desired), Ok),
        )
    }
}

/// Ensure that a service is running, and with `enable` that it is enabled or disabled at boot.
///
/// With `watch`, the service is restarted when a watched state has changes; `reload: True` reloads it instead.
///
/// SLS Example:
///
///     nginx:
///       service.running:
///         - enable: True
///         - reload: True
///         - watch:
///           - file: /etc/nginx/nginx.conf
///
///     postgresql:
///       service.running:
///         - enable: True
///         - init_delay: 5
///         - require:
///           - pkg: postgresql
#[function]
pub fn running(
    context: &StateContext,
    /// Name of the service, such as `nginx`.
    name: String,
    #[args] args: ControlArgs,
) -> CallResult {
    args.control(context, &name, true)
}

/// Ensure that a service is not running, and with `enable` that it is enabled or disabled at boot.
///
/// A service that does not exist counts as stopped.
///
/// SLS Example:
///
///     apache2:
///       service.dead:
///         - enable: False
#[function]
pub fn dead(
    context: &StateContext,
    /// Name of the service, such as `nginx`.
    name: String,
    #[args] args: ControlArgs,
) -> CallResult {
    args.control(context, &name, false)
}

/// Ensure that a service is enabled at boot.
///
/// The service is not started: `service.running` with `enable: True` does both.
///
/// SLS Example:
///
///     cron:
///       service.enabled: []
#[function]
pub fn enabled(
    context: &StateContext,
    /// Name of the service, such as `nginx`.
    name: String,
    #[keywords(further_control)] kwargs: Map,
) -> CallResult {
    report(&name, boot::state(services(), context, &name, true, systemd_options(&kwargs)))
}

/// Ensure that a service is disabled at boot.
///
/// The service is not stopped: `service.dead` with `enable: False` does both.
///
/// SLS Example:
///
///     avahi-daemon:
///       service.disabled: []
#[function]
pub fn disabled(
    context: &StateContext,
    /// Name of the service, such as `nginx`.
    name: String,
    #[keywords(further_control)] kwargs: Map,
) -> CallResult {
    report(&name, boot::state(services(), context, &name, false, systemd_options(&kwargs)))
}

/// Ensure that a service is masked, permanently or with `runtime` until the next boot.
///
/// A masked service cannot be started, not even by other services. With systemd only.
///
/// SLS Example:
///
///     rpcbind:
///       service.masked: []
#[function]
pub fn masked(
    context: &StateContext,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the mask lasts only until the next boot.
    #[default(false)]
    runtime: bool,
) -> CallResult {
    report(&name, masks::state(services(), context, &name, true, runtime))
}

/// Ensure that a service is not masked.
///
/// SLS Example:
///
///     rpcbind:
///       service.unmasked:
///         - runtime: False
#[function]
pub fn unmasked(
    context: &StateContext,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether a mask that lasts until the next boot is removed, not a permanent one.
    #[default(false)]
    runtime: bool,
) -> CallResult {
    report(&name, masks::state(services(), context, &name, false, runtime))
}

/// Restart the service when a watched state has changes, or reload its configuration with `reload`; a service that
/// should be dead is stopped. `full_restart` is without effect: it is for other systems.
///
/// SLS Example:
///
///     nginx:
///       service.running:
///         - watch:
///           - file: /etc/nginx/nginx.conf
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Name of the service.
    name: String,
    /// Function of the watching state: `running` or `dead`.
    #[default]
    sfun: Value,
    /// String in the command line by which the process is found.
    sig: Option<String>,
    /// Whether the service is reloaded instead of restarted.
    #[default(false)]
    reload: bool,
    /// Without effect: for other systems.
    #[default(false)]
    full_restart: bool,
    /// Seconds to wait afterwards.
    #[default]
    init_delay: Value,
    /// With `reload`, whether a service that cannot reload is restarted.
    #[default(false)]
    force: bool,
    /// Further arguments of the watching state: `no_block`, `unmask`, `unmask_runtime`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    // Only for other operating systems.
    _ = full_restart;
    let watch =
        Watched { sfun: sfun.to_string(), sig, reload, force, delay: init_delay, how: systemd_options(&kwargs) };
    report(&name, watched(services(), context, &name, &watch))
}

/// Returns the options that only systemd supports.
fn systemd_options(kwargs: &Map) -> ServiceOptions {
    let flag = |key: &str| kwargs.get(key).map(Value::is_truthy);
    ServiceOptions {
        no_block: flag("no_block"),
        unmask: flag("unmask").unwrap_or_default(),
        unmask_runtime: flag("unmask_runtime").unwrap_or_default(),
    }
}

/// Returns a failure if the argument `enabled` is used instead of `enable`.
fn invalid_arguments(name: &str, kwargs: &Map) -> Option<StateReturn> {
    kwargs.get("enabled")?;
    let comment =
        format!("Service {name} uses non-existent option \"enabled\".  Perhaps \"enable\" option was intended?");
    Some(StateReturn::failed(name, comment))
}

/// The desired state of a service.
struct Desired {
    runs: bool,
    enable: Option<bool>,
    sig: Option<String>,
    delay: Value,
    how: ServiceOptions,
}

/// The arguments of `service.mod_watch`.
struct Watched {
    sfun: String,
    sig: Option<String>,
    reload: bool,
    force: bool,
    delay: Value,
    how: ServiceOptions,
}

fn report(name: &str, result: Result<StateReturn, CallError>) -> Result<Value, CallError> {
    match result {
        Ok(outcome) => Ok(outcome.into()),
        Err(CallError::Execution(message)) => Ok(StateReturn::failed(name, message).into()),
        Err(error) => Err(error),
    }
}

/// Waits for `delay` seconds, at most an hour, for a service to settle. Returns whether the job was cancelled in the
/// meantime.
fn wait(context: &StateContext, delay: &Value) -> bool {
    let delay = brine_runtime::seconds::within(0.0..=3600.0, delay.as_f64().unwrap_or_default());
    !delay.is_zero() && brine_host::process::cancelled_within(&context.call.job.cancel, delay)
}

/// Ensures that a service is running or not.
fn ensure_state(
    services: &dyn Services,
    context: &StateContext,
    name: &str,
    desired: &Desired,
) -> Result<StateReturn, CallError> {
    if services.is_offline() {
        return Ok(StateReturn::ok(name, "Running in OFFLINE mode. Nothing to do"));
    }
    let runs = desired.runs;
    if !services.is_available(&context.call, name)? {
        let would = if runs { "started" } else { "stopped" };
        let comment = format!("The named service {name} is not available");
        return Ok(match (context.test, runs) {
            (true, _) => {
                let comment =
                    format!("Service {name} not present; if created in this state run, it would have been {would}");
                StateReturn::predicted(name, comment)
            }
            (false, true) => StateReturn::failed(name, comment),
            (false, false) => StateReturn::ok(name, comment),
        });
    }
    let before = services.is_running(&context.call, name, desired.sig.as_deref())?;
    let enabled_before = services.is_enabled(&context.call, name)?;
    let unmasked = if desired.how.unmask && runs {
        Some(masks::state(services, context, name, false, desired.how.unmask_runtime)?.comment)
    } else {
        None
    };
    let with_mask = |comment: String| match &unmasked {
        Some(reported) if !reported.is_empty() => format!("{comment}\n{reported}"),
        _ => comment,
    };
    let other = desired.enable.filter(|enable| *enable != enabled_before);
    if before == runs {
        let state = if runs { "running" } else { "dead" };
        let outcome = StateReturn::ok(name, with_mask(format!("The service {name} is already {state}")));
        return match other {
            Some(enable) => Ok(apply(outcome, toggle(services, context, name, enable, None, true, desired.how)?)),
            None => Ok(outcome),
        };
    }
    if context.test {
        let would = if runs { "start" } else { "be killed" };
        return Ok(StateReturn::predicted(name, with_mask(format!("Service {name} is set to {would}"))));
    }
    let acted = services.act(&context.call, if runs { "start" } else { "stop" }, name, desired.how)?;
    let failure = format!("Service {name} failed to {}", if runs { "start" } else { "die" });
    if !acted {
        let outcome = StateReturn::failed(name, failure);
        return match desired.enable {
            Some(enable) => {
                Ok(apply(outcome, toggle(services, context, name, enable, Some(!runs), false, desired.how)?))
            }
            None => Ok(outcome),
        };
    }
    if wait(context, &desired.delay) {
        return Ok(StateReturn::failed(name, "the job was ended"));
    }
    let after = services.is_running(&context.call, name, desired.sig.as_deref().filter(|_| runs))?;
    let mut outcome = match (after == runs, runs) {
        (false, _) => StateReturn::failed(name, failure),
        (true, true) => StateReturn::ok(name, format!("Started service {name}")),
        (true, false) => StateReturn::ok(name, format!("Service {name} was killed")),
    };
    if after != before || services.is_enabled(&context.call, name)? != enabled_before {
        outcome.changes = map! {name => after};
    }
    if let Some(enable) = desired.enable {
        let toggled = toggle(services, context, name, enable, Some(after), after == runs, desired.how)?;
        outcome = apply(outcome, toggled);
    }
    if runs && desired.delay.is_truthy() {
        outcome.comment = format!("{}\nDelayed return for {} seconds", outcome.comment, desired.delay);
    }
    if let Some(reported) = unmasked {
        outcome.comment = format!("{}\n{reported}", outcome.comment);
    }
    Ok(outcome)
}

fn watched(
    services: &dyn Services,
    context: &StateContext,
    name: &str,
    watch: &Watched,
) -> Result<StateReturn, CallError> {
    let stops = watch.sfun == "dead";
    if !stops && watch.sfun != "running" {
        return Ok(StateReturn::failed(name, format!("Unable to trigger watch for service.{}", watch.sfun)));
    }
    let runs = services.is_running(&context.call, name, watch.sig.as_deref())?;
    let (action, words, participle) = match (stops, runs) {
        (true, false) => return Ok(StateReturn::ok(name, "Service is already stopped")),
        (true, true) => ("stop", "stop", "stopped"),
        (false, false) => ("start", "start", "started"),
        (false, true) if watch.reload && watch.force => ("force-reload", "forcefully reload", "forcefully reloaded"),
        (false, true) if watch.reload => ("reload", "reload", "reloaded"),
        (false, true) => ("restart", "restart", "restarted"),
    };
    if context.test {
        return Ok(StateReturn::predicted(name, format!("Service is set to be {participle}")));
    }
    if action == "start" {
        // Stops remaining processes of a failed service first.
        services.act(&context.call, "stop", name, ServiceOptions::default())?;
    }
    let acted = services.act(&context.call, action, name, watch.how)?;
    if wait(context, &watch.delay) {
        return Ok(StateReturn::failed(name, "the job was ended"));
    }
    let result = if acted {
        StateReturn::ok(name, format!("Service {participle}"))
    } else {
        StateReturn::failed(name, format!("Failed to {words} the service"))
    };
    Ok(result.with_changes(map! {name => acted}))
}

/// Configure a beacon for a state with `beacon: True`, at the end of the run: events for starts and stops of the
/// service.
///
/// SLS Example:
///
///     nginx:
///       service.running:
///         - beacon: True
///         - beacon_data:
///             delay: 10
#[function]
pub fn mod_beacon(
    context: &StateContext,
    #[args] args: BeaconArgs,
    /// The arguments of the state, among them `beacon_data`, the options of the beacon.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    let watched = map! {
        "onchangeonly" => args.option("onchangeonly", true),
        "delay" => args.option("delay", 0),
        "emitatstartup" => args.option("emitatstartup", false),
        "uncleanshutdown" => args.option("uncleanshutdown", Value::Nil),
    };
    BEACON.configure(context, &args, map! {"services" => map! {args.name.as_str() => watched}})
}

/// Describes the further arguments of services.
pub(crate) fn further_control(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("no_block", "True or False", "Whether the state does not wait until systemd has done its work.");
    params.further("unmask", "True or False", "Whether the service is unmasked first.");
    params.further("unmask_runtime", "True or False", "Whether a mask until the next boot is removed first.");
    params.further(
        "reload",
        "True or False",
        "Whether a change of a watched state reloads the service instead of restarting it.",
    );
    params.further("sig", "a string", "String in the command line by which the process is found.");
    params.further("init_delay", "a number", "Seconds to wait after the service was started or stopped.");
    params.further("force", "True or False", "With `reload`, whether a service that cannot reload is restarted.");
    params.further("enabled", "a string", "Not an argument: the state fails and names `enable`.");
    for name in ["full_restart", "restart", "wait_for", "skip_verify"] {
        params.further(name, "anything", "Without effect.");
    }
    for name in ["sysvinit", "runlevels", "levels", "limit"] {
        params.further(name, "anything", "Without effect: for other systems of services.");
    }
    for name in ["domain", "session", "root", "start_delayed", "start_type", "timeout"] {
        params.further(name, "anything", "Without effect: for other operating systems.");
    }
    params.further("enable", "True or False", "Without effect: the name of the function decides.");
}

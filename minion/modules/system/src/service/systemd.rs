//! Services as units of systemd, with `systemctl`; and System V scripts that systemd runs.

use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::process::Output;
use brine_host::programs::{argument, which};
use brine_value::{Map, Value};

use super::manager::{ServiceOptions, Services, Units, has_systemd};
use super::{is_program, names_in, sysv};

const KINDS: [&str; 9] = ["service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer"];

/// A running systemd.
pub struct Systemd;

impl Services for Systemd {
    fn units(&self) -> Option<&dyn Units> {
        Some(self)
    }

    fn can_mask(&self) -> bool {
        true
    }

    fn is_available(&self, context: &Context, name: &str) -> Result<bool, CallError> {
        is_available(context, name)
    }

    fn is_running(&self, context: &Context, name: &str, _sig: Option<&str>) -> Result<bool, CallError> {
        is_running(context, name)
    }

    fn is_enabled(&self, context: &Context, name: &str) -> Result<bool, CallError> {
        is_enabled(context, name)
    }

    fn is_disabled(&self, context: &Context, name: &str) -> Result<bool, CallError> {
        Ok(!is_enabled(context, name)?)
    }

    fn is_masked(&self, context: &Context, name: &str, runtime: bool) -> Result<bool, CallError> {
        is_masked(context, name, runtime)
    }

    fn set_mask(&self, context: &Context, name: &str, masked: bool, runtime: bool) -> Result<(), CallError> {
        set_mask(context, name, masked, runtime)
    }

    fn act(&self, context: &Context, action: &str, name: &str, how: ServiceOptions) -> Result<bool, CallError> {
        act(context, action, name, how)
    }

    fn all(&self, _context: &Context) -> Result<Vec<String>, CallError> {
        Ok(unit_names())
    }

    fn enabled(&self, context: &Context) -> Result<Vec<String>, CallError> {
        in_state(context, "enabled")
    }

    fn disabled(&self, context: &Context) -> Result<Vec<String>, CallError> {
        in_state(context, "disabled")
    }
}

impl Units for Systemd {
    fn fixed(&self, context: &Context) -> Result<Vec<String>, CallError> {
        in_state(context, "static")
    }

    fn running(&self, context: &Context) -> Result<Vec<String>, CallError> {
        running(context)
    }

    fn show(&self, context: &Context, name: &str) -> Result<Map, CallError> {
        show(context, name)
    }

    fn reload(&self, context: &Context) -> Result<(), CallError> {
        reload(context)
    }
}

/// Returns the unit name of a service.
fn unit(name: &str) -> String {
    if KINDS.iter().any(|kind| name.ends_with(kind)) { name.to_owned() } else { format!("{name}.service") }
}

/// Returns the service name of a unit file; `None` for other files.
fn service_of(file: &str) -> Option<String> {
    let (name, kind) = file.rsplit_once('.')?;
    KINDS.contains(&kind).then(|| if kind == "service" { name.to_owned() } else { file.to_owned() })
}

fn systemctl(context: &Context, words: &[&str]) -> Result<Output, CallError> {
    let words: Vec<String> = ["systemctl"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    run(context, &words, &[])
}

fn status(context: &Context, name: &str) -> Result<Output, CallError> {
    systemctl(context, &["status", &unit(&argument(name)?), "-n", "0"])
}

fn is_known(status: &Output) -> bool {
    (0..4).contains(&status.retcode)
}

/// Reloads the unit files if the unit file of the service is new or has changed.
fn check_for_changes(context: &Context, name: &str) -> Result<(), CallError> {
    let status = status(context, name)?;
    let is_new = !is_known(&status) && std::fs::File::open(Path::new("/etc/systemd/system").join(unit(name))).is_ok();
    let message = format!("{}{}", status.stdout, status.stderr);
    if is_new || message.to_lowercase().contains("'systemctl daemon-reload'") {
        reload(context)?;
    }
    Ok(())
}

/// Reloads the unit files of systemd.
fn reload(context: &Context) -> Result<(), CallError> {
    let output = systemctl(context, &["--system", "daemon-reload"])?;
    if output.retcode == 0 {
        return Ok(());
    }
    let message = format!("{}{}", output.stdout, output.stderr);
    Err(CallError::Execution(format!("Problem performing systemctl daemon-reload: {message}")))
}

/// Whether systemd has a unit for the service.
fn is_available(context: &Context, name: &str) -> Result<bool, CallError> {
    check_for_changes(context, name)?;
    Ok(is_known(&status(context, name)?))
}

/// Whether the service is running.
fn is_running(context: &Context, name: &str) -> Result<bool, CallError> {
    check_for_changes(context, name)?;
    Ok(systemctl(context, &["is-active", &unit(name)])?.retcode == 0)
}

/// Whether the service is enabled at boot.
fn is_enabled(context: &Context, name: &str) -> Result<bool, CallError> {
    let output = systemctl(context, &["is-enabled", &unit(&argument(name)?)])?;
    match (output.stdout.trim(), output.retcode) {
        ("alias", _) => {
            let output = systemctl(context, &["show", &unit(name), "-P", "Id"])?;
            Ok(systemctl(context, &["is-enabled", &unit(output.stdout.trim())])?.retcode == 0)
        }
        (_, 0) => Ok(true),
        // For a System V script, the links of the current runlevel decide.
        _ if !name.contains('@') && scripts().iter().any(|script| script == name) => is_script_enabled(context, name),
        _ => Ok(false),
    }
}

/// Whether a service is masked: its unit is a link to `/dev/null`.
pub fn is_masked(context: &Context, name: &str, runtime: bool) -> Result<bool, CallError> {
    check_for_changes(context, name)?;
    let directory = Path::new(if runtime { "/run" } else { "/etc" }).join("systemd/system");
    Ok(std::fs::read_link(directory.join(unit(name))).is_ok_and(|target| target == Path::new("/dev/null")))
}

/// Masks or unmasks a service.
pub fn set_mask(context: &Context, name: &str, masked: bool, runtime: bool) -> Result<(), CallError> {
    check_for_changes(context, name)?;
    if !masked && !is_masked(context, name, runtime)? {
        return Ok(());
    }
    let action = if masked { "mask" } else { "unmask" };
    let mut words = vec![action];
    words.extend(runtime.then_some("--runtime"));
    let output = in_scope(context, &words, name)?;
    if output.retcode == 0 {
        return Ok(());
    }
    let mut message = format!("Failed to {action} service '{name}'");
    let reported = format!("{}\n{}", output.stdout, output.stderr);
    if masked && !reported.trim().is_empty() {
        message = format!("{message}. Additional info follows:\n\n{}", reported.trim());
    }
    Err(CallError::Execution(message))
}

/// Performs an action on a service. A failed start, restart, reload or enabling is an error with systemd's message.
fn act(context: &Context, action: &str, name: &str, how: ServiceOptions) -> Result<bool, CallError> {
    check_for_changes(context, name)?;
    for (unmask, runtime) in [(how.unmask, false), (how.unmask_runtime, true)] {
        if unmask {
            set_mask(context, name, false, runtime)?;
        }
    }
    if matches!(action, "enable" | "disable") && scripts().iter().any(|script| script == name) {
        let rest: &[&str] = if action == "enable" { &["defaults", "99"] } else { &["remove"] };
        let words = [&["update-rc.d", "-f", name], rest].concat();
        let words: Vec<String> = scope(context).iter().chain(&words).map(|word| (*word).to_owned()).collect();
        return Ok(run(context, &words, &[])?.retcode == 0);
    }
    // A minion that stops or restarts itself cannot wait for the result.
    let itself = matches!(action, "stop" | "restart") && unit(name) == "salt-minion.service";
    let mut words = Vec::new();
    words.extend(how.no_block.unwrap_or(itself || action == "force-reload").then_some("--no-block"));
    words.push(action);
    let output = in_scope(context, &words, name)?;
    if output.retcode == 0 || matches!(action, "stop" | "disable") {
        if action == "stop" {
            context.set_retcode(output.retcode);
        }
        return Ok(output.retcode == 0);
    }
    // Skips messages about the scope of the command.
    let report: Vec<&str> = output.stderr.lines().filter(|line| line.strip_suffix(".scope").is_none()).collect();
    Err(CallError::Execution(report.join("\n").trim().to_owned()))
}

/// Returns the command prefix that runs a program in its own scope, so that it is not stopped together with the service
/// of the minion.
fn scope(context: &Context) -> &'static [&'static str] {
    let uses_scope = brine_config::opts::modules::systemd_scope(&context.config().opts).is_truthy();
    if uses_scope && has_systemd() && which("systemd-run").is_some() { &["systemd-run", "--scope"] } else { &[] }
}

fn in_scope(context: &Context, words: &[&str], name: &str) -> Result<Output, CallError> {
    let unit = unit(&argument(name)?);
    let words = [scope(context), &["systemctl"], words, &[&*unit]].concat();
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    run(context, &words, &[])
}

/// Returns the names of all units that have a unit file, and of scripts.
fn unit_names() -> Vec<String> {
    let mut names = with_units();
    names.extend(scripts());
    names.sort();
    names.dedup();
    names
}

fn with_units() -> Vec<String> {
    let directories = ["/lib/systemd/system", "/usr/lib/systemd/system", "/etc/systemd/system"];
    let directories = directories.iter().filter(|directory| !Path::new(directory).is_symlink());
    directories.flat_map(|directory| names_in(directory)).filter_map(|file| service_of(&file)).collect()
}

/// Returns the names of the scripts without a unit.
fn scripts() -> Vec<String> {
    let units = with_units();
    let mut scripts = names_in("/etc/init.d");
    scripts.retain(|name| is_program(&Path::new("/etc/init.d").join(name)) && !units.contains(name));
    scripts
}

fn is_script_enabled(context: &Context, name: &str) -> Result<bool, CallError> {
    let links = names_in(&format!("/etc/rc{}.d", sysv::level(context)?));
    Ok(links.iter().any(|link| sysv::started(link) == Some(name)))
}

/// Returns the names of the units whose unit files are in a state such as `enabled`, and of the scripts in that state.
fn in_state(context: &Context, state: &str) -> Result<Vec<String>, CallError> {
    let output = systemctl(context, &["--full", "--no-legend", "--no-pager", "list-unit-files"])?;
    let mut names = units_in_state(&output.stdout, state);
    if state != "static" {
        for script in scripts() {
            if is_script_enabled(context, &script)? == (state == "enabled") {
                names.push(script);
            }
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn units_in_state(text: &str, state: &str) -> Vec<String> {
    let rows = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?))
    });
    rows.filter(|(_, is)| *is == state).filter_map(|(file, _)| service_of(file)).collect()
}

/// Returns the names of the running units.
fn running(context: &Context) -> Result<Vec<String>, CallError> {
    let output = systemctl(context, &["--full", "--no-legend", "--no-pager"])?;
    let rows = output.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut names: Vec<String> =
        rows.filter(|words| words.get(3) == Some(&"running")).filter_map(|words| service_of(words[0])).collect();
    names.sort();
    Ok(names)
}

/// Returns the properties of a unit.
fn show(context: &Context, name: &str) -> Result<Map, CallError> {
    let output = systemctl(context, &["show", &unit(&argument(name)?)])?;
    Ok(output
        .stdout
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.into(), field(key, value)))
        .collect())
}

fn field(key: &str, value: &str) -> Value {
    if value.starts_with('{') {
        let parts = value.trim_matches(['{', '}']).split(" ; ").filter_map(|part| part.split_once('='));
        return parts.map(|(key, value)| (key.trim().into(), value.trim().into())).collect::<Map>().into();
    }
    match key {
        "Before" | "After" | "Wants" => value.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into(),
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn service_names_are_unit_names() {
        assert_eq!(unit("web"), "web.service");
        assert_eq!(unit("a.socket"), "a.socket");
        assert_eq!(service_of("web.service").as_deref(), Some("web"));
        assert_eq!(service_of("web.timer").as_deref(), Some("web.timer"));
        assert_eq!(service_of("web.service.d"), None);
    }

    #[test]
    fn output_of_systemctl_is_parsed() {
        let text = "ssh.service enabled enabled\na.socket enabled -\ncron.service disabled enabled\n\n";
        assert_eq!(units_in_state(text, "enabled"), ["ssh", "a.socket"]);
        assert_eq!(units_in_state(text, "disabled"), ["cron"]);
    }

    #[test]
    fn shown_properties_have_lists_and_mappings() {
        assert_eq!(field("After", "a.target b.mount"), vec!["a.target".to_owned(), "b.mount".into()].into());
        assert_eq!(
            field("ExecStart", "{ path=/bin/x ; argv[]=/bin/x -d }"),
            map! {"path" => "/bin/x", "argv[]" => "/bin/x -d"}.into()
        );
        assert_eq!(field("Id", "a=b"), "a=b".into());
    }
}

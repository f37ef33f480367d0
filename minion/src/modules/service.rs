//! `service`: services, by systemd where it runs, else by the scripts in `/etc/init.d`.

use std::path::Path;

use brine_core::function::CallError;
use brine_core::{Value, functions};

use crate::context::Context;
use crate::process::Program;

functions! {
    module "service", context Context;

    /// Whether a service runs.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.status nginx
    fn status(context, name: String) {
        succeeds(context, Action::Status, &name)
    }

    /// Starts a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.start nginx
    fn start(context, name: String) {
        succeeds(context, Action::Start, &name)
    }

    /// Stops a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.stop nginx
    fn stop(context, name: String) {
        succeeds(context, Action::Stop, &name)
    }

    /// Stops and starts a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.restart nginx
    fn restart(context, name: String) {
        succeeds(context, Action::Restart, &name)
    }

    /// Has a service read its configuration again.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.reload nginx
    fn reload(context, name: String) {
        succeeds(context, Action::Reload, &name)
    }

    /// Whether a service starts with the host.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.enabled nginx
    fn enabled(context, name: String) {
        if has_systemd() {
            return succeeds(context, Action::IsEnabled, &name);
        }
        let links = std::fs::read_dir("/etc/rc2.d").into_iter().flatten().filter_map(Result::ok);
        let is_start = |file: &str| file.strip_prefix('S').is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()) == name);
        Ok(links.map(|link| link.file_name().to_string_lossy().into_owned()).any(|file| is_start(&file)).into())
    }

    /// Has a service start with the host.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.enable nginx
    fn enable(context, name: String) {
        succeeds(context, Action::Enable, &name)
    }

    /// Has a service not start with the host.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.disable nginx
    fn disable(context, name: String) {
        succeeds(context, Action::Disable, &name)
    }

    /// Whether there is such a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.available nginx
    fn available(context, name: String) {
        if has_systemd() {
            return succeeds(context, Action::Exists, &name);
        }
        check_name(&name)?;
        Ok(Path::new("/etc/init.d").join(&name).exists().into())
    }
}

#[derive(Clone, Copy)]
enum Action {
    Status,
    Start,
    Stop,
    Restart,
    Reload,
    Enable,
    Disable,
    IsEnabled,
    Exists,
}

fn has_systemd() -> bool {
    Path::new("/run/systemd/system").exists()
}

fn check_name(name: &str) -> Result<(), CallError> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.@:\\".contains(c);
    if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(safe) {
        return Err(CallError::Execution(format!("'{name}' is not a service's name")));
    }
    Ok(())
}

/// The command that does it.
fn command(action: Action, name: &str, systemd: bool) -> String {
    if systemd {
        let verb = match action {
            Action::Status => "is-active --quiet",
            Action::Start => "start",
            Action::Stop => "stop",
            Action::Restart => "restart",
            Action::Reload => "reload",
            Action::Enable => "enable --quiet",
            Action::Disable => "disable --quiet",
            Action::IsEnabled => "is-enabled --quiet",
            Action::Exists => "cat",
        };
        return format!("systemctl {verb} {name}");
    }
    match action {
        Action::Enable => format!("update-rc.d {name} enable"),
        Action::Disable => format!("update-rc.d {name} disable"),
        Action::Status | Action::IsEnabled | Action::Exists => format!("service {name} status"),
        Action::Start => format!("service {name} start"),
        Action::Stop => format!("service {name} stop"),
        Action::Restart => format!("service {name} restart"),
        Action::Reload => format!("service {name} reload"),
    }
}

fn succeeds(context: &Context, action: Action, name: &str) -> Result<Value, CallError> {
    check_name(name)?;
    let program = Program { command: command(action, name, has_systemd()), ..Program::default() };
    let output = program.run(&context.job.children, &context.job.cancel).map_err(CallError::execution)?;
    Ok((output.retcode == 0).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_init_system() {
        for (action, systemd, line) in [
            (Action::Start, true, "systemctl start nginx"),
            (Action::Status, true, "systemctl is-active --quiet nginx"),
            (Action::Restart, false, "service nginx restart"),
            (Action::Disable, false, "update-rc.d nginx disable"),
        ] {
            assert_eq!(command(action, "nginx", systemd), line);
        }
    }

    #[test]
    fn only_names_are_services() {
        for bad in ["", "-x", "a b", "../x", "a;b"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_name("getty@tty1.service").is_ok());
    }
}

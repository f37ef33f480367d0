//! `service`: the services of this host, by systemd or by the scripts of System V.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brine_core::function::CallError;
use brine_core::glob::{fnmatch, is_pattern};
use brine_core::{Map, functions};

use super::programs::{argument, run};
use crate::context::Context;

/// What starts services here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// systemd runs.
    Systemd,
    /// Scripts in `/etc/init.d`.
    SysV,
}

impl Init {
    /// That of this host.
    pub fn of_host() -> Self {
        if Path::new("/run/systemd/system").is_dir() { Init::Systemd } else { Init::SysV }
    }

    /// The words of the call that does something to a service.
    fn command(self, action: &str, name: &str) -> Result<Vec<String>, CallError> {
        let name = argument(name)?;
        let words = match (self, action) {
            (Init::Systemd, "status") => vec!["systemctl".into(), "is-active".into(), unit(&name)],
            (Init::Systemd, "enabled") => vec!["systemctl".into(), "is-enabled".into(), unit(&name)],
            (Init::Systemd, "available") => {
                vec!["systemctl".into(), "show".into(), "--property=LoadState".into(), unit(&name)]
            }
            (Init::Systemd, action) => vec!["systemctl".into(), action.into(), unit(&name)],
            (Init::SysV, "enable") => vec!["update-rc.d".into(), name, "defaults".into()],
            (Init::SysV, "disable") => vec!["update-rc.d".into(), name, "disable".into()],
            (Init::SysV, action) => vec!["service".into(), name, action.into()],
        };
        Ok(words)
    }

    /// Whether the service runs.
    pub fn is_running(self, context: &Context, name: &str) -> Result<bool, CallError> {
        Ok(run(context, &self.command("status", name)?, &[])?.retcode == 0)
    }

    /// Whether there is such a service.
    pub fn is_available(self, context: &Context, name: &str) -> Result<bool, CallError> {
        match self {
            Init::Systemd => {
                let output = run(context, &self.command("available", name)?, &[])?;
                Ok(matches!(output.stdout.trim(), "LoadState=loaded" | "LoadState=masked"))
            }
            Init::SysV => Ok(scripts("/etc/init.d").iter().any(|script| script == name)),
        }
    }

    /// Whether the service starts with the host.
    pub fn is_enabled(self, context: &Context, name: &str) -> Result<bool, CallError> {
        match self {
            Init::Systemd => Ok(run(context, &self.command("enabled", name)?, &[])?.retcode == 0),
            Init::SysV => {
                Ok(["2", "3", "4", "5", "S"].iter().any(|level| starts(&scripts(&format!("/etc/rc{level}.d")), name)))
            }
        }
    }

    /// Does something to a service, and says whether that worked.
    pub fn act(self, context: &Context, action: &str, name: &str) -> Result<bool, CallError> {
        let output = run(context, &self.command(action, name)?, &[])?;
        if output.retcode != 0 {
            tracing::error!(jid = context.job.jid, service = name, action, "{}{}", output.stdout, output.stderr);
        }
        Ok(output.retcode == 0)
    }
}

functions! {
    module "service", context Context;

    /// Starts a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.start <service name>
    fn start(context, name: String, **_kwargs) {
        Ok(Init::of_host().act(context, "start", &name)?.into())
    }

    /// Stops a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.stop <service name>
    fn stop(context, name: String, **_kwargs) {
        Ok(Init::of_host().act(context, "stop", &name)?.into())
    }

    /// Stops and starts a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.restart <service name>
    fn restart(context, name: String, **_kwargs) {
        Ok(Init::of_host().act(context, "restart", &name)?.into())
    }

    /// Has a service read its configuration again.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.reload <service name>
    fn reload(context, name: String, **_kwargs) {
        Ok(Init::of_host().act(context, "reload", &name)?.into())
    }

    /// Whether a service runs; for a glob, all that match.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.status <service name>
    fn status(context, name: String, **_kwargs) {
        let init = Init::of_host();
        if !is_pattern(&name) {
            return Ok(init.is_running(context, &name)?.into());
        }
        let mut found = Map::new();
        for service in all(context, init)?.iter().filter(|service| fnmatch(&name, service)) {
            found.insert(service.into(), init.is_running(context, service)?.into());
        }
        Ok(found.into())
    }

    /// Whether there is such a service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.available sshd
    fn available(context, name: String) {
        Ok(Init::of_host().is_available(context, &name)?.into())
    }

    /// Whether there is no such service.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.missing sshd
    fn missing(context, name: String) {
        Ok((!Init::of_host().is_available(context, &name)?).into())
    }

    /// Has a service start with the host.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.enable <service name>
    fn enable(context, name: String, **_kwargs) {
        Ok(Init::of_host().act(context, "enable", &name)?.into())
    }

    /// Has a service not start with the host.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.disable <service name>
    fn disable(context, name: String, **_kwargs) {
        Ok(Init::of_host().act(context, "disable", &name)?.into())
    }

    /// Whether a service starts with the host.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.enabled <service name>
    fn enabled(context, name: String, **_kwargs) {
        Ok(Init::of_host().is_enabled(context, &name)?.into())
    }

    /// Whether there is such a service and it does not start with the host.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.disabled <service name>
    fn disabled(context, name: String) {
        let init = Init::of_host();
        Ok((init.is_available(context, &name)? && !init.is_enabled(context, &name)?).into())
    }

    /// The names of all services.
    ///
    /// CLI Example:
    ///
    ///     salt '*' service.get_all
    fn get_all(context) {
        Ok(all(context, Init::of_host())?.into())
    }
}

/// systemd's name of a service.
fn unit(name: &str) -> String {
    let kinds = [
        ".service",
        ".socket",
        ".timer",
        ".mount",
        ".path",
        ".target",
        ".slice",
        ".swap",
        ".automount",
        ".device",
        ".scope",
    ];
    if kinds.iter().any(|kind| name.ends_with(kind)) { name.to_owned() } else { format!("{name}.service") }
}

/// The names of the programs in a folder, sorted.
fn scripts(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let runs = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
    };
    let mut names: Vec<String> = entries
        .filter(|entry| runs(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Whether links such as `S01redis-server` start a service.
fn starts(links: &[String], name: &str) -> bool {
    links.iter().any(|link| {
        let place = link.strip_prefix('S').and_then(|rest| rest.strip_suffix(name));
        place.is_some_and(|place| !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn all(context: &Context, init: Init) -> Result<Vec<String>, CallError> {
    match init {
        Init::SysV => Ok(scripts("/etc/init.d")),
        Init::Systemd => {
            let words = ["systemctl", "list-unit-files", "--type=service", "--no-legend", "--no-pager", "--full"];
            let output = run(context, &words.map(str::to_owned), &[])?;
            Ok(unit_names(&output.stdout))
        }
    }
}

/// The services in a list of unit files, templates left out.
fn unit_names(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.split_whitespace().next()?.strip_suffix(".service"));
    let mut names: Vec<String> = names.filter(|name| !name.ends_with('@')).map(str::to_owned).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_handled_by_what_runs() {
        let said = |init: Init, action| init.command(action, "web").map(|words| words.join(" ")).unwrap();
        let mut told = String::new();
        for init in [Init::Systemd, Init::SysV] {
            for action in ["start", "reload", "status", "enable", "disable"] {
                told = format!("{told}{}\n", said(init, action));
            }
        }
        insta::assert_snapshot!(told, @r#"
        systemctl start web.service
        systemctl reload web.service
        systemctl is-active web.service
        systemctl enable web.service
        systemctl disable web.service
        service web start
        service web reload
        service web status
        update-rc.d web defaults
        update-rc.d web disable
        "#);
        assert_eq!(unit("a.socket"), "a.socket");
        assert!(Init::SysV.command("start", "--help").is_err());
    }

    #[test]
    fn links_that_start_a_service_have_its_whole_name() {
        let links = ["S01redis-server".to_owned(), "K01dbus".into(), "S02my-web".into()];
        for (name, enabled) in
            [("redis-server", true), ("dbus", false), ("server", false), ("web", false), ("my-web", true)]
        {
            assert_eq!(starts(&links, name), enabled, "{name}");
        }
    }

    #[test]
    fn systemds_list_is_read() {
        let text = "ssh.service enabled enabled\ngetty@.service enabled enabled\ncron.service disabled enabled\n\n";
        assert_eq!(unit_names(text), ["cron", "ssh"]);
    }
}

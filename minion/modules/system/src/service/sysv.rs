//! Services as scripts in `/etc/init.d`, with links for each runlevel.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::programs::{argument, which};

use super::manager::{ServiceOptions, Services};
use super::{names_in, systemd};

/// Services of System V scripts, also on hosts where systemd is installed but not running.
pub struct Scripts {
    /// Whether systemd is installed.
    pub is_offline: bool,
}

impl Services for Scripts {
    fn is_offline(&self) -> bool {
        self.is_offline
    }

    fn can_mask(&self) -> bool {
        self.is_offline
    }

    fn is_available(&self, context: &Context, name: &str) -> Result<bool, CallError> {
        Ok(script_names(context)?.iter().any(|service| service == name))
    }

    fn is_running(&self, context: &Context, name: &str, sig: Option<&str>) -> Result<bool, CallError> {
        sig.map_or_else(|| act(context, "status", name), |sig| Ok(has_process(sig)))
    }

    fn is_enabled(&self, context: &Context, name: &str) -> Result<bool, CallError> {
        Ok(enabled(context)?.iter().any(|enabled| enabled == name))
    }

    fn is_disabled(&self, context: &Context, name: &str) -> Result<bool, CallError> {
        Ok(self.is_available(context, name)? && !self.is_enabled(context, name)?)
    }

    fn is_masked(&self, context: &Context, name: &str, runtime: bool) -> Result<bool, CallError> {
        systemd::is_masked(context, name, runtime)
    }

    fn set_mask(&self, context: &Context, name: &str, masked: bool, runtime: bool) -> Result<(), CallError> {
        systemd::set_mask(context, name, masked, runtime)
    }

    fn act(&self, context: &Context, action: &str, name: &str, _how: ServiceOptions) -> Result<bool, CallError> {
        act(context, action, name)
    }

    fn all(&self, context: &Context) -> Result<Vec<String>, CallError> {
        script_names(context)
    }

    fn enabled(&self, context: &Context) -> Result<Vec<String>, CallError> {
        enabled(context)
    }

    fn disabled(&self, context: &Context) -> Result<Vec<String>, CallError> {
        let enabled = enabled(context)?;
        Ok(script_names(context)?.into_iter().filter(|name| !enabled.contains(name)).collect())
    }
}

/// Returns the current runlevel, or Debian's default if it is unknown, as in containers.
pub fn level(context: &Context) -> Result<String, CallError> {
    let words = [which("runlevel").map_or_else(|| "true".into(), |_| "runlevel".to_owned())];
    let output = run(context, &words, &[])?.stdout;
    Ok(output.split_whitespace().nth(1).unwrap_or("2").to_owned())
}

/// Returns the names of all services.
fn script_names(context: &Context) -> Result<Vec<String>, CallError> {
    let mut names = names_in("/etc/init.d");
    names.retain(|name| name != "README" && !name.starts_with('.'));
    names.extend(enabled(context)?);
    names.sort();
    names.dedup();
    Ok(names)
}

/// Returns the names of the services that are enabled at boot.
fn enabled(context: &Context) -> Result<Vec<String>, CallError> {
    let links = ["S".to_owned(), level(context)?].into_iter().flat_map(|level| names_in(&format!("/etc/rc{level}.d")));
    let mut names: Vec<String> = links.filter_map(|link| started(&link).map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Whether a process has this string in its command line. Calls of `salt-call` are ignored.
fn has_process(sig: &str) -> bool {
    let commands = names_in("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let mut commands = commands.filter_map(|number| std::fs::read(format!("/proc/{number}/cmdline")).ok());
    commands.any(|command| {
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        command.contains(sig) && !command.contains("salt-call")
    })
}

/// Performs an action on a service, and returns whether it succeeded.
fn act(context: &Context, action: &str, name: &str) -> Result<bool, CallError> {
    for words in commands(action, name, which("insserv").is_some())? {
        let output = run(context, &words, &[])?;
        if output.retcode != 0 {
            if action != "status" {
                context.set_retcode(output.retcode);
                tracing::error!(jid = context.job.jid, service = name, action, "{}{}", output.stdout, output.stderr);
            }
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the commands of an action on a service. Without `insserv`, `update-rc.d` creates the links by itself.
fn commands(action: &str, name: &str, insserv: bool) -> Result<Vec<Vec<String>>, CallError> {
    let name = argument(name)?;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    Ok(match action {
        "enable" => {
            let first = if insserv { words(&["insserv", &name]) } else { words(&["update-rc.d", &name, "defaults"]) };
            vec![first, words(&["update-rc.d", &name, "enable"])]
        }
        "disable" => vec![words(&["update-rc.d", &name, "disable"])],
        action => vec![words(&["service", &name, action])],
    })
}

/// Returns the service that a link such as `S01redis-server` starts.
pub fn started(link: &str) -> Option<&str> {
    let place = link.strip_prefix('S')?;
    let name = place.trim_start_matches(|c: char| c.is_ascii_digit());
    (name.len() < place.len() && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_managed_with_system_programs() {
        let output = |action, insserv| {
            let lines =
                commands(action, "web", insserv).map(|lines| lines.iter().map(|words| words.join(" ")).collect());
            lines.map(|lines: Vec<String>| lines.join("; ")).unwrap()
        };
        assert_eq!(output("start", true), "service web start");
        assert_eq!(output("status", true), "service web status");
        assert_eq!(output("enable", true), "insserv web; update-rc.d web enable");
        assert_eq!(output("enable", false), "update-rc.d web defaults; update-rc.d web enable");
        assert_eq!(output("disable", true), "update-rc.d web disable");
        assert!(commands("start", "--help", true).is_err());
    }

    #[test]
    fn start_links_contain_the_whole_name() {
        for (link, service) in [
            ("S01redis-server", Some("redis-server")),
            ("K01dbus", None),
            ("S02my-web7", Some("my-web7")),
            ("Sweb", None),
            ("S01", None),
        ] {
            assert_eq!(started(link), service, "{link}");
        }
    }
}

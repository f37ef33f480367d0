//! Builds the arguments of `ssh`, and the command line that the shell of the host runs.
//!
//! No shell is involved on this side. On the host, variable parts are quoted.

use brine_text::shell::quote;

use crate::program::Programs;
use crate::roster::RosterHost;

/// The fixed length of the field with the size of the program, in bytes: digits, padded with newlines, which the shell
/// of the host strips. A `read` in that shell could consume more than one line.
pub(crate) const SIZE: usize = 12;

/// The settings that apply to all hosts of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether unknown host keys are accepted (`-i`).
    pub ignore_host_keys: bool,
    /// Whether host keys are neither read nor stored (`--no-host-keys`).
    pub no_host_keys: bool,
    /// The timeout of connecting, in seconds.
    pub connect_timeout: u64,
    /// The interval of keep-alive checks, in seconds; 0 disables them.
    pub keepalive: Option<u64>,
    /// The number of unanswered keep-alive checks after which the connection is closed.
    pub keepalive_count: Option<u64>,
    /// Further options of `ssh` (`--ssh-option`), each without `-o`.
    pub ssh_options: Vec<String>,
}

/// Returns the arguments of `ssh` for this host and command. `config` is the configuration file, that of the host if unset.
pub(crate) fn arguments(host: &RosterHost, options: &Options, config: Option<&str>, line: &str) -> Vec<String> {
    let config = config.or(host.config_file.as_deref());
    let mut all: Vec<String> = config.iter().flat_map(|file| ["-F".to_owned(), (*file).to_owned()]).collect();
    let mut option = |name: &str, value: &str| all.extend(["-o".to_owned(), format!("{name}={value}")]);
    option("ConnectTimeout", &host.timeout.unwrap_or(options.connect_timeout).to_string());
    option("ServerAliveInterval", &options.keepalive.unwrap_or(15).to_string());
    option("ServerAliveCountMax", &options.keepalive_count.unwrap_or(4).to_string());
    option("NumberOfPasswordPrompts", "1");
    if host.passwd.is_none() && host.priv_passwd.is_none() {
        option("BatchMode", "yes");
    }
    if options.ignore_host_keys {
        option("StrictHostKeyChecking", "no");
    }
    if options.no_host_keys {
        option("StrictHostKeyChecking", "no");
        option("UserKnownHostsFile", "/dev/null");
        option("GlobalKnownHostsFile", "/dev/null");
        // Suppresses the notice that a host key has been stored.
        option("LogLevel", "ERROR");
    }
    if host.identities_only {
        option("IdentitiesOnly", "yes");
    }
    if let Some(user) = &host.user {
        option("User", user);
    }
    if let Some(port) = host.port {
        option("Port", &port.to_string());
    }
    if let Some(key) = host.key.as_deref().filter(|key| *key != "agent-forwarding") {
        option("IdentityFile", key);
    } else if host.key.is_some() {
        option("ForwardAgent", "yes");
    }
    if host.tty {
        // A tilde at the start of a line would be an escape sequence of ssh.
        option("EscapeChar", "none");
    }
    for one in options.ssh_options.iter().chain(&host.ssh_options) {
        all.extend(["-o".to_owned(), one.clone()]);
    }
    // `-tt` allocates a terminal even though standard input is not one.
    let terminal = if host.tty { "-tt" } else { "-T" };
    all.extend([terminal.to_owned(), "--".to_owned(), host.host.clone(), line.to_owned()]);
    all
}

/// Returns the command that switches the terminal to raw mode, if the host uses one.
fn plain_terminal(host: &RosterHost) -> &'static str {
    if host.tty { "stty raw -echo; " } else { "" }
}

/// Returns the command line that receives the `ssh_pre_flight` script on standard input and runs it with its arguments.
/// Unless `always` is set, it is skipped if the directory of the program exists.
pub(crate) fn pre_flight(host: &RosterHost, always: bool) -> String {
    let words = std::iter::once("/bin/sh \"$t\"".to_owned()).chain(host.pre_flight_args.iter().map(|arg| quote(arg)));
    let run = words.collect::<Vec<_>>().join(" ");
    let skip = if always { String::new() } else { format!("[ ! -d {} ] || exit 0; ", directory(host)) };
    format!("{skip}umask 077; t=$(mktemp) && cat > \"$t\" && {run}; s=$?; rm -f \"$t\"; exit $s")
}

/// Returns the `sudo` prefix that runs a command as another user; empty if the host sets none.
fn sudo(host: &RosterHost) -> String {
    match (&host.sudo_user, host.sudo) {
        (Some(user), _) => format!("sudo -n -u {} -- ", quote(user)),
        (None, true) => "sudo -n -- ".to_owned(),
        (None, false) => String::new(),
    }
}

/// Returns the command line for a raw command (`-r`).
pub(crate) fn raw(host: &RosterHost, command: &str) -> String {
    match sudo(host).as_str() {
        "" => command.to_owned(),
        sudo => format!("{sudo}/bin/sh -c {}", quote(command)),
    }
}

/// Returns the directory of the program on the host, quoted for the shell.
fn directory(host: &RosterHost) -> String {
    host.thin_dir.as_deref().map_or_else(|| "\"$HOME/.cache/brine-ssh\"".to_owned(), quote)
}

/// Returns the command line that starts the program on the host. It communicates by lines that begin with `token`,
/// which distinguishes them from the output of the login:
///
/// - `TOKEN MACHINE SYSTEM MACHINE`: there is no program for this machine.
/// - `TOKEN NEED SYSTEM MACHINE [DECOMPRESSOR]`: the host does not have the program, and can decompress it with the
///   named one. It then reads the size of the program in [`SIZE`] bytes, followed by the program.
/// - `TOKEN READY`: the program is started now.
/// - `TOKEN ERROR TEXT`: the program cannot be started.
///
/// The hash is computed with `openssl`, which uses hardware acceleration, or else with `sha256sum`. After a
/// verification the inode, size and change time of the file are stored next to it, and the file is only hashed again if
/// they differ. The change time cannot be set by users.
pub(crate) fn start(host: &RosterHost, programs: &Programs, token: &str, wipe: bool) -> String {
    let machines = programs.hashes().map(|(machine, hash)| format!("{}) x={hash};;", quote(machine)));
    let machines = machines.collect::<Vec<_>>().join(" ");
    // With sudo another user runs the program, and keeps its own cache.
    let mode = if host.sudo_user.is_some() { "755" } else { "700" };
    let set_path = host.set_path.as_deref().map(|path| format!("PATH={path}; export PATH; ")).unwrap_or_default();
    let umask = quote(host.umask.as_deref().unwrap_or("077"));
    let end = if wipe { "; s=$?; rm -rf \"$d\"; exit $s" } else { "" };
    let exec = if wipe { "" } else { "exec " };
    // On a terminal, stderr would mix with the messages.
    let errors = if host.tty { " 2>/dev/null" } else { "" };
    format!(
        "{terminal}{set_path}umask {umask}; m=$(uname -sm); \
         case \"$m\" in {machines} *) echo \"{token} MACHINE $m\"; exit 77;; esac; d={directory}; f=\"$d/brine-$x\"; \
         mkdir -p \"$d\" 2>/dev/null && [ ! -L \"$d\" ] && [ -O \"$d\" ] && chmod {mode} \"$d\" || \
         {{ echo \"{token} ERROR the directory $d cannot be written to or belongs to another user: set thin_dir in the roster\"; exit 77; }}; \
         h() {{ {{ openssl dgst -sha256 -r \"$1\" 2>/dev/null || sha256sum \"$1\" 2>/dev/null; }} | cut -d' ' -f1; }}; \
         c() {{ stat -c 'file %i %s %z' \"$f\" 2>/dev/null || echo unknown; }}; v=\"$f.verified\"; \
         w() {{ if [ \"$1\" != unknown ]; then echo \"$1\" > \"$v\"; fi; }}; \
         k() {{ n=$(c); [ \"$(h \"$f\")\" = $x ] && w \"$n\"; }}; \
         if [ ! -x \"$f\" ] || {{ [ \"$(c)\" != \"$(cat \"$v\" 2>/dev/null)\" ] && ! k; }}; then \
         g=; for p in {compressors}; do if command -v $p >/dev/null; then g=$p; break; fi; done; echo \"{token} NEED $m $g\"; n=$(dd bs=1 count={SIZE} 2>/dev/null); \
         t=$(mktemp \"$d/new.XXXXXX\") && head -c \"$n\" | if [ \"$g\" ]; then $g -dc; else cat; fi > \"$t\" && \
         [ \"$(h \"$t\")\" = $x ] && chmod {mode} \"$t\" && mv -f \"$t\" \"$f\" && w \"$(c)\" || \
         {{ rm -f \"$t\"; echo \"{token} ERROR the program did not arrive whole in $d: is there space, and openssl or sha256sum?\"; exit 77; }}; fi; \
         echo \"{token} READY\"; {exec}{sudo}\"$f\" {command}{errors}{end}",
        command = brine_ssh_host::COMMAND,
        compressors = programs.compressors().iter().map(|one| one.name()).collect::<Vec<_>>().join(" "),
        terminal = plain_terminal(host),
        directory = directory(host),
        sudo = sudo(host),
    )
}

#[cfg(test)]
mod tests;

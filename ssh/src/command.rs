//! The arguments of `ssh`, and the one line that the shell of the host runs.
//!
//! Nothing here goes through a shell on this side. On the host, what varies is quoted.

use brine_text::shell::quote;

use crate::program::Programs;
use crate::roster::Host;

/// The number of bytes that hold the size of the program: digits, and newlines, which the shell of the host removes. A `read`
/// in that shell could take more than the line.
pub(crate) const SIZE: usize = 12;

/// The settings of a run that hold for all hosts.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether unknown host keys are accepted (`-i`).
    pub ignore_host_keys: bool,
    /// Whether host keys are neither read nor stored (`--no-host-keys`).
    pub no_host_keys: bool,
    /// The seconds that connecting may take.
    pub connect_timeout: u64,
    /// The seconds between two checks that a host is there; 0 for none.
    pub keepalive: Option<u64>,
    /// The number of checks without an answer after which the connection ends.
    pub keepalive_count: Option<u64>,
    /// Further options of `ssh` (`--ssh-option`), each without `-o`.
    pub ssh_options: Vec<String>,
}

/// Returns the arguments of `ssh` for this host and command. `config` is the configuration file, that of the host if unset.
pub(crate) fn arguments(host: &Host, options: &Options, config: Option<&str>, line: &str) -> Vec<String> {
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
        // Nor does it say each time that it stores the key.
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
        // A tilde at the beginning of a line would be a command for ssh.
        option("EscapeChar", "none");
    }
    for one in options.ssh_options.iter().chain(&host.ssh_options) {
        all.extend(["-o".to_owned(), one.clone()]);
    }
    // A terminal although standard input is none.
    let terminal = if host.tty { "-tt" } else { "-T" };
    all.extend([terminal.to_owned(), "--".to_owned(), host.host.clone(), line.to_owned()]);
    all
}

/// Returns the line that makes a terminal pass on all bytes as they are, if the host is to have one.
fn plain_terminal(host: &Host) -> &'static str {
    if host.tty { "stty raw -echo; " } else { "" }
}

/// Returns the line that reads the script of `ssh_pre_flight` and runs it with its arguments, unless the directory of the
/// program is there.
pub(crate) fn pre_flight(host: &Host, always: bool) -> String {
    let words = std::iter::once("/bin/sh \"$t\"".to_owned()).chain(host.pre_flight_args.iter().map(|arg| quote(arg)));
    let run = words.collect::<Vec<_>>().join(" ");
    let skip = if always { String::new() } else { format!("[ ! -d {} ] || exit 0; ", directory(host)) };
    format!("{skip}umask 077; t=$(mktemp) && cat > \"$t\" && {run}; s=$?; rm -f \"$t\"; exit $s")
}

/// Returns the prefix that makes a command run as another user.
fn sudo(host: &Host) -> String {
    match (&host.sudo_user, host.sudo) {
        (Some(user), _) => format!("sudo -n -u {} -- ", quote(user)),
        (None, true) => "sudo -n -- ".to_owned(),
        (None, false) => String::new(),
    }
}

/// Returns the line for a command of the user (`-r`).
pub(crate) fn raw(host: &Host, command: &str) -> String {
    match sudo(host).as_str() {
        "" => command.to_owned(),
        sudo => format!("{sudo}/bin/sh -c {}", quote(command)),
    }
}

/// Returns the directory of the program on the host, as a word of the shell.
fn directory(host: &Host) -> String {
    host.thin_dir.as_deref().map_or_else(|| "\"$HOME/.cache/brine-ssh\"".to_owned(), quote)
}

/// Returns the line that starts the program for its machine on the host. If there is none, it prints `TOKEN MACHINE SYSTEM
/// MACHINE`. If the host does not have it, it prints `TOKEN NEED SYSTEM MACHINE` and, as the last word, the name of its program
/// for decompression if it has one; then it reads the size of the program in [`SIZE`] bytes, and the program. It prints `TOKEN READY` when it
/// starts the program, and `TOKEN ERROR TEXT` if that is impossible. `token` distinguishes these lines from what the login
/// prints.
///
/// The hash is that of `openssl`, which uses the instructions of the processor for it, or otherwise of `sha256sum`. Once it is
/// verified, the file's inode, size and time of change are kept beside it; nobody but the system can set
/// that time, so the whole file is read again only if they differ.
pub(crate) fn start(host: &Host, programs: &Programs, token: &str, wipe: bool) -> String {
    let machines = programs.hashes().map(|(machine, hash)| format!("{}) x={hash};;", quote(machine)));
    let machines = machines.collect::<Vec<_>>().join(" ");
    // Another user, such as root by sudo, reads the program and keeps its own cache.
    let mode = if host.sudo_user.is_some() { "755" } else { "700" };
    let set_path = host.set_path.as_deref().map(|path| format!("PATH={path}; export PATH; ")).unwrap_or_default();
    let umask = quote(host.umask.as_deref().unwrap_or("077"));
    let end = if wipe { "; s=$?; rm -rf \"$d\"; exit $s" } else { "" };
    let exec = if wipe { "" } else { "exec " };
    // On a terminal, errors would get between the messages.
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
mod tests {
    use super::*;

    fn host() -> Host {
        Host { host: "web1.example.com".into(), ..Host::default() }
    }

    #[test]
    fn arguments_end_with_the_host_and_one_line() {
        let options = Options { connect_timeout: 60, ..Options::default() };
        let last = |host: &Host| {
            let all = arguments(host, &options, None, "line 'x'");
            all[all.len() - 4..].join(" ")
        };
        assert_eq!(last(&host()), "-T -- web1.example.com line 'x'");
        let all = |host: Host| arguments(&host, &options, None, "").join(" ");
        for (host, part, has) in [
            (host(), "-o BatchMode=yes", true),
            (Host { passwd: Some("s".into()), ..host() }, "BatchMode", false),
            (Host { passwd: Some("s3cret".into()), ..host() }, "s3cret", false),
            (Host { user: Some("me".into()), ..host() }, "-o User=me", true),
            (Host { port: Some(2222), ..host() }, "-o Port=2222", true),
            (Host { key: Some("/k y".into()), ..host() }, "-o IdentityFile=/k y", true),
            (Host { key: Some("agent-forwarding".into()), ..host() }, "-o ForwardAgent=yes", true),
            (Host { ssh_options: vec!["ProxyJump=a".into()], ..host() }, "-o ProxyJump=a", true),
            (Host { timeout: Some(5), ..host() }, "-o ConnectTimeout=5", true),
            (Host { tty: true, ..host() }, "-tt -- web1.example.com", true),
        ] {
            assert_eq!(all(host).contains(part), has, "{part}");
        }
    }

    #[test]
    fn variable_parts_are_quoted_for_the_shell_of_the_host() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("own");
        std::fs::write(&own, "").unwrap();
        let programs = Programs::read(directory.path(), &own).unwrap();
        let line = |host: Host| start(&host, &programs, "T", false);
        assert!(line(host()).contains("d=\"$HOME/.cache/brine-ssh\""));
        assert!(line(Host { thin_dir: Some("/a'; rm -rf /".into()), ..host() }).contains(r#"d='/a'"'"'; rm -rf /'"#));
        let other = line(Host { sudo_user: Some("a; b".into()), ..host() });
        assert!(other.ends_with("exec sudo -n -u 'a; b' -- \"$f\" ssh-target"), "{other}");
        let script = Host { pre_flight_args: vec!["a".into(), "$(id)".into()], ..host() };
        let flight = pre_flight(&script, false);
        assert!(flight.starts_with("[ ! -d \"$HOME/.cache/brine-ssh\" ] || exit 0; "), "{flight}");
        assert!(flight.contains("/bin/sh \"$t\" a '$(id)';"), "{flight}");
        assert!(pre_flight(&script, true).starts_with("umask"));
        let terminal = line(Host { tty: true, ..host() });
        assert!(
            terminal.starts_with("stty raw -echo; umask") && terminal.ends_with("ssh-target 2>/dev/null"),
            "{terminal}"
        );
        assert_eq!(raw(&Host { sudo: true, ..host() }, "id -u"), "sudo -n -- /bin/sh -c 'id -u'");
        assert_eq!(raw(&host(), "id -u"), "id -u");
        assert!(start(&host(), &programs, "T", true).ends_with("rm -rf \"$d\"; exit $s"));
    }
}

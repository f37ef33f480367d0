//! The processes of this host: daemons by their command lines, and who holds a port.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The maximum size of what is read of a file of `/proc`, in bytes.
const MAX_READ: u64 = 4 << 20;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The PID.
    pub pid: u32,
    /// The user and group.
    pub owner: (u32, u32),
    /// The state in `/proc/PID/stat`, such as `S` or `T`.
    pub state: char,
    /// The command line.
    pub words: Vec<String>,
}

/// Reads a file of `/proc` up to a bound.
pub fn read(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_READ).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

impl Process {
    /// Returns a process that lives.
    pub fn of_pid(pid: u32) -> Option<Self> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let owner = fs::metadata(&directory).map(|status| (status.uid(), status.gid())).ok()?;
        let stat = read(directory.join("stat"))?;
        // The state follows the name, which may contain blanks and parentheses.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let state = char::from(*stat.get(end + 2)?);
        let line = read(directory.join("cmdline"))?;
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let words = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        (!"ZX".contains(state)).then_some(Process { pid, owner, state, words })
    }

    /// Whether this is the daemon of a tool, of Brine or of Salt.
    pub fn is_daemon(&self, tool: &str) -> bool {
        let name = |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
        let command = tool.strip_prefix("salt-").unwrap_or(tool);
        let Some(first) = self.words.first().and_then(name) else { return false };
        if first == tool || first.starts_with("brine") {
            return first == tool || self.words.get(1).is_some_and(|word| word == tool || word == command);
        }
        // `python3 /usr/bin/salt-master`, with options of Python.
        first.starts_with("python") && self.words.iter().skip(1).take(4).any(|word| name(word).as_deref() == Some(tool))
    }

    /// Returns the directory of the configuration on the command line, without links; that of the environment or the
    /// default one if it is not named. `None` if it is not known.
    pub fn config_dir(&self) -> Option<PathBuf> {
        let mut words = self.words.iter().skip(1);
        let mut named = None;
        while let Some(word) = words.next() {
            let value = match word.as_str() {
                "-c" | "--config-dir" => words.next().cloned(),
                long if long.starts_with("--config-dir=") => long.split_once('=').map(|(_, path)| path.to_owned()),
                short if short.starts_with("-c") => short.get(2..).map(str::to_owned),
                _ => None,
            };
            named = value.or(named);
        }
        let named = named.or_else(|| {
            let environment = read(format!("/proc/{}/environ", self.pid))?;
            let mut entries = environment.split(|byte| *byte == 0);
            let value = entries.find_map(|entry| entry.strip_prefix(b"SALT_CONFIG_DIR="))?;
            Some(String::from_utf8_lossy(value).into_owned())
        });
        let named = named.filter(|path| !path.is_empty()).unwrap_or_else(|| brine_config::DEFAULT_DIRECTORY.to_owned());
        let path = if named.starts_with('/') {
            PathBuf::from(named)
        } else {
            fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()?.join(named)
        };
        Some(fs::canonicalize(&path).unwrap_or(path))
    }

    /// Returns the soft limit of open files, and the number of open files; `None` where this user may not read it.
    pub fn descriptors(&self) -> (Option<u64>, Option<u64>) {
        let limits = read(format!("/proc/{}/limits", self.pid)).unwrap_or_default();
        let limits = String::from_utf8_lossy(&limits).into_owned();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let soft = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let open = fs::read_dir(format!("/proc/{}/fd", self.pid)).ok().map(|entries| entries.count() as u64);
        (soft, open)
    }

    /// Returns the name of the program, for people.
    pub fn name(&self) -> String {
        let words: Vec<&str> = self.words.iter().take(3).map(String::as_str).collect();
        let name = words.join(" ");
        if name.is_empty() { "a process of the kernel".to_owned() } else { name.chars().take(80).collect() }
    }
}

/// Returns the PIDs of this host.
fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process is one of a container, which has files and ports of its own. One that this user may not see into
/// counts as the host's.
fn is_elsewhere(pid: u32) -> bool {
    let space = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    space(&pid.to_string()).zip(space("self")).is_some_and(|(one, own)| one != own)
}

/// Returns the daemons of a tool with this configuration, the oldest first, of users who are trusted: another user can
/// start a process that looks like a daemon.
pub fn daemons(tool: &str, config_dir: &Path, is_trusted: impl Fn(u32) -> bool) -> Vec<Process> {
    let config_dir = fs::canonicalize(config_dir).unwrap_or_else(|_| config_dir.to_owned());
    let mut processes: Vec<Process> = pids()
        .into_iter()
        .filter_map(Process::of_pid)
        .filter(|process| process.is_daemon(tool) && is_trusted(process.owner.0) && !is_elsewhere(process.pid))
        .filter(|process| process.config_dir().as_ref() == Some(&config_dir))
        .collect();
    processes.sort_by_key(|process| process.pid);
    processes
}

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// The user of the socket.
    pub uid: u32,
    /// The inode.
    pub inode: u64,
}

/// A line of `/proc/net/tcp` or `tcp6`: local and remote address, state, user, inode.
struct Line {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    state: u8,
    uid: u32,
    inode: u64,
}

fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = if address.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(word(0)?))
    } else {
        let mut bytes = [0u8; 16];
        for (part, at) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
            part.copy_from_slice(&word(at)?);
        }
        Ipv6Addr::from(bytes).to_canonical()
    };
    Some((address, port))
}

fn lines(text: &str) -> impl Iterator<Item = Line> + '_ {
    text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(Line {
            local: address(fields.get(1)?)?,
            remote: address(fields.get(2)?)?,
            state: u8::from_str_radix(fields.get(3)?, 16).ok()?,
            uid: fields.get(7)?.parse().ok()?,
            inode: fields.get(9)?.parse().ok()?,
        })
    })
}

fn tables() -> String {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| read(path).unwrap_or_default());
    files.map(|file| String::from_utf8_lossy(&file).into_owned()).concat()
}

/// The states of `/proc/net/tcp`.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;

/// Returns the listening sockets of this host's network.
pub fn listening() -> Vec<Listening> {
    listening_in(&tables())
}

fn listening_in(text: &str) -> Vec<Listening> {
    let open = lines(text).filter(|line| line.state == LISTEN);
    open.map(|line| Listening { address: line.local.0, port: line.local.1, uid: line.uid, inode: line.inode }).collect()
}

/// Returns whether a process has a connection to one of these ports; `None` if this user may not see its files.
pub fn is_connected(pid: u32, ports: &[u16]) -> Option<bool> {
    let own = sockets_of(pid)?;
    let table = tables();
    Some(
        lines(&table)
            .any(|line| line.state == ESTABLISHED && ports.contains(&line.remote.1) && own.contains(&line.inode)),
    )
}

/// Returns the inodes of the sockets of a process; `None` if this user may not see them.
fn sockets_of(pid: u32) -> Option<Vec<u64>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    Some(links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect())
}

/// Returns the process of each of these sockets, as far as this user may see it.
pub fn holders(inodes: &[u64]) -> HashMap<u64, Process> {
    let mut holders = HashMap::new();
    if inodes.is_empty() {
        return holders;
    }
    for pid in pids() {
        for inode in sockets_of(pid).unwrap_or_default().into_iter().filter(|inode| inodes.contains(inode)) {
            if let Some(process) = Process::of_pid(pid) {
                holders.entry(inode).or_insert(process);
            }
        }
        if holders.len() == inodes.len() {
            break;
        }
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(words: &[&str]) -> Process {
        Process { pid: 0, owner: (0, 0), state: 'S', words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    #[test]
    fn daemons_are_known_by_their_command_lines() {
        for (words, expected) in [
            (&["/usr/bin/salt-master", "-d"][..], true),
            (&["/usr/bin/brine", "master"], true),
            (&["target/debug/brine", "salt-master", "-c", "etc"], true),
            (&["/usr/bin/python3", "/usr/bin/salt-master"], true),
            (&["/usr/bin/python3", "-bb", "/usr/bin/salt-master", "-l", "info"], true),
            (&["brine", "minion"], false),
            (&["vi", "salt-master"], false),
            (&["salt-minion"], false),
            (&[], false),
        ] {
            assert_eq!(process(words).is_daemon("salt-master"), expected, "{words:?}");
        }
    }

    #[test]
    fn the_directory_of_the_configuration_is_on_the_command_line() {
        for (words, expected) in [
            (&["salt-master"][..], "/etc/salt"),
            (&["salt-master", "-c", "/nonexistent/a"], "/nonexistent/a"),
            (&["salt-master", "-c/nonexistent/a", "-d"], "/nonexistent/a"),
            (&["salt-master", "--config-dir=/nonexistent/b"], "/nonexistent/b"),
            (&["salt-master", "--config-dir", "/nonexistent/c"], "/nonexistent/c"),
        ] {
            assert_eq!(process(words).config_dir().unwrap(), Path::new(expected), "{words:?}");
        }
        assert_eq!(process(&["salt-master", "-c", "relative"]).config_dir(), None);
    }

    #[test]
    fn listening_sockets_are_parsed() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                    0: 0100007F:1199 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105        0 4711 1\n\
                    1: 0100007F:119A 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n\
                    2: 00000000000000000000000001000000:11A0 00000000000000000000000000000000:0000 0A 0:0 0:0 0 7 0 4713 1\n";
        let actual = listening_in(text);
        let expected = [("127.0.0.1", 4505, 105, 4711), ("::1", 4512, 7, 4713)];
        let expected = expected.map(|(address, port, uid, inode)| Listening {
            address: address.parse().unwrap(),
            port,
            uid,
            inode,
        });
        assert_eq!(actual, expected);
    }

    #[test]
    fn the_holder_of_a_port_is_found() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let open = listening().into_iter().find(|one| one.port == port).unwrap();
        assert_eq!(holders(&[open.inode])[&open.inode].pid, std::process::id());
    }
}

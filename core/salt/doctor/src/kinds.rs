//! The kinds of findings, in the order in which they are reported: causes before what follows from them.

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information: what was not examined, what is as it should be but good to know.
    Note,
    /// It works, but probably not as intended, or not for long.
    Warning,
    /// A part of the installation does not work, or is not safe.
    Error,
}

impl Severity {
    /// Returns the name in results and documents.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A kind of findings.
#[derive(Debug)]
pub struct Kind {
    /// The name, which stays the same between releases.
    pub name: &'static str,
    /// The severity of all findings of this kind.
    pub severity: Severity,
    /// What it means, in one sentence.
    pub about: &'static str,
    /// The mend in general; each finding has its own command.
    pub mend: &'static str,
    /// The names of the kinds that follow from this one: they are left out for the same role.
    pub hides: &'static [&'static str],
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Kind {
    /// Returns the place in the order of [`KINDS`].
    pub fn rank(&self) -> usize {
        KINDS.iter().position(|kind| *kind == self).unwrap_or(KINDS.len())
    }
}

macro_rules! kinds {
    ($($constant:ident $name:literal $severity:ident: $about:literal, $mend:literal $(, hides $hides:expr)?;)*) => {
        $(
            #[doc = $about]
            pub static $constant: Kind = Kind {
                name: $name,
                severity: Severity::$severity,
                about: $about,
                mend: $mend,
                hides: kinds!(@ $($hides)?),
            };
        )*

        /// All kinds, causes first.
        pub static KINDS: &[&Kind] = &[$(&$constant),*];
    };
    (@) => { &[] };
    (@ $hides:expr) => { &$hides };
}

/// What a daemon that does not run cannot do.
const OF_DAEMON: [&str; 14] = [
    "port-closed",
    "port-blocked",
    "daemon-hung",
    "descriptors-low",
    "minion-key-refused",
    "master-key-changed",
    "minion-not-connected",
    "minion-never-connected",
    "minion-away",
    "minion-silent",
    "reactor-behind",
    "dead-letters",
    "returns-waiting",
    "store-failed",
];

kinds! {
    NOT_INSTALLED "not-installed" Error: "This host has neither the configuration of a master or minion, nor a running daemon, nor a unit of one.", "name the directory of the configuration with `-c`";
    CONFIG_INVALID "config-invalid" Error: "The configuration cannot be read or parsed, so that nothing else of this role can be examined.", "correct the file at the line that is named";
    USER_MISSING "user-missing" Error: "The option `user` names a user that does not exist.", "create the user with `useradd`", hides ["directory-owner", "daemon-down"];
    DISK_READ_ONLY "disk-read-only" Error: "A file system that the daemon writes is mounted read-only.", "`mount -o remount,rw`, and see `dmesg` for the reason";
    DISK_FULL "disk-full" Error: "A file system that the daemon writes has no space left.", "free space; `du` shows what takes it", hides ["disk-low", "store-failed"];
    INODES_FULL "inodes-full" Error: "A file system that the daemon writes has no inodes left.", "remove small files; `du --inodes` shows where they are", hides ["store-failed"];
    DIRECTORY_INVALID "directory-invalid" Error: "A directory of the daemon is a file, or a link that leads nowhere.", "move the file away", hides ["daemon-down", "config-refused"];
    DIRECTORY_OWNER "directory-owner" Error: "A directory or the log of the daemon belongs to another user than the one the daemon runs as.", "`chown`, or `brine doctor --fix`";
    DIRECTORY_MODE "directory-mode" Error: "The mode of a directory locks the daemon out, or lets other users in.", "`chmod`, or `brine doctor --fix`";
    DIRECTORY_UNTRUSTED "directory-untrusted" Error: "Another user can exchange a directory of the daemon, and so its keys: a directory on the way to it is writable by others.", "`chmod go-w`";
    KEY_UNREADABLE "key-unreadable" Error: "A key of this daemon is damaged or cannot be read.", "restore the file, or remove it: the next start makes a new key, which the other side has to accept";
    KEY_OWNER "key-owner" Error: "A key file belongs to another user than the one the daemon runs as.", "`chown`, or `brine doctor --fix`";
    KEY_MODE "key-mode" Error: "A private key can be read by other users, or not by the daemon, or a key file can be written by other users.", "`chmod`, or `brine doctor --fix`";
    CONFIG_REFUSED "config-refused" Error: "The daemon does not start with this configuration.", "correct the option", hides ["config-broken", "daemon-down"];
    CERTIFICATE_UNREADABLE "certificate-unreadable" Error: "The certificate of the REST API, or its key, is missing or damaged, or they do not belong together.", "correct `ssl_crt` and `ssl_key`";
    CERTIFICATE_EXPIRED "certificate-expired" Error: "The certificate of the REST API has expired, or is not valid yet.", "renew the certificate; a generated one is made anew once its files are removed", hides ["certificate-names"];
    PORT_TAKEN "port-taken" Error: "Another process holds a port of the master or of the REST API.", "stop that process, or set the option of the port", hides ["port-closed", "port-blocked", "daemon-down", "unit-failed"];
    UNIT_MASKED "unit-masked" Error: "The unit of the daemon is masked, so that nothing can start it.", "`systemctl unmask`", hides ["daemon-down", "unit-disabled"];
    UNIT_FAILED "unit-failed" Error: "The unit of the daemon has failed, or restarts again and again.", "correct what the log says, then `systemctl restart`", hides ["daemon-down"];
    DAEMON_DOWN "daemon-down" Error: "The daemon does not run.", "start it", hides OF_DAEMON;
    DAEMON_STOPPED "daemon-stopped" Error: "The process of the daemon is stopped by a signal or a debugger.", "`kill -CONT`", hides OF_DAEMON;
    DESCRIPTORS_EXHAUSTED "descriptors-exhausted" Error: "The daemon has nearly as many open files as its limit allows.", "raise `LimitNOFILE` of the unit, or `ulimit -n`", hides ["descriptors-low", "daemon-hung", "port-blocked", "minion-away", "minion-silent"];
    DAEMON_HUNG "daemon-hung" Error: "The daemon runs and does not answer.", "restart it", hides ["port-blocked", "dead-letters", "reactor-behind"];
    PORT_CLOSED "port-closed" Error: "The daemon runs and does not listen on a port of its configuration: it was started with another one.", "restart it", hides ["port-blocked", "daemon-hung"];
    PORT_BLOCKED "port-blocked" Error: "A port of the master or of the REST API cannot be reached from its own host: a firewall, or an address that is not there.", "open the port";
    STORE_FAILED "store-failed" Error: "The store of the master refuses writes because the disk failed.", "see the master's log, free space, restart the master";
    NAME_UNRESOLVED "name-unresolved" Error: "The name of a master has no address.", "correct the option `master` or `syndic_master`, or the name server", hides ["master-unreachable"];
    MASTER_UNREACHABLE "master-unreachable" Error: "A master does not answer at its request port (4506).", "start the master, or open the port", hides ["minion-not-connected"];
    PUBLISH_UNREACHABLE "publish-unreachable" Error: "A master does not answer at its publish port (4505), so that jobs do not arrive.", "open the port", hides ["minion-not-connected"];
    MASTER_KEY_CHANGED "master-key-changed" Error: "The key of a master is not the one that this minion trusts.", "compare the fingerprints, then remove the old key", hides ["minion-not-connected"];
    MINION_KEY_REFUSED "minion-key-refused" Error: "The master has rejected this minion's key, or knows another one for its id.", "`salt-key -d` on the master, and accept the key of this minion", hides ["minion-not-connected"];
    MINION_KEY_PENDING "minion-key-pending" Error: "The master has not accepted this minion's key yet.", "`salt-key -a` on the master", hides ["minion-not-connected"];
    MASTER_REFUSES "master-refuses" Error: "A master answers and does not open a session for this minion.", "see the reason", hides ["minion-not-connected"];
    KEY_DENIED "key-denied" Error: "Minions claim ids that the master knows with another key: they were reinstalled or cloned, or somebody pretends.", "compare the fingerprints, then `salt-key -d` and accept the new key, or give the clone another id";
    KEYS_UNREADABLE "keys-unreadable" Error: "Key files of minions are damaged or cannot be read.", "`salt-key -d`, and accept the minion's key again";
    KEYS_DOUBLED "keys-doubled" Error: "Several ids have the same key: the minions are clones of one image.", "remove the key on the clones, restart them, and accept their new keys";
    CLOCK_DIFFERS "clock-differs" Warning: "The clocks of master and minion differ, or this host's clock went back.", "synchronise the clocks";
    MINION_SILENT "minion-silent" Error: "Minions are connected and do not answer.", "restart the minion";
    MINION_NEVER "minion-never-connected" Error: "Accepted minions have never been seen by this master.", "`brine doctor` on the minion";
    MINION_AWAY "minion-away" Error: "Accepted minions are not connected any more.", "start the host or its minion, or `salt-key -d` if it is gone";
    MINION_NOT_CONNECTED "minion-not-connected" Error: "The minion's daemon runs and has no connection to the publish port of any master, although they answer.", "restart the minion";
    CONFIG_BROKEN "config-broken" Error: "A part of the configuration never works.", "correct the option";
    UNIT_DISABLED "unit-disabled" Warning: "The unit of the daemon is disabled: it does not start with the host.", "`systemctl enable`";
    PID_STALE "pid-stale" Warning: "The PID file names a process that does not exist, or is another program.", "remove the file, or `brine doctor --fix`";
    SOCKET_STALE "socket-stale" Warning: "A socket of a daemon that does not run was left over.", "remove the file, or `brine doctor --fix`";
    DIRECTORY_MISSING "directory-missing" Warning: "A directory of the daemon does not exist: it was removed while the daemon runs, or nothing was started yet.", "`mkdir`, or `brine doctor --fix`";
    DISK_LOW "disk-low" Warning: "A file system that the daemon writes is nearly full.", "free space";
    INODES_LOW "inodes-low" Warning: "A file system that the daemon writes has few inodes left.", "remove small files";
    STORE_DAMAGED "store-damaged" Warning: "The store of the master is damaged, or a damaged one was replaced: older events and jobs are in the file beside it.", "keep or remove the damaged file";
    STORE_LARGE "store-large" Warning: "The store of the master is much larger than `event_journal_size` allows.", "lower `keep_jobs` and `event_journal_size`";
    STORE_REPAIRED "store-repaired" Note: "The store of the master was repaired after an unclean stop.", "nothing; if it happens again, see why the master is killed";
    DESCRIPTORS_LOW "descriptors-low" Warning: "The limit of open files of the daemon is too low for the number of minions.", "raise `LimitNOFILE` of the unit, or `ulimit -n`";
    KEYS_PENDING "keys-pending" Warning: "Keys of minions wait to be accepted.", "`salt-key -f` to compare, `salt-key -a` to accept";
    DEAD_LETTERS "dead-letters" Warning: "Reactions have failed and wait for a retry.", "`salt-run reactor.failed`, then `salt-run reactor.retry all`";
    REACTOR_BEHIND "reactor-behind" Warning: "The reactor, the job cache or a returner is behind with many events.", "see the master's log for slow files, functions and servers";
    RETURNS_WAITING "returns-waiting" Warning: "Returns of jobs wait on this minion because the master has not accepted them.", "see whether the master is reachable; they are sent by themselves";
    VERSION_NEWER "version-newer" Warning: "Minions are newer than their master.", "upgrade the master first";
    VERSIONS_MIXED "versions-mixed" Note: "Minions have different versions.", "upgrade the older ones";
    CERTIFICATE_EXPIRES "certificate-expires" Warning: "The certificate of the REST API expires soon.", "renew the certificate";
    CERTIFICATE_NAMES "certificate-names" Warning: "The certificate of the REST API has no name of this host.", "issue a certificate for the name that clients use";
    CONFIG_WARNING "config-warning" Warning: "The configuration is valid, but probably not as intended.", "correct the option";
    NOT_SEEN "not-seen" Note: "Something could not be examined: this user may not read it, or it took too long.", "run `brine doctor` as root";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_different_names_and_hide_known_ones() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let different: std::collections::BTreeSet<&&str> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        for kind in KINDS {
            let unknown: Vec<_> = kind.hides.iter().filter(|hidden| !names.contains(hidden)).collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", kind.name);
            assert!(!kind.hides.contains(&kind.name), "{}", kind.name);
            assert!(kind.about.ends_with('.') && !kind.mend.ends_with('.'), "{}", kind.name);
        }
    }
}

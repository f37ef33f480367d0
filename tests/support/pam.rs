//! A master with its own PAM accounts: scratch files replace `/etc/passwd`, `/etc/shadow`, `/etc/group` and
//! `/etc/pam.d` in its mount namespace.

use std::process::{Child, Command};

use crate::support::{BRINE, System, until};

/// The hash of the password `pw`.
const HASH: &str =
    "$6$brinesalt$jgYcHXByQzHZ0RO06AtT/MtwvCmKk5G6ZzKyI3sARfX3UxJM2Ge1QvkgQjqwGmzsgXtVeD.tVzc.LUyW6OOJ3.";
/// The accounts, with the fields of the shadow file after the name.
const ACCOUNTS: &[(&str, &str)] = &[
    ("good", "HASH:20000:0:99999:7:::"),
    ("member", "HASH:20000:0:99999:7:::"),
    ("locked", "!HASH:20000:0:99999:7:::"),
    ("disabled", "HASH:20000:0:99999:7::1:"),
    ("expired", "HASH:20000:0:99999:7::20001:"),
    ("stale", "HASH:0:0:99999:7:::"),
];
const SERVICE: &str = "auth required pam_unix.so nodelay\naccount required pam_unix.so\n";
const MOUNTS: &str =
    "for name in passwd shadow group pam.d; do mount --bind \"$0/$name\" /etc/$name || exit 1; done; exec \"$@\"";

/// Whether this host allows the tests to create namespaces: they run as root.
pub fn is_possible() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    assert!(is_root || std::env::var_os("BRINE_CI").is_none(), "the tests of PAM run as root");
    is_root
}

/// A running master.
pub struct PamMaster(Child);

impl Drop for PamMaster {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Writes the accounts and the PAM services `login` and `brine`.
pub fn write_accounts(system: &System) {
    let own = |name: &str| std::fs::read_to_string(format!("/etc/{name}")).unwrap();
    let mut passwd = own("passwd");
    for (at, (name, _)) in ACCOUNTS.iter().enumerate() {
        passwd += &format!("{name}:x:{0}:{0}::/nonexistent:/bin/sh\n", 54_321 + at);
    }
    system.write("host/passwd", &passwd);
    system.write("host/group", &format!("{}brine-ops:x:54400:member\n", own("group")));
    system.write("host/pam.d/login", SERVICE);
    system.write("host/pam.d/other", "auth required pam_deny.so\naccount required pam_deny.so\n");
    change_account(system, "", "");
}

/// Writes the shadow file with changed fields of one account.
pub fn change_account(system: &System, changed: &str, fields: &str) {
    let line = |(name, own): &(&str, &str)| {
        let fields = if *name == changed { fields } else { own };
        format!("{name}:{}\n", fields.replace("HASH", HASH))
    };
    system.write("host/shadow", &ACCOUNTS.iter().map(line).collect::<String>());
}

/// Starts a master with these accounts, and waits until it serves.
pub async fn start_master(system: &System) -> PamMaster {
    let log = std::fs::File::options().create(true).append(true).open(system.path("master.log")).unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", MOUNTS])
        .arg(system.path("host"))
        .args([BRINE, "salt-master", "-c", &system.etc(), "-l", "info"])
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    let mut master = PamMaster(command.spawn().unwrap());
    let pid = master.0.id().to_string();
    until("the master serves", || {
        assert!(master.0.try_wait().unwrap().is_none(), "the master ended: {}", system.master_log());
        std::fs::read_to_string(system.path("master.pid")).is_ok_and(|text| text.trim() == pid)
    })
    .await;
    master
}

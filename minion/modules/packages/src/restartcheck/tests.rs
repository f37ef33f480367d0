use std::fs;
use std::os::unix::fs::symlink;

use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

/// Creates a process in `/proc` below a directory.
fn add_process(root: &Path, pid: u32, name: &str, executable: &str, file: &str) {
    let directory = root.join(format!("proc/{pid}"));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("maps"), format!("55-56 r-xp 00002000 fe:00 10028740   {file}\n")).unwrap();
    fs::write(directory.join("comm"), format!("{name}\n")).unwrap();
    symlink(executable, directory.join("exe")).unwrap();
}

struct Fixed;

impl Services for Fixed {
    fn main_processes(&self) -> HashMap<u32, String> {
        HashMap::from([(20, "ssh.service".to_owned()), (40, "own.service".to_owned())])
    }

    fn is_known(&self, name: &str) -> bool {
        name == "own.service"
    }
}

fn checked(root: &Path, transcript: &str, verbose: bool, ignored: &[&str]) -> String {
    let context = context_with(brine_testing::debian(), Scripted::new(transcript));
    let check = Check {
        context: &context,
        services: &Fixed,
        root,
        ignored: ignored.iter().map(|name| (*name).to_owned()).collect(),
        ignored_files: vec!["/usr/lib/ignored.so".to_owned()],
        ignored_pids: vec![99],
        deadline: Instant::now() + Duration::from_mins(1),
    };
    match check.run(verbose) {
        Ok(Value::Str(text)) => text,
        Ok(other) => brine_value::json::to_json(&other),
        Err(error) => error.to_string(),
    }
}

const KERNEL: &str = "
    $ dpkg-query --show ...
    | ii  linux-image-6.1.0-18-amd64 6.1.76-1
    $ uname -a
    | Linux host 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01) x86_64 GNU/Linux
";

// The answers of dpkg-query are as written by dpkg 1.21.22.
#[test]
fn processes_with_deleted_files_are_reported_by_package() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let libc = "/usr/lib/libc.so.6 (deleted)";
    add_process(root, 1, "systemd", "/usr/lib/systemd/systemd", libc);
    add_process(root, 20, "sshd", "/usr/sbin/sshd (deleted)", libc);
    add_process(root, 21, "sshd", "/usr/sbin/sshd", "/usr/lib/libz.so (deleted)");
    add_process(root, 30, "cron", "/usr/sbin/cron", "/usr/lib/libz.so");
    add_process(root, 31, "cron", "/usr/sbin/cron", "/usr/lib/ignored.so (deleted)");
    add_process(root, 40, "own", "/opt/own", libc);
    add_process(root, 41, "worker", "/opt/worker", libc);
    add_process(root, 99, "excluded", "/opt/excluded", libc);
    fs::create_dir_all(root.join("lib/systemd/system")).unwrap();
    fs::write(root.join("lib/systemd/system/ssh.service"), "[Service]\nType=notify\n").unwrap();
    fs::write(root.join("lib/systemd/system/once.service"), "[Service]\nType=oneshot\n").unwrap();
    let transcript = format!(
        "{KERNEL}
        $ dpkg -S /usr/lib/systemd/systemd
        ! dpkg-query: no path found matching pattern /usr/lib/systemd/systemd
        = 1
        $ dpkg -S /usr/sbin/sshd
        | openssh-server: /usr/sbin/sshd
        $ dpkg -S /usr/sbin/cron
        | cron: /usr/sbin/cron
        $ dpkg -S /opt/own
        ! dpkg-query: no path found matching pattern /opt/own
        = 1
        $ dpkg -S /opt/worker
        = 1
        $ dpkg -L openssh-server
        | /.
        | /etc/init.d
        | /etc/init.d/ssh
        | /lib/systemd/system/once.service
        | /lib/systemd/system/ssh.service
        | /lib/systemd/system/ssh.socket
        | /usr/sbin/sshd
        $ dpkg -L worker
        = 1
        $ dpkg -L own
        ! dpkg-query: package 'own' is not installed
        = 1
    "
    );
    let text = checked(root, &transcript, true, &["systemd"]);
    insta::assert_snapshot!(text, @r#"
    Found 3 processes using old versions of upgraded files.
    These are the packages:
    Of these, 2 seem to contain systemd service definitions or init scripts which can be used to restart them:
    openssh-server:
    	20 /usr/sbin/sshd (deleted) (file: /usr/lib/libc.so.6)
    	21 /usr/sbin/sshd (file: /usr/lib/libz.so)
    own:
    	40 /opt/own (file: /usr/lib/libc.so.6)


    These are the systemd services:
    systemctl restart own.service

    These are the initd scripts:
    service ssh restart

    These processes 1 do not seem to have an associated init script to restart them:
    worker:
    	41 /opt/worker (file: /usr/lib/libc.so.6)
    "#);
    assert_eq!(checked(root, &transcript, false, &["systemd"]), "[\"openssh-server\", \"own\", \"worker\"]");
}

#[test]
fn nothing_to_restart_is_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let none = "No packages seem to need to be restarted.";
    assert_eq!(checked(directory.path(), KERNEL, true, &[]), none);
    let without = "$ dpkg-query ...\n! dpkg-query: no packages found matching linux-image-*\n= 1";
    assert_eq!(checked(directory.path(), without, true, &[]), none);
    let other = KERNEL.replace("Debian 6.1.76-1", "Debian 6.1.27-1");
    assert_eq!(checked(directory.path(), &other, true, &[]), "System restart required.\n\n");
    assert_eq!(checked(directory.path(), &other, false, &[]), "[\"System restart required.\"]");
}

#[test]
fn other_systems_are_not_supported() {
    let context = context_with(map! {"os_family" => "Arch"}, Scripted::new(""));
    assert_eq!(
        answers(&context, &[("restartcheck.restartcheck", list![], map! {})]),
        "restartcheck.restartcheck: {\"result\": false, \"comment\": \"Only available on Debian, Red Hat and NI Linux \
         Real-Time based systems.\"}"
    );
}

//! The packages in a fresh Debian with a systemd of its own: installed, upgraded under load, downgraded by a job,
//! removed and purged. The RPMs are installed in a root with a database of its own.
//!
//! tests/run makes the root (target/test-root/debian.tar) and needs root for it, as the tests do.

#[path = "packages/machine.rs"]
mod machine;
#[path = "packages/pages.rs"]
mod pages;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{BRINE, until};
use machine::{Machine, run};

const MASTER: &str = "auto_accept: True\ninterface: 127.0.0.1\n# changed by its administrator\n";

/// The packages of the program that the tests use, in two revisions, and the root of Debian; `None` with a message if
/// this machine cannot run them.
struct Built {
    directory: tempfile::TempDir,
    debian: PathBuf,
}

impl Built {
    fn new(kinds: &[&str]) -> Option<Self> {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let debian = project.join("target/test-root/debian.tar");
        if !debian.exists() {
            assert!(std::env::var_os("BRINE_CI").is_none(), "{} is missing: tests/run makes it", debian.display());
            eprintln!("left out: {} is missing (tests/run makes it)", debian.display());
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        // Line tables are most of a program of the tests.
        let program = directory.path().join("program");
        run(Command::new("strip").arg("--strip-unneeded").arg("-o").args([&program, Path::new(BRINE)]));
        let pam = Path::new(BRINE).with_file_name("brine-pam");
        for kind in kinds {
            for revision in ["1", "2"] {
                run(Command::new(project.join("packaging/build"))
                    .args([kind, "--compression", "zstd", "--revision", revision])
                    .arg("--program")
                    .arg(&program)
                    .arg("--pam")
                    .arg(&pam)
                    .arg("--out")
                    .arg(directory.path().join(revision)));
            }
        }
        std::fs::remove_file(&program).unwrap();
        Some(Self { directory, debian })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The files of a revision with this ending.
    fn files(&self, revision: &str, ending: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path().join(revision)).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
        files.sort();
        files
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn debian_packages_install_upgrade_and_go() {
    let Some(built) = Built::new(&["deb"]) else { return };
    let machine = Machine::boot(&built.debian, built.path());

    let begun = Instant::now();
    machine.sh("apt-get install -y -q /packages/1/*.deb");
    machine.sh("systemctl is-active brine-master brine-api");
    assert_eq!(
        machine.sh("systemctl is-enabled brine-master brine-minion brine-api brine-syndic | sort -u"),
        "enabled\n"
    );
    // A package serves at once with its own configuration; this one is the administrator's.
    machine.write("etc/salt/master", MASTER);
    machine.write("etc/salt/minion.d/site.conf", "master: 127.0.0.1\nid: web1\n");
    machine.sh("systemctl stop brine-api brine-syndic; systemctl restart brine-master brine-minion");
    until("web1 is reached", || machine.try_sh("salt -t 5 web1 test.ping").is_ok()).await;
    eprintln!("from apt to the first ping: {:.1} s", begun.elapsed().as_secs_f64());

    assert_eq!(machine.sh("stat -c %U /proc/$(systemctl show -P MainPID brine-master)"), "salt\n");
    let owners = machine.sh("stat -c '%U %n' /var/cache/salt/* /run/salt/*");
    assert!(owners.contains("root /var/cache/salt/minion") && owners.contains("root /run/salt/minion"), "{owners}");
    assert_eq!(machine.sh("readlink -f /usr/bin/salt-key"), "/usr/bin/brine\n");
    // `brine docs --open` looks there; a program of the tests has only the pages of its tree.
    machine.sh("grep -q 'id=\"limits\"' /usr/share/doc/brine/html/reactor.html");
    for (unit, most) in [("brine-master", 3.0), ("brine-api", 3.0), ("brine-syndic", 3.0)] {
        let score = machine.sh(&format!("systemd-analyze security --no-pager {unit} | tail -1"));
        let exposure: f64 = score.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(10.0);
        assert!(exposure < most, "{unit}: {score}");
    }

    upgrade_under_load(&machine).await;
    assert_eq!(machine.read("etc/salt/master"), MASTER);
    assert!(machine.sh("dpkg -s brine-master").contains("\nVersion: 0.1.0-2\n"));

    // A job changes the program that it runs in, and its return arrives.
    let job = "apt-get install -y -q --allow-downgrades /packages/1/*.deb && echo the job ended";
    let published = machine.sh(&format!("salt --async web1 cmd.run '{job}' python_shell=True"));
    let jid = published.split_whitespace().last().unwrap();
    until("the job has returned", || {
        machine.try_sh(&format!("salt-run jobs.lookup_jid {jid}")).is_ok_and(|text| text.contains("the job ended"))
    })
    .await;
    assert!(machine.sh("dpkg -s brine").contains("\nVersion: 0.1.0-1\n"));
    until("web1 is back", || machine.try_sh("salt -t 5 web1 test.ping").is_ok()).await;

    machine.sh("kill $(cat /tmp/swarm.pid)");
    machine.sh("apt-get remove -y -q 'brine*'");
    let running = machine.sh("readlink /proc/[0-9]*/exe || true");
    assert!(!running.contains("/brine"), "a daemon runs on: {running}");
    assert!(machine.try_sh("command -v salt").is_err());
    assert_eq!(machine.read("etc/salt/master"), MASTER);
    assert!(!machine.path("etc/salt/minion").exists(), "an unchanged configuration goes with its package");
    machine.sh("apt-get purge -y -q 'brine*'");
    assert!(!machine.path("etc/logrotate.d/brine").exists());
    for path in ["etc/salt/pki/master/master.pem", "etc/salt/pki/minion/minion.pem", "etc/salt/minion.d/site.conf"] {
        assert!(machine.path(path).exists(), "{path} is gone");
    }
}

/// Upgrades all packages while events are sent and minions are pinged: what was acknowledged is in the journal, and
/// everybody is back.
async fn upgrade_under_load(machine: &Machine) {
    machine.spawn("echo $$ > /tmp/swarm.pid; exec brine swarm --minions 50 --dir /tmp/swarm --json > /tmp/joined");
    until("the swarm has joined", || machine.try_sh("grep -q . /tmp/joined").is_ok()).await;
    let before = machine.sh("systemctl show -P MainPID brine-master brine-minion");
    let running = AtomicBool::new(true);
    let (mut acknowledged, mut longest) = (BTreeSet::new(), Duration::ZERO);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let (mut acknowledged, mut longest, mut last) = (BTreeSet::new(), Duration::ZERO, Instant::now());
            for number in 0.. {
                if !running.load(Ordering::Relaxed) {
                    break;
                }
                let tag = format!("test/upgrade/{number}");
                if machine.try_sh(&format!("salt-run event.send {tag}")).is_ok_and(|text| text.trim() == "True") {
                    acknowledged.insert(tag);
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                }
            }
            (acknowledged, longest)
        });
        machine.sh("apt-get install -y -q /packages/2/*.deb");
        (running).store(false, Ordering::Relaxed);
        (acknowledged, longest) = load.join().unwrap();
    });
    until("the new program serves", || {
        let now = machine.sh("systemctl show -P MainPID brine-master brine-minion");
        let old: BTreeSet<&str> = before.split_whitespace().collect();
        now.split_whitespace().all(|pid| pid != "0" && !old.contains(pid))
    })
    .await;
    until("51 minions are back", || {
        let pinged = machine.try_sh("salt -t 5 --out txt '*' test.ping").unwrap_or_default();
        pinged.lines().filter(|line| line.ends_with(": True")).count() == 51
    })
    .await;
    assert!(!acknowledged.is_empty());
    let mut journal = BTreeSet::new();
    let mut position = "0".to_owned();
    loop {
        let page = machine.sh(&format!("salt-run --out json event_bus.since {position} limit=1000"));
        let events: serde_json::Value = serde_json::from_str(&page).unwrap();
        let Some(last) = events.as_array().and_then(|events| events.last()) else { break };
        position = (last["seq"].as_u64().unwrap() + 1).to_string();
        journal.extend(events.as_array().unwrap().iter().filter_map(|event| Some(event["tag"].as_str()?.to_owned())));
    }
    let lost: Vec<_> = acknowledged.difference(&journal).collect();
    assert!(lost.is_empty(), "{lost:?} of {} acknowledged events are lost", acknowledged.len());
    eprintln!("{} events acknowledged, at most {:.1} s between two", acknowledged.len(), longest.as_secs_f64());
}

#[test]
fn rpm_packages_install_verify_and_go() {
    let Some(built) = Built::new(&["rpm"]) else { return };
    let root = tempfile::tempdir().unwrap();
    run(Command::new("tar").arg("-xf").arg(&built.debian).arg("-C").arg(root.path()));
    let rpm = |arguments: &[&str], files: Vec<PathBuf>| {
        let mut command = Command::new("rpm");
        // The programs that the scripts need are Debian's; the database is empty.
        command.arg("--root").arg(root.path()).args(["--dbpath", "/var/lib/rpm-test"]).args(arguments).args(files);
        run(&mut command)
    };
    let verified = || rpm(&["-V", "--nodeps", "brine", "brine-master", "brine-minion", "brine-api"], Vec::new());
    rpm(&["-i", "--nodeps"], built.files("1", ".rpm"));
    verified();
    let path = |name: &str| root.path().join(name);
    assert!(std::fs::read_to_string(path("etc/passwd")).unwrap().contains("\nsalt:"));
    for made in ["etc/salt/master", "etc/salt/minion", "etc/salt/pki/master", "etc/alternatives/salt"] {
        assert!(path(made).symlink_metadata().is_ok(), "{made} is missing");
    }
    let enabled = path("etc/systemd/system/multi-user.target.wants/brine-minion.service");
    assert!(enabled.symlink_metadata().is_ok(), "the unit is not enabled");
    std::fs::write(path("etc/salt/master"), MASTER).unwrap();
    rpm(&["-U", "--nodeps"], built.files("2", ".rpm"));
    verified();
    assert_eq!(std::fs::read_to_string(path("etc/salt/master")).unwrap(), MASTER);
    assert!(rpm(&["-q", "brine"], Vec::new()).contains("brine-0.1.0-2"));
    rpm(&["-U", "--nodeps", "--oldpackage"], built.files("1", ".rpm"));
    verified();
    assert!(rpm(&["-q", "--qf", "%{ARCH}", "brine-doc"], Vec::new()).contains("noarch"));
    let all = ["-e", "brine", "brine-doc", "brine-master", "brine-minion", "brine-api", "brine-syndic", "brine-pam"];
    rpm(&all, Vec::new());
    assert_eq!(std::fs::read_to_string(path("etc/salt/master")).unwrap(), MASTER);
    for gone in [
        "etc/salt/minion",
        "usr/bin/brine",
        "usr/lib/brine",
        "usr/share/brine",
        "usr/share/doc/brine",
        "etc/alternatives/salt",
    ] {
        assert!(path(gone).symlink_metadata().is_err(), "{gone} is still there");
    }
    assert!(enabled.symlink_metadata().is_err(), "the unit is still enabled");
}

#[test]
fn the_same_program_gives_the_same_packages() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().unwrap();
    // The content of the program does not matter here, but packages ask it for its completions.
    let sums = ["a", "b"].map(|name| {
        let out = directory.path().join(name);
        for kind in ["deb", "rpm", "tar", "container"] {
            run(Command::new(project.join("packaging/build"))
                .args([kind, "--compression", "zstd", "--program", BRINE, "--static", BRINE, "--out"])
                .arg(&out)
                .env("SOURCE_DATE_EPOCH", "1700000000"));
        }
        run(Command::new(project.join("packaging/build")).args(["sums", "--out"]).arg(&out));
        std::fs::read_to_string(out.join("SHA256SUMS")).unwrap()
    });
    assert_eq!(sums[0].lines().count(), 16, "{}", sums[0]);
    assert_eq!(sums[0], sums[1]);
}

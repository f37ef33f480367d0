//! The commands of the pages about installations, on a machine with a service manager; and upgrades by a master of a minion
//! that runs as a unit, to a good and to a bad program.

use std::path::Path;
use std::process::Command;

use super::Built;
use super::machine::{Machine, run};
use crate::support::{BRINE, until};

/// The directory of programs on the file server of the machine.
const PROGRAMS: &str = "srv/salt/brine/broken";

/// Runs the commands of pages as they are written.
fn run_pages(machine: &Machine, pages: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("python3");
    command.arg(root.join("tests/pages/run")).args(["--binary", BRINE, "--enter", &machine.enter()]);
    eprint!("{}", run(command.args(pages.iter().map(|page| root.join("docs").join(page)))));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_pages_do_what_they_say() {
    let Some(built) = Built::new(&["deb"]) else { return };
    let machine = Machine::boot(&built.debian, built.path());
    run_pages(&machine, &["install.md", "backup.md", "doctor.md"]);
    // The journal has fields, from the daemons themselves.
    let entries = machine.sh("journalctl -u brine-master MINION=web1 -o json --output-fields PRIORITY,MESSAGE,TARGET");
    assert!(
        entries.lines().any(|line| line.contains(r#""PRIORITY":"6""#) && line.contains("minion=web1")),
        "{entries}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_upgrades_minions_that_are_units() {
    let Some(built) = Built::new(&["deb"]) else { return };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packages");
    std::fs::copy(scripts.join("unpackaged"), built.path().join("unpackaged")).unwrap();
    let machine = Machine::boot(&built.debian, built.path());
    // It upgrades `canary`, then the fleet, and goes back on `canary`.
    run_pages(&machine, &["upgrade.md"]);
    let pid = || machine.sh("systemctl show -P MainPID minion-canary");
    let exe = || machine.sh("readlink /proc/$(systemctl show -P MainPID minion-canary)/exe");
    assert_eq!(exe(), "/opt/canary/brine\n");
    assert_eq!(machine.sh("systemctl show -P NRestarts minion-canary"), "0\n");

    // One that ends at once: systemd or the watcher starts the old one.
    let before = (pid(), machine.sh("sha256sum /opt/canary/brine"));
    std::fs::create_dir_all(machine.path(PROGRAMS)).unwrap();
    let source = "#include <stdio.h>\n#include <string.h>\n#include <stdlib.h>\nint main(int argc, char **argv) {\n\
                  if (argc > 1 && !strcmp(argv[1], \"--version\")) { puts(\"brine 99.0.0\"); return 0; }\nabort(); }\n";
    std::fs::write(machine.path("root/broken.c"), source).unwrap();
    run(Command::new("cc")
        .arg("-static")
        .arg("-o")
        .args([machine.path(PROGRAMS).join("brine"), machine.path("root/broken.c")]));
    machine.sh(&format!("cd /{PROGRAMS} && sha256sum brine > brine.sha256"));
    let staged = machine.sh("salt -t 60 --out json canary brine.upgrade source=salt://brine/broken/brine");
    assert!(staged.contains("\"staged\""), "{staged}");
    until("the old program is back", || {
        let told = machine.try_sh("salt -t 5 --out json canary brine.version").unwrap_or_default();
        told.contains("\"rolled_back\"")
    })
    .await;
    assert_eq!((exe(), machine.sh("sha256sum /opt/canary/brine")), ("/opt/canary/brine\n".to_owned(), before.1));
    assert_ne!(pid(), before.0);
    assert_eq!(machine.sh("systemctl is-active minion-canary"), "active\n");
    assert!(!machine.path("opt/canary/brine.new").exists());
}

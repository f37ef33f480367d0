//! `brine doctor` on file systems that are full, have no inodes, or are read-only.

use crate::doctor::{field, is_root, with_roots};
use crate::support::{BRINE, System, stderr, stdout, within_limit};

#[test]
fn full_and_read_only_file_systems_come_first() {
    if !is_root() {
        eprintln!("left out: only root can mount");
        return;
    }
    let system = with_roots(System::new(""));
    std::fs::create_dir(system.path("cache")).unwrap();
    for (options, harm, expected) in [
        ("size=8m", "true", "daemon-down"),
        ("size=1m", "dd if=/dev/zero of=cache/x bs=64k 2>/dev/null || true", "disk-full"),
        ("size=1m,nr_inodes=4", "touch cache/1 cache/2 cache/3", "inodes-full"),
        ("size=1m", "mount -o remount,ro cache", "disk-read-only"),
    ] {
        // In a name space of its own, so that nothing stays mounted.
        let script = format!(
            "set -e; mount --make-rprivate / && mount -t tmpfs -o {options} none cache; chmod 0700 cache; {harm}; \
             exec {BRINE} doctor --json -c etc"
        );
        let mut command = within_limit("unshare");
        let output = command.args(["-m", "sh", "-c", &script]).current_dir(system.path("")).output().unwrap();
        if stderr(&output).contains("ermi") && stdout(&output).is_empty() {
            eprintln!("left out: mounting is not permitted here: {}", stderr(&output));
            return;
        }
        let report = brine_value::json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert_eq!(field(&report, "kind")[0], expected, "{report}");
    }
}

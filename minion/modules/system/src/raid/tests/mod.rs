//! Transcripts of mdadm 4.2, with the disks of User-Mode Linux 6.1; malformed lines are invented.

mod states;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use brine_context::Context;
use brine_value::{Map, Value, list, map};
use tempfile::TempDir;

use crate::testing::{Scripted, answers, context_with};

thread_local! {
    /// The configuration file of mdadm for the tests of this thread.
    static CONFIGURATION: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

pub(super) fn configuration() -> Option<PathBuf> {
    CONFIGURATION.with_borrow(Clone::clone)
}

const UUID: &str = "560d3f65:40e8153c:20786bd7:5036ef61";

/// A directory with files in the place of devices, and the configuration of mdadm.
struct Host {
    directory: TempDir,
}

impl Host {
    fn new(config: Option<&str>) -> Self {
        let host = Host { directory: tempfile::tempdir().unwrap() };
        for device in ["md0", "sda", "sdb", "sdc"] {
            std::fs::write(host.path(device), "").unwrap();
        }
        if let Some(text) = config {
            std::fs::write(host.path("mdadm.conf"), text).unwrap();
        }
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Replaces `/dev` in a text by the directory.
    fn real(&self, text: &str) -> String {
        text.replace("/dev/", &format!("{}/", self.directory.path().display()))
    }

    fn shown(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.directory.path().display()), "/dev/")
    }

    fn context(&self, grains: Map, programs: Arc<Scripted>) -> Context {
        CONFIGURATION.replace(Some(self.path("mdadm.conf")));
        context_with(grains, programs)
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.path("mdadm.conf")).unwrap_or_default()
    }
}

/// Returns the list of arrays with `/dev/md0`, or an empty one.
fn scan(is_active: bool) -> String {
    let line =
        if is_active { format!("| ARRAY /dev/md0 metadata=1.2 name=(none):0 UUID={UUID}\n") } else { String::new() };
    format!("$ mdadm --detail --scan\n{line}")
}

fn member(device: &str, uuid: &str) -> String {
    format!(
        "$ mdadm -Y -E {device}\n| MD_LEVEL=raid1\n| MD_DEVICES=2\n| MD_NAME=(none):0\n| MD_UUID={uuid}\n| MD_EVENTS=17\n"
    )
}

fn blank(device: &str) -> String {
    format!("$ mdadm -Y -E {device}\n! mdadm: No md superblock detected on {device}.\n= 1\n")
}

#[test]
fn arrays_are_listed_and_described() {
    let programs = Scripted::new(
        "
        $ mdadm --detail --scan
        | ARRAY /dev/md0 metadata=1.2 name=(none):0 UUID=560d3f65:40e8153c:20786bd7:5036ef61
        | ARRAY /dev/md1 metadata=1.2 spares=1 broken name=a=b UUID=75107ac3:65ad4a80:d2a07870:3357ec5d
        | ARRAY
        |
        $ mdadm --detail /dev/null
        | /dev/null:
        |            Version : 1.2
        |      Creation Time : Fri Nov 27 18:23:08 2026
        |         Raid Level : raid1
        |         Array Size : 64512 (63.00 MiB 66.06 MB)
        |              State : clean, degraded
        |
        |               Name : (none):0  (local to host (none))
        |
        |     Number   Major   Minor   RaidDevice State
        |        0      98        0        0      active sync   /dev/ubda
        |        -       0        0        1      removed
        |
        |        2      98       32        -      spare   /dev/ubdc
        $ mdadm --detail /dev/zero
        ! mdadm: /dev/zero does not appear to be an md device
        = 1
        $ mdadm -Y -E /dev/ubda
        | MD_LEVEL=raid1
        | MD_NAME=(none):0
        | MD_UUID=560d3f65:40e8153c:20786bd7:5036ef61
        | odd
        $ mdadm -Y -E /dev/none
        ! mdadm: cannot open /dev/none: No such file or directory
        = 1
        $ mdadm --stop --scan
        ! mdadm: Cannot get exclusive access to /dev/md1:Perhaps a running process, mounted filesystem or active volume group?
        = 1
        $ mdadm --stop --scan
        $ mdadm --manage /dev/md0 --add /dev/ubdc
        ! mdadm: added /dev/ubdc
        $ mdadm --manage /dev/md0 --add /dev/none
        ! mdadm: stat failed for /dev/none: No such file or directory
        = 1
        ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("raid.list", list![], map! {}),
        ("raid.detail", list!["/dev/null"], map! {}),
        ("raid.detail", list!["/dev/zero"], map! {}),
        ("raid.detail", list!["/dev/none"], map! {}),
        ("raid.detail", list!["--scan"], map! {}),
        ("raid.examine", list!["/dev/ubda"], map! {}),
        ("raid.examine", list!["/dev/none"], map! {"quiet" => true}),
        ("raid.examine", list!["--scan"], map! {}),
        ("raid.stop", list![], map! {}),
        ("raid.stop", list![], map! {}),
        ("raid.add", list!["/dev/md0", "/dev/ubdc"], map! {}),
        ("raid.add", list!["/dev/md0", "/dev/none"], map! {}),
        ("raid.add", list!["/dev/md0", "--remove"], map! {}),
        ("raid.destroy", list!["/dev/none"], map! {}),
    ]), @r#"
    raid.list: {"/dev/md0": {"device": "/dev/md0", "metadata": "1.2", "name": "(none):0", "uuid": "560d3f65:40e8153c:20786bd7:5036ef61"}, "/dev/md1": {"device": "/dev/md1", "metadata": "1.2", "spares": "1", "name": "a=b", "uuid": "75107ac3:65ad4a80:d2a07870:3357ec5d"}}
    raid.detail: {"members": {"0": {"device": "/dev/ubda", "major": "98", "minor": "0", "number": "0", "raiddevice": "0", "state": "active sync"}, "2": {"device": "/dev/ubdc", "major": "98", "minor": "32", "number": "2", "raiddevice": "-", "state": "spare"}}, "version": "1.2", "creation_time": "Fri Nov 27 18:23:08 2026", "raid_level": "raid1", "array_size": "64512 (63.00 MiB 66.06 MB)", "state": "clean, degraded", "name": "(none):0  (local to host (none))"}
    raid.detail: {"members": {}}
    raid.detail: ERROR: Device /dev/none doesn't exist!
    raid.detail: ERROR: Device --scan doesn't exist!
    raid.examine: {"MD_LEVEL": "raid1", "MD_NAME": "(none):0", "MD_UUID": "560d3f65:40e8153c:20786bd7:5036ef61", "odd": ""}
    raid.examine: {}
    raid.examine: ERROR: '--scan' cannot be used: it starts with '-' or is empty
    raid.stop: false
    raid.stop: true
    raid.add: true
    raid.add: false
    raid.add: ERROR: '--remove' cannot be used: it starts with '-' or is empty
    raid.destroy: false
    "#);
}

#[test]
fn arrays_are_created_and_assembled() {
    let programs = Scripted::new(
        "
        $ mdadm -C /dev/md1 -R -v -l 5 --chunk 256 --assume-clean -e 1.2 -n 3 /dev/ubda /dev/ubdb missing
        ! mdadm: layout defaults to left-symmetric
        ! mdadm: size set to 64512K
        ! mdadm: array /dev/md1 started.
        $ mdadm -C /dev/md0 -R -v -l 1 -e default -n 2 /dev/none /dev/ubdb
        ! mdadm: cannot open /dev/none: No such file or directory
        = 2
        $ mdadm -A /dev/md0 -v /dev/ubda /dev/ubdb
        ! mdadm: looking for devices for /dev/md0
        ! mdadm: /dev/md0 has been started with 2 drives.
        ",
    );
    let context = context_with(map! {}, programs);
    let three = || list!["/dev/ubda", "/dev/ubdb", "missing"];
    let two = || list!["/dev/ubda", "/dev/ubdb"];
    insta::assert_snapshot!(answers(&context, &[
        ("raid.create", list!["/dev/md1", 5, three(), 1.2], map! {"chunk" => 256, "assume-clean" => true, "__pub_jid" => 1}),
        ("raid.create", list!["/dev/md0", "1", "/dev/none,/dev/ubdb"], map! {}),
        ("raid.create", list!["/dev/md0", 1, three()], map! {"spare-devices" => 1, "test_mode" => true}),
        ("raid.create", list!["/dev/md0", 1, two()], map! {"spare-devices" => 2, "test_mode" => true}),
        ("raid.create", list!["/dev/md0", 1, list![]], map! {"test_mode" => true}),
        ("raid.create", list!["/dev/md0", 1, list!["-f"]], map! {"test_mode" => true}),
        ("raid.create", list!["/dev/md0", "--grow", two()], map! {"test_mode" => true}),
        ("raid.create", list!["/dev/md0", 1, two()], map! {"test_mode" => true, "chunk" => "--force"}),
        ("raid.create", list!["/dev/md0", 1, two()], map! {"test_mode" => true, "chunk 1" => 1}),
        ("raid.assemble", list!["/dev/md0", two()], map! {}),
        ("raid.assemble", list!["/dev/md0", "/dev/ubda,/dev/ubdb"], map! {"test_mode" => true, "force" => true, "update" => 1}),
    ]), @r#"
    raid.create: "mdadm: layout defaults to left-symmetric\nmdadm: size set to 64512K\nmdadm: array /dev/md1 started."
    raid.create: "mdadm: cannot open /dev/none: No such file or directory"
    raid.create: "mdadm -C /dev/md0 -R -v -l 1 --spare-devices 1 -e default -n 2 /dev/ubda /dev/ubdb missing"
    raid.create: ERROR: spare-devices is invalid: expected a number less than that of devices, 2
    raid.create: ERROR: devices is invalid: expected at least one device
    raid.create: ERROR: '-f' cannot be used: it starts with '-' or is empty
    raid.create: ERROR: '--grow' cannot be used: it starts with '-' or is empty
    raid.create: ERROR: '--force' cannot be used: it starts with '-' or is empty
    raid.create: ERROR: 'chunk 1' is not an option of mdadm: expected a long option
    raid.assemble: "mdadm: looking for devices for /dev/md0\nmdadm: /dev/md0 has been started with 2 drives."
    raid.assemble: ["mdadm", "-A", "/dev/md0", "-v", "--force", "--update", "1", "/dev/ubda", "/dev/ubdb"]
    "#);
}

#[test]
fn arrays_are_saved_and_destroyed() {
    let line = format!("ARRAY /dev/md0 metadata=1.2 name=(none):0 UUID={UUID}");
    let short = format!("ARRAY /dev/md0 UUID={UUID}");
    let (debian, ubuntu) =
        (map! {"os" => "Debian", "os_family" => "Debian"}, map! {"os" => "Ubuntu", "os_family" => "Debian"});
    let (red_hat, arch) =
        (map! {"os" => "Rocky", "os_family" => "RedHat"}, map! {"os" => "Arch", "os_family" => "Arch"});
    for (grains, former, expected, answer) in [
        (&debian, None, format!("{line}\n"), "\"update-initramfs: Generating /boot/initrd.img\""),
        (&red_hat, Some("DEVICE partitions\n"), format!("DEVICE partitions\n{line}\n"), "\"\""),
        (
            &ubuntu,
            Some("ARRAY /dev/md0 UUID=old\n# ARRAY /dev/md0 old\nARRAY /dev/md01 UUID=x\n"),
            format!("{short}\n# ARRAY /dev/md0 old\nARRAY /dev/md01 UUID=x\n"),
            "\"update-initramfs: Generating /boot/initrd.img\"",
        ),
        (&arch, Some("MAILADDR root\n"), format!("MAILADDR root\n{line}\n"), "null"),
    ] {
        let host = Host::new(former);
        let programs = format!(
            "{}| INACTIVE-ARRAY /dev/md9 metadata=1.2\n$ update-initramfs -u\n| update-initramfs: Generating /boot/initrd.img\n$ dracut --force\n",
            scan(true)
        );
        let context = host.context(grains.clone(), Scripted::new(&programs));
        let call = ("raid.save_config", list![], map! {});
        assert_eq!(answers(&context, &[call]), format!("raid.save_config: {answer}"));
        assert_eq!(host.config(), expected);
    }
    let detail = "$ mdadm --detail /dev/md0\n|        0      98        0        0      active sync   /dev/ubda\n|        2      98       32        -      spare   /dev/ubdc\n";
    let erased = "$ mdadm --zero-superblock /dev/ubda /dev/ubdc\n";
    let busy = "! mdadm: Cannot get exclusive access to /dev/md0:Perhaps a running process, mounted filesystem or active volume group?\n= 1\n";
    for (stop, list, answer, config) in [
        ("! mdadm: stopped /dev/md0\n", scan(false), true, "\nMAILADDR root\n"),
        (busy, scan(true), false, "\nMAILADDR root\n"),
    ] {
        let host = Host::new(None);
        std::fs::write(host.path("mdadm.conf"), host.real(&format!("{line}\nMAILADDR root\n"))).unwrap();
        let detail = detail.replace("/dev/md0", &host.real("/dev/md0"));
        let programs = format!("{detail}{erased}$ mdadm --stop {}\n{stop}{}", host.real("/dev/md0"), host.real(&list));
        let programs = Scripted::new(&programs);
        let context = host.context(debian.clone(), programs.clone());
        let call = ("raid.destroy", list![host.path("md0")], map! {});
        assert_eq!(answers(&context, &[call]), format!("raid.destroy: {answer}"));
        assert_eq!(programs.ran().contains("--zero-superblock"), answer);
        assert_eq!(host.config(), config);
    }
}

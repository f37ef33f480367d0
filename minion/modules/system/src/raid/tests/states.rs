//! State functions of `raid`.

use super::*;

#[test]
fn arrays_are_present() {
    let created = "$ mdadm -C /dev/md0 -R -v -l 1 --chunk 256 -e default -n 2 /dev/sda /dev/sdb\n! mdadm: array /dev/md0 started.\n$ update-initramfs -u\n";
    let assembled = "$ mdadm -A /dev/md0 -v --chunk 256 /dev/sda\n! mdadm: /dev/md0 has been started with 1 drive.\n$ update-initramfs -u\n";
    let (two, gone, none) =
        (list!["/dev/sda", "/dev/sdb"], list!["/dev/sda", "missing", "/dev/none"], list!["/dev/none", "missing"]);
    let member_a = member("/dev/sda", UUID);
    let blanks = format!("{}{}", blank("/dev/sda"), blank("/dev/sdb"));
    let both = format!("{member_a}{}", member("/dev/sdb", UUID));
    let foreign = format!("{member_a}{}", member("/dev/sdb", "0:0:0:0"));
    let one_new = format!("{member_a}{}", blank("/dev/sdb"));
    let add = "$ mdadm --manage /dev/md0 --add /dev/sdb\n";
    let (no, yes) = (scan(false), scan(true));
    let array = map! {"device" => "/dev/md0", "metadata" => "1.2", "name" => "(none):0", "uuid" => UUID};
    let mut with_added = array.clone();
    with_added.insert("added".into(), list!["/dev/sdb"]);
    let only_added = map! {"added" => list!["/dev/sdb"]};
    for (devices, test, transcript, result, comment, changes) in [
        (&two, false, format!("{both}{yes}"), Some(true), "Raid /dev/md0 already present.", map! {}),
        (&two, true, format!("{both}{yes}"), Some(true), "Raid /dev/md0 already present.", map! {}),
        (&two, false, format!("{blanks}{no}{yes}{created}"), Some(true), "Raid /dev/md0 created.", array.clone()),
        (
            &two,
            true,
            format!("{blanks}{no}"),
            None,
            "Raid will be created with: mdadm -C /dev/md0 -R -v -l 1 --chunk 256 -e default -n 2 /dev/sda /dev/sdb",
            map! {},
        ),
        (
            &gone,
            true,
            format!("{}{no}", blank("/dev/sda")),
            None,
            "Raid will be created with: mdadm -C /dev/md0 -R -v -l 1 --chunk 256 -e default -n 3 /dev/sda missing missing Missing devices: ['missing', '/dev/none']",
            map! {},
        ),
        (
            &two,
            false,
            format!("{blanks}{no}$ mdadm -C /dev/md0 ...\n! mdadm: create aborted\n= 1\n"),
            Some(false),
            "Raid /dev/md0 failed to be created.",
            map! {},
        ),
        (
            &two,
            false,
            format!("{one_new}{no}{yes}{assembled}{add}"),
            Some(true),
            "Raid /dev/md0 assembled. Added new device /dev/sdb to /dev/md0.\n",
            with_added.clone(),
        ),
        (
            &two,
            true,
            format!("{one_new}{no}"),
            None,
            "Raid will be assembled with: ['mdadm', '-A', '/dev/md0', '-v', '--chunk', '256', '/dev/sda'] New devices will be added: ['/dev/sdb']",
            map! {},
        ),
        (
            &two,
            false,
            format!("{one_new}{no}$ mdadm -A /dev/md0 ...\n! mdadm: /dev/sda is busy - skipping\n= 2\n"),
            Some(false),
            "Raid /dev/md0 failed to be assembled.",
            map! {},
        ),
        (
            &two,
            false,
            format!("{one_new}{yes}{add}"),
            Some(true),
            "Raid /dev/md0 already present. Added new device /dev/sdb to /dev/md0.\n",
            only_added.clone(),
        ),
        (
            &two,
            true,
            format!("{one_new}{yes}"),
            None,
            "Raid /dev/md0 already present. New devices will be added: ['/dev/sdb']",
            map! {},
        ),
        (
            &two,
            false,
            format!("{one_new}{yes}{add}! mdadm: Cannot open /dev/sdb: Device or resource busy\n= 1\n"),
            Some(false),
            "Raid /dev/md0 already present. Unable to add /dev/sdb to /dev/md0.\n",
            map! {},
        ),
        (
            &gone,
            false,
            format!("{member_a}{yes}"),
            Some(true),
            "Raid /dev/md0 already present. Missing devices: ['missing', '/dev/none']",
            map! {},
        ),
        (&none, false, no.clone(), Some(false), "All devices are missing: ['/dev/none', 'missing'].", map! {}),
        (
            &two,
            false,
            format!("{foreign}{yes}"),
            Some(false),
            "Devices are a mix of RAID constituents with multiple MD_UUIDs: ['0:0:0:0', '560d3f65:40e8153c:20786bd7:5036ef61'].",
            map! {},
        ),
        (
            &two,
            false,
            format!("{}{}{yes}", member("/dev/sda", "0:0:0:0"), blank("/dev/sdb")),
            Some(false),
            "Devices MD_UUIDs: 0:0:0:0 differs from present RAID uuid 560d3f65:40e8153c:20786bd7:5036ef61.",
            map! {},
        ),
    ] {
        let host = Host::new(Some("MAILADDR root\n"));
        let programs = Scripted::new(&host.real(&transcript));
        let call = host.context(brine_testing::debian(), programs.clone());
        let devices: Value = devices.as_list().unwrap().iter().map(|device| host.real(&device.to_string())).collect();
        let keyword = map! {"name" => host.path("md0"), "level" => 1, "devices" => devices, "chunk" => 256};
        let report = brine_testing::applied(&call, &programs, "raid.present", keyword, test);
        assert_eq!((report.result, host.shown(&report.comment)), (result, comment.to_owned()), "{transcript}");
        assert_eq!(host.shown(&report.changes.to_string()), Value::from(changes).to_string(), "{comment}");
        let is_saved = host.shown(&host.config()).contains("ARRAY /dev/md0");
        let is_new = comment.contains("/dev/md0 created.") || comment.contains("/dev/md0 assembled.");
        assert_eq!(is_saved, is_new, "{comment}");
    }
}

#[test]
fn arrays_are_absent() {
    let stop = "$ mdadm --detail /dev/md0\n$ mdadm --stop /dev/md0\n";
    for (test, transcript, result, comment) in [
        (false, scan(false), Some(true), "Raid /dev/md0 already absent"),
        (true, scan(true), None, "Raid /dev/md0 is set to be destroyed"),
        (false, format!("{}{}{stop}", scan(true), scan(false)), Some(true), "Raid /dev/md0 has been destroyed"),
        (false, format!("{}{stop}= 1\n", scan(true)), Some(false), "Raid /dev/md0 failed to be destroyed"),
    ] {
        let host = Host::new(None);
        let programs = Scripted::new(&host.real(&transcript));
        let call = host.context(brine_testing::debian(), programs.clone());
        let report = brine_testing::applied(&call, &programs, "raid.absent", map! {"name" => host.path("md0")}, test);
        assert_eq!((report.result, host.shown(&report.comment)), (result, comment.to_owned()));
        assert_eq!(report.changes, Value::map());
        assert_eq!(report.ran.contains("--stop"), comment.contains("destroyed") && !test);
    }
}

#[test]
fn states_need_the_program() {
    for (transcript, reason) in [("", Some("Unable to locate command: mdadm")), ("$ mdadm\n", None)] {
        let context = context_with(map! {}, Scripted::new(transcript));
        assert_eq!(crate::raid::unavailable(&context).as_deref(), reason);
    }
}

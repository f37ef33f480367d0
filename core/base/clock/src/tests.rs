use std::fs;

use super::*;

/// Returns a zone file (version 1) of one fixed offset.
fn tzif(offset: i32, name: &str) -> Vec<u8> {
    let mut data = b"TZif".to_vec();
    data.extend([0; 16]);
    for count in [0, 0, 0, 0, 1, name.len() + 1] {
        data.extend(u32::try_from(count).unwrap().to_be_bytes());
    }
    data.extend(offset.to_be_bytes());
    data.extend([0, 0]);
    data.extend(name.as_bytes());
    data.push(0);
    data
}

/// Returns the offset in seconds and the abbreviation of the zone.
fn describe(zone: &TimeZone) -> String {
    Timestamp::UNIX_EPOCH.to_zoned(zone.clone()).strftime("%z %Z").to_string()
}

#[test]
fn the_zone_is_that_of_tz_or_of_localtime() {
    let directory = tempfile::tempdir().unwrap();
    let (localtime, zones) = (directory.path().join("localtime"), directory.path().join("zoneinfo"));
    fs::create_dir_all(zones.join("Some")).unwrap();
    fs::write(zones.join("Some/Where"), tzif(3600, "ONE")).unwrap();
    fs::write(zones.join("broken"), "no zone").unwrap();
    fs::write(&localtime, tzif(7200, "TWO")).unwrap();
    let absolute = format!(":{}", localtime.display());
    let cases = [
        (None, "+0200 TWO"),
        (Some(""), "+0000 UTC"),
        (Some(":"), "+0000 UTC"),
        (Some("Some/Where"), "+0100 ONE"),
        (Some(":Some/Where"), "+0100 ONE"),
        (Some(absolute.as_str()), "+0200 TWO"),
        (Some("XYZ-3"), "+0300 XYZ"),
        (Some("CET-1CEST,M3.5.0,M10.5.0/3"), "+0100 CET"),
        (Some("../localtime"), "+0000 UTC"),
        (Some("No/Where"), "+0000 UTC"),
        (Some("broken"), "+0000 UTC"),
        (Some("Some"), "+0000 UTC"),
    ];
    for (setting, expected) in cases {
        let directories = [directory.path().join("none"), zones.clone()];
        let mut zone = LocalZone::new(setting.map(OsStr::new), &localtime, &directories);
        assert_eq!(describe(&zone.at(Instant::now())), expected, "{setting:?}");
    }
}

#[test]
fn a_replaced_file_is_read_again_after_the_interval() {
    let directory = tempfile::tempdir().unwrap();
    let (localtime, target) = (directory.path().join("localtime"), directory.path().join("zoneinfo/A"));
    fs::create_dir(directory.path().join("zoneinfo")).unwrap();
    let replace = |offset, name| {
        fs::write(target.with_extension("new"), tzif(offset, name)).unwrap();
        fs::rename(target.with_extension("new"), &target).unwrap();
    };
    replace(3600, "ONE");
    std::os::unix::fs::symlink(&target, &localtime).unwrap();
    let start = Instant::now();
    let mut zone = LocalZone::new(None, &localtime, &[]);
    assert_eq!(zone.at(start).iana_name(), Some("A"));
    replace(7200, "TWO");
    assert_eq!(describe(&zone.at(start + INTERVAL / 2)), "+0100 ONE");
    assert_eq!(describe(&zone.at(start + INTERVAL * 2)), "+0200 TWO");
    // While the file is missing or damaged, the last zone is kept.
    fs::write(target.with_extension("new"), "no zone").unwrap();
    fs::rename(target.with_extension("new"), &target).unwrap();
    assert_eq!(describe(&zone.at(start + INTERVAL * 4)), "+0200 TWO");
    fs::remove_file(&target).unwrap();
    assert_eq!(describe(&zone.at(start + INTERVAL * 6)), "+0200 TWO");
    replace(3600, "ONE");
    assert_eq!(describe(&zone.at(start + INTERVAL * 8)), "+0100 ONE");
}

#[test]
fn the_local_time_is_that_of_jiff() {
    #[allow(clippy::disallowed_methods, reason = "it is the reference")]
    let (expected, now) = (Zoned::now(), now());
    assert_eq!(now.offset(), expected.offset());
    assert!(now.duration_since(&expected).as_secs() < 60);
}

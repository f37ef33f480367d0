use brine_value::list;

use super::*;

#[test]
fn mount_points_match_by_name_or_pattern() {
    let mounts = mount_points("a / ext4 rw 0 0\nb /home ext4\nc /srv/my\\040data x\n");
    assert_eq!(mounts, ["/", "/home", "/srv/my data"]);
    let settings = list![map! {"/" => "63%"}, map! {r"^\/(?!home).+$" => 90}, map! {"/home" => 95.0}];
    let settings = Settings::read("diskusage", &settings).unwrap();
    let one = |(mount, most): &(String, _)| (Regex::full(mount).unwrap(), number(mount, most).unwrap());
    let beacon = DiskUsage(settings.own.iter().map(one).collect());
    let report = beacon.events(&mounts, |mount| Some(if mount == "/" { 63.0 } else { 94.5 }));
    assert_eq!(
        report,
        [map! {"diskusage" => 63.0, "mount" => "/"}, map! {"diskusage" => 94.5, "mount" => "/srv/my data"}]
    );
    assert!(beacon.events(&mounts, |_| None).is_empty());
}

#[test]
fn the_usage_of_this_hosts_root_is_known() {
    assert!((0.0..=100.0).contains(&usage("/").unwrap()));
    assert_eq!(usage("/nonexistent"), None);
}

#[test]
fn options_are_checked() {
    for (config, error) in [
        (list![map! {"/" => "full"}], "option '/': expected a number, got full"),
        (list![map! {"(" => 5}], "mount point '(': "),
    ] {
        let report = super::super::tests::wrong("diskusage", &config);
        assert!(report.starts_with(error), "{report}");
    }
}

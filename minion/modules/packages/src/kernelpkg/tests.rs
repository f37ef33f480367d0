use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

#[test]
fn releases_are_compared_by_number() {
    for (older, newer) in [
        ("6.1.0-9-amd64", "6.1.0-18-amd64"),
        ("5.15.0-101-generic", "6.1.0-1-generic"),
        ("6.1.0-18-amd64", "6.5.0-0.deb12.4-amd64"),
        ("6.1.0-09-amd64", "6.1.0-10-amd64"),
    ] {
        assert_eq!((order(older, newer), order(newer, older)), (Ordering::Less, Ordering::Greater), "{older} {newer}");
    }
    assert_eq!(order("6.1.0-18-amd64", "6.1.0-18-amd64"), Ordering::Equal);
}

#[test]
fn packages_of_other_kernel_types_do_not_match() {
    for (release, kind, expected) in [
        ("6.1.0-18-amd64", "amd64", true),
        ("6.1.0-18-cloud-amd64", "amd64", false),
        ("6.1.0-18-cloud-amd64", "cloud-amd64", true),
        ("6.5.0-0.deb12.4-amd64", "amd64", true),
        ("amd64", "amd64", false),
        ("extra-amd64", "amd64", false),
        ("6.1.0-18-amd64-dbg", "amd64", false),
    ] {
        assert_eq!(is_of(release, kind), expected, "{release} {kind}");
    }
    assert_eq!(of_version("5.15.0.101.98").as_deref(), Some("5.15.0-101"));
    assert_eq!(of_version("6.1.76-1"), None);
}

const APT: &str = "
    $ dpkg-query ...
    | install ok installed linux-image-6.1.0-9-amd64 6.1.27-1 amd64
    | install ok installed linux-image-6.1.0-18-amd64 6.1.76-1 amd64
    | install ok installed linux-image-6.1.0-13-amd64 6.1.55-1 amd64
    | install ok installed linux-image-6.1.0-18-cloud-amd64 6.1.76-1 amd64
    | install ok installed linux-image-amd64 6.1.76-1 amd64
    $ apt-get ...
    $ dpkg --compare-versions 6.1.90-1 lt 6.1.76-1
    = 1
    $ dpkg --compare-versions 6.1.90-1 eq 6.1.76-1
    = 1
    $ dpkg --compare-versions 6.1.90-1 gt 6.1.76-1
    $ apt-cache -q policy ...
    | linux-image-amd64:
    |   Installed: 6.1.76-1
    |   Candidate: 6.1.90-1
    $ apt-cache show ...
    | Package: linux-image-amd64
    | Version: 6.1.90-1
    | Depends: linux-image-6.1.0-21-amd64 (= 6.1.90-1)
";

#[test]
fn kernels_are_listed_and_the_running_one_stays() {
    let grains = map! {"os" => "Debian", "os_family" => "Debian", "kernelrelease" => "6.1.0-13-amd64"};
    let context = context_with(grains, Scripted::new(APT));
    let calls = [
        ("kernelpkg.active", list![], Map::new()),
        ("kernelpkg.list_installed", list![], Map::new()),
        ("kernelpkg.latest_installed", list![], Map::new()),
        ("kernelpkg.latest_available", list![], Map::new()),
        ("kernelpkg.upgrade_available", list![], Map::new()),
        ("kernelpkg.needs_reboot", list![], Map::new()),
        ("kernelpkg.remove", list!["6.1.0-13-amd64"], Map::new()),
        ("kernelpkg.remove", list!["6.1.0-99-amd64"], Map::new()),
    ];
    insta::assert_snapshot!(answers(&context, &calls), @r#"
    kernelpkg.active: "6.1.0-13-amd64"
    kernelpkg.list_installed: ["6.1.0-9-amd64", "6.1.0-13-amd64", "6.1.0-18-amd64"]
    kernelpkg.latest_installed: "6.1.0-18-amd64"
    kernelpkg.latest_available: "6.1.0-21-amd64"
    kernelpkg.upgrade_available: true
    kernelpkg.needs_reboot: true
    kernelpkg.remove: ERROR: Active kernel cannot be removed
    kernelpkg.remove: ERROR: Kernel release '6.1.0-99-amd64' is not installed
    "#);
    let other = context_with(map! {"os_family" => "RedHat"}, Scripted::new(""));
    assert!(active(&other).is_err());
}

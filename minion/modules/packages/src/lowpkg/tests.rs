use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by dpkg 1.21.
#[test]
fn packages_and_their_files_are_listed() {
    let programs = Scripted::new(
        r"
            $ dpkg-query '-f=${db:Status-Status}\t${binary:Package}\t${Version}\n' -W
            | installed	at	3.2.5-1+b1
            | config-files	old	1
            | installed	libc6:amd64	2.36-9
            $ dpkg-query '-f=${db:Status-Status}\t${binary:Package}\t${Version}\n' -W none
            ! dpkg-query: no packages found matching none
            = 1
            $ dpkg-query '-f=${db:Status-Status}\t${binary:Package}\n' -W at libc6
            | installed	at
            | installed	libc6:amd64
            $ dpkg -L at
            | /.
            | /usr/bin/at
            $ dpkg -L libc6:amd64
            | /.
            | /lib/libc.so.6
            $ dpkg -I /etc/hostname
            |  new Debian package, version 2.0.
            |  size 1 bytes: control archive=1 bytes.
            |  Package: at
            |  Version: 3.2.5-1+b1
            |  Architecture: i386
            $ dpkg -I /etc/passwd
            ! dpkg-deb: error: '/etc/passwd' is not a Debian format archive
            = 2
            ",
    );
    let grains = map! {"os_family" => "Debian", "cpuarch" => "x86_64", "osarch" => "amd64"};
    let context = context_with(grains, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("lowpkg.list_pkgs", list![], map! {}),
        ("lowpkg.list_pkgs", list!["none"], map! {}),
        ("lowpkg.list_pkgs", list!["-x"], map! {}),
        ("lowpkg.file_list", list!["at", "libc6"], map! {}),
        ("lowpkg.file_dict", list!["at", "libc6"], map! {}),
        ("lowpkg.bin_pkg_info", list!["/etc/hostname"], map! {}),
        ("lowpkg.bin_pkg_info", list!["/etc/passwd"], map! {}),
        ("lowpkg.bin_pkg_info", list!["etc/passwd"], map! {}),
        ("lowpkg.unpurge", list![], map! {}),
    ]), @r#"
        lowpkg.list_pkgs: {"at": "3.2.5-1+b1", "libc6:amd64": "2.36-9"}
        lowpkg.list_pkgs: "Error:  dpkg-query: no packages found matching none"
        lowpkg.list_pkgs: ERROR: '-x' cannot be used: it starts with '-' or is empty
        lowpkg.file_list: {"errors": [], "files": ["/.", "/lib/libc.so.6", "/usr/bin/at"]}
        lowpkg.file_dict: {"errors": [], "packages": {"at": ["/.", "/usr/bin/at"], "libc6:amd64": ["/.", "/lib/libc.so.6"]}}
        lowpkg.bin_pkg_info: {"name": "at:i386", "version": "3.2.5-1+b1", "arch": "i386"}
        lowpkg.bin_pkg_info: ERROR: Unable to get info for /etc/passwd: dpkg-deb: error: '/etc/passwd' is not a Debian format archive
        lowpkg.bin_pkg_info: ERROR: etc/passwd does not exist on minion
        lowpkg.unpurge: {}
        "#);
    let other = context_with(map! {"os_family" => "RedHat"}, Scripted::new(""));
    let error = "lowpkg.list_pkgs: ERROR: lowpkg works with dpkg only, not on the os_family 'RedHat'";
    assert_eq!(answers(&other, &[("lowpkg.list_pkgs", list![], map! {})]), error);
}

#[test]
fn arguments_that_would_be_ignored_are_refused() {
    let context = context_with(map! {"os_family" => "Debian"}, Scripted::new(""));
    for (function, positional, argument) in [
        ("lowpkg.list_pkgs", list![], "root"),
        ("lowpkg.file_list", list![], "root"),
        ("lowpkg.file_dict", list![], "root"),
        ("lowpkg.info", list![], "root"),
        ("pkg.list_pkgs", list![], "includes"),
        ("pkg.list_repo_pkgs", list![], "byrepo"),
        ("pkg.mod_repo", list!["deb http://a stable main"], "consolidate"),
        ("pkg.upgrade", list![], "force_yes"),
        ("pip.install", list!["flask"], "allow_external"),
    ] {
        let error = answers(&context, &[(function, positional, map! {argument => "x"})]);
        assert!(error.contains(&format!("the argument '{argument}' is not supported")), "{function}: {error}");
    }
}

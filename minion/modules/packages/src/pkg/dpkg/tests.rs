use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by dpkg 1.21.
const OUTPUT: &str = r"
        | package:no-such-1
        | revision:
        | architecture:amd64
        | maintainer:Jose M Calhariz <calhariz@debian.org>
        | summary:
        | source:at
        | version:3.2.5-1+b1
        | section:admin
        | size:
        | origin:Debian
        | homepage:http://blog.calhariz.com
        | status:ii
        | install_date:1795586025
        | description:Delayed job execution and batch processing
        |  At and batch read shell commands: from standard input
        |  .
        |   at    to run the job
        |
        | */~^\*
        | package:no-such-2
        | version:1
        | status:rc
        | install_date:
        | description:Old
        |
        | */~^\*
    ";

#[test]
fn packages_have_their_fields() {
    let transcript = format!("$ dpkg-query -W ...\n{OUTPUT}");
    let context = context_with(map! {"os_family" => "Debian"}, Scripted::new(&transcript));
    insta::assert_snapshot!(answers(&context, &[
        ("lowpkg.info", list!["no-such-1", "no-such-2"], map! {}),
        ("pkg.info_installed", list![], map! {}),
    ]), @r#"
        lowpkg.info: {"no-such-1": {"package": "no-such-1", "architecture": "amd64", "maintainer": "Jose M Calhariz <calhariz@debian.org>", "source": "at", "version": "3.2.5-1+b1", "section": "admin", "origin": "Debian", "homepage": "http://blog.calhariz.com", "status": "ii", "install_date": "2026-11-25T05:53:45Z", "description": "Delayed job execution and batch processing\n At and batch read shell commands: from standard input\n .\n  at    to run the job"}, "no-such-2": {"package": "no-such-2", "version": "1", "status": "rc", "description": "Old"}}
        pkg.info_installed: {"no-such-1": {"name": "no-such-1", "architecture": "amd64", "packager": "Jose M Calhariz <calhariz@debian.org>", "source": "at", "version": "3.2.5-1+b1", "group": "admin", "vendor": "Debian", "url": "http://blog.calhariz.com", "install_date": "2026-11-25T05:53:45Z", "description": "Delayed job execution and batch processing\n At and batch read shell commands: from standard input\n .\n  at    to run the job"}}
        "#);
    let unknown = "$ dpkg-query -W ...\n! dpkg-query: no packages found matching none\n= 1\n";
    let context = context_with(map! {"os_family" => "Debian"}, Scripted::new(unknown));
    insta::assert_snapshot!(answers(&context, &[
        ("lowpkg.info", list!["none"], map! {}),
        ("pkg.info_installed", list!["none"], map! {"failhard" => false}),
        ("pkg.info_installed", list!["none"], map! {"colour" => 1}),
    ]), @r#"
        lowpkg.info: ERROR: Error getting packages information: dpkg-query: no packages found matching none
        pkg.info_installed: {}
        pkg.info_installed: ERROR: 'colour' is an invalid keyword argument for this function
        "#);
}

#[test]
fn licenses_are_those_of_the_copyright_file() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("x")).unwrap();
    std::fs::write(directory.path().join("x/copyright"), "License: MIT\n a\nLicense: GPL-2\nLicense: MIT\n").unwrap();
    assert_eq!(licenses(directory.path(), "x"), "GPL-2, MIT");
    assert_eq!(licenses(directory.path(), "none"), "");
}

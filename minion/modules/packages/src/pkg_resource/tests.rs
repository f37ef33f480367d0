use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

#[test]
fn versions_are_compared_and_formatted() {
    let programs = Scripted::new(
        "
            $ dpkg --compare-versions 1.2 lt 1.10
            $ dpkg --compare-versions 1.2 eq 1.10
            = 1
            $ dpkg --compare-versions 1.2 gt 1.10
            = 1
            $ dpkg --print-architecture
            | amd64
            ",
    );
    let context = context_with(map! {"os_family" => "Debian", "osarch" => "amd64"}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("pkg_resource.version_compare", list!["1.2", "<", "1.10"], map! {}),
        ("pkg_resource.version_compare", list!["1.2", "!=", "1.10"], map! {}),
        ("pkg_resource.version_compare", list!["1.2", ">=", "1.10"], map! {}),
        ("pkg_resource.version_compare", list!["1.2", "~", "1.10"], map! {}),
        ("pkg_resource.format_version", list!["1", "2.0", "3"], map! {}),
        ("pkg_resource.format_version", list!["", "2.0", ""], map! {}),
        ("pkg_resource.version_clean", list!["1:2"], map! {}),
        ("pkg_resource.pack_sources", list![list![map! {"foo" => "salt://foo.deb"}]], map! {"normalize" => false}),
        ("pkg_resource.pack_sources", list![list!["foo"]], map! {}),
        ("pkg_resource.parse_targets", list!["vim"], map! {"version" => "9"}),
        ("pkg_resource.parse_targets", list![], map! {"pkgs" => list!["vim", map! {"nano" => "7"}]}),
        ("pkg_resource.parse_targets", list![], map! {"sources" => list![map! {"foo" => "/x/foo.deb"}]}),
        ("pkg_resource.parse_targets", list![], map! {"sources" => list![map! {"foo" => "foo.deb"}]}),
        ("pkg_resource.parse_targets", list!["--x"], map! {}),
        ("pkg_resource.parse_targets", list![], map! {}),
    ]), @r#"
        pkg_resource.version_compare: true
        pkg_resource.version_compare: true
        pkg_resource.version_compare: false
        pkg_resource.version_compare: ERROR: oper is invalid: expected <, <=, ==, >=, > or !=, got ~
        pkg_resource.format_version: "1:2.0-3"
        pkg_resource.format_version: "2.0"
        pkg_resource.version_clean: "1:2"
        pkg_resource.pack_sources: {"foo": "salt://foo.deb"}
        pkg_resource.pack_sources: {}
        pkg_resource.parse_targets: [{"vim": "9"}, "repository"]
        pkg_resource.parse_targets: [{"vim": null, "nano": "7"}, "repository"]
        pkg_resource.parse_targets: [["/x/foo.deb"], "file"]
        pkg_resource.parse_targets: ERROR: foo.deb is neither an absolute path nor a URL
        pkg_resource.parse_targets: ERROR: '--x' cannot be used: it starts with '-' or is empty
        pkg_resource.parse_targets: [null, null]
        "#);
}

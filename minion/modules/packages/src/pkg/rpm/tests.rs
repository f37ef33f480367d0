use super::*;

#[test]
fn output_of_rpm_is_parsed() {
    let text = "brine-one_|-(none)_|-1.0_|-1_|-noarch_|-1795275166\n\
                brine-two_|-2_|-1.0_|-3_|-noarch_|-1795275166\n\
                kernel_|-0_|-6.2_|-1_|-x86_64_|-2\n\
                kernel_|-(none)_|-6.1_|-1_|-x86_64_|-1\n\
                glibc_|-(none)_|-2.36_|-1_|-i686_|-1\n\
                key_|-(none)_|-a1_|-_|-(none)_|-(none)\nrubbish\n";
    let listed = lines(text, "x86_64");
    let report: Vec<(String, Vec<&str>)> = listed
        .iter()
        .map(|(name, all)| (name.clone(), all.iter().map(|installed| installed.version.as_str()).collect()))
        .collect();
    let expected = [
        ("brine-one", vec!["1.0-1"]),
        ("brine-two", vec!["2:1.0-3"]),
        ("glibc.i686", vec!["2.36-1"]),
        ("kernel", vec!["6.1-1", "6.2-1"]),
        ("key.(none)", vec!["a1"]),
    ];
    assert_eq!(report, expected.map(|(name, versions)| (name.to_owned(), versions)));
    let details = Details {
        epoch: Some("2".into()),
        version: "1.0".into(),
        release: Some("3".into()),
        arch: "noarch".into(),
        installed: Some(1_795_275_166),
    };
    assert_eq!(listed["brine-two"][0].details, Some(details));
}

#[test]
fn names_omit_the_hosts_architecture() {
    for (name, own, expected) in [
        ("zsh.x86_64", "x86_64", "zsh"),
        ("zsh.noarch", "x86_64", "zsh"),
        ("zsh.i686", "x86_64", "zsh.i686"),
        ("zsh.i686", "i386", "zsh"),
        ("python3.11", "x86_64", "python3.11"),
        ("zsh.x86_64", "x86_64_v2", "zsh"),
        ("zsh", "x86_64", "zsh"),
    ] {
        let report = match split_arch(name) {
            Some((bare, arch)) => resolved(bare, arch, own),
            None => name.to_owned(),
        };
        assert_eq!(report, expected, "{name} {own}");
    }
}

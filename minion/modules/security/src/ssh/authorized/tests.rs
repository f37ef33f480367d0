use super::*;

#[test]
fn lines_round_trip() {
    for (line, options, key, comment) in [
        ("ssh-rsa AAAA fred@host of fred", "", "AAAA", "fred@host of fred"),
        ("no-pty,command=\"a b\" ecdsa-sha2-nistp256 BBBB", "no-pty|command=\"a b\"", "BBBB", ""),
        ("sk-ssh-ed25519@openssh.com CCCC  x", "", "CCCC", "x"),
    ] {
        let actual = Key::parse(line).unwrap();
        assert_eq!((actual.options.join("|").as_str(), &*actual.key, &*actual.comment), (options, key, comment));
        assert_eq!(actual.render().trim_end(), line.replace("  ", " "));
    }
    assert_eq!(Key::parse("AAAA fred"), None);
    assert_eq!(keys("# ssh-rsa AAAA x\nssh-rsa BBBB\nssh-rsa not%base64\n").keys().collect::<Vec<_>>(), ["BBBB"]);
}

#[test]
fn only_the_line_of_the_key_is_changed() {
    let text = "# mine\n\n ssh-rsa AAAA a \nunknown line\nssh-rsa BBBB b\n";
    assert_eq!(with_replaced_key(text, "AAAA", "new\n"), "# mine\nnew\nunknown line\nssh-rsa BBBB b\n");
    assert_eq!(with_replaced_key(text, "BBBB", ""), "# mine\nssh-rsa AAAA a\nunknown line\n");
}

#[test]
fn paths_expand_user_and_home() {
    let path = |config| File::of("root", config).map(|file| file.unwrap().path.display().to_string());
    assert_eq!(path(".ssh/keys").unwrap(), "/root/.ssh/keys");
    assert_eq!(path("/keys/%u%%%h").unwrap(), "/keys/root%/root");
    assert!(path("%x").is_err() && path("x%").is_err());
    assert!(File::of("nobody_here", "x").unwrap().is_none());
}

#[test]
fn key_types_have_short_names() {
    assert_eq!([full_kind("rsa"), full_kind("ed25519")], [Ok("ssh-rsa"), Ok("ssh-ed25519")]);
    assert!(full_kind("none").is_err());
    assert_eq!(fingerprint("AAAA", Some("MD5")).unwrap().unwrap(), "69:3e:9a:f8:4d:3d:fc:c7:1e:64:0e:00:5b:dc:5e:2e");
    assert!(fingerprint("AAAA", Some("sum")).is_err());
}

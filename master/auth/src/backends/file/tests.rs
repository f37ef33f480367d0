use brine_value::{Value, map};

use super::*;

#[test]
fn passwords_are_compared_in_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("users");
    let sha256 = hex(Digest::Sha256.of("pw"));
    let digest = hex(Digest::Md5.of("fred:realm:pw"));
    let bcrypt = bcrypt::hash("pw", 4).unwrap();
    for (content, options) in [
        ("# users\nann:other\nfred:pw:more\n".to_owned(), map! {}),
        (format!("fred:{sha256}\n"), map! {"^hashtype" => "sha256"}),
        (
            "1|fred|x|pw\n".to_owned(),
            map! {"^field_separator" => "|", "^username_field" => 2, "^password_field" => "4"},
        ),
        (format!("fred:realm:{digest}\n"), map! {"^filetype" => "htdigest", "^realm" => "realm"}),
        (format!("fred:{bcrypt}\n"), map! {"^filetype" => "htpasswd"}),
        ("fred:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n".to_owned(), map! {"^filetype" => "htpasswd"}),
    ] {
        std::fs::write(&path, &content).unwrap();
        let mut options = options;
        options.insert("^filename".into(), path.display().to_string().into());
        let file = PasswordFile::new(&options).unwrap();
        for (user, password, right) in [
            ("fred", "pw", true),
            ("fred", "pw ", false),
            ("fred", "", false),
            ("nobody", "pw", false),
            ("", "", false),
        ] {
            let proven = file.authenticate(user, password).unwrap();
            assert_eq!(proven.is_some(), right, "{content} {user} {password}");
        }
    }
}

#[test]
fn invalid_lines_authenticate_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("users");
    std::fs::write(&path, "fred\nann:\n:pw\nbob:$1$x$y\n").unwrap();
    for filetype in ["text", "htpasswd"] {
        let options = map! {"^filename" => path.display().to_string(), "^filetype" => filetype};
        let file = PasswordFile::new(&options).unwrap();
        for user in ["fred", "ann", "bob"] {
            assert_eq!(file.authenticate(user, "").unwrap(), None, "{filetype} {user}");
        }
    }
}

#[test]
fn invalid_options_are_errors() {
    let name = ("^filename", Value::from("/nonexistent/users"));
    for (option, value, reported) in [
        (
            "^filetype",
            Value::from("xml"),
            "external_auth file: ^filetype: 'xml' is unknown: expected text, htpasswd or htdigest",
        ),
        ("^filetype", "htdigest".into(), "external_auth file: ^realm: is missing: htdigest requires it"),
        (
            "^hashtype",
            "rot13".into(),
            "external_auth file: ^hashtype: 'rot13' is unknown: expected plaintext or a digest such as sha256",
        ),
        ("^username_field", 0.into(), "external_auth file: ^username_field: expected a number from 1 on"),
    ] {
        let options = [(name.0.into(), name.1.clone()), (option.into(), value)].into_iter().collect();
        assert_eq!(PasswordFile::new(&options).err().map(|error| error.to_string()).as_deref(), Some(reported));
    }
    assert!(PasswordFile::new(&Map::new()).is_err());
    let file = PasswordFile::new(&[(name.0.into(), name.1)].into_iter().collect()).unwrap();
    assert!(file.authenticate("fred", "pw").unwrap_err().to_string().starts_with("reading /nonexistent/users failed"));
}

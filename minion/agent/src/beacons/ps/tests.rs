use brine_value::list;

use super::super::tests::wrong;
use super::*;

#[test]
fn processes_in_the_configured_state_are_reported() {
    let ps = Ps(vec![
        ("a".into(), Reported::Running),
        ("b".into(), Reported::Running),
        ("a".into(), Reported::Stopped),
        ("b".into(), Reported::Stopped),
        ("c".into(), Reported::Missing),
    ]);
    let running = HashSet::from(["a".to_owned()]);
    assert_eq!(ps.events(&running), [map! {"a" => "Running"}, map! {"b" => "Stopped"}, map! {"c" => false}]);
}

#[test]
fn long_process_names_are_not_truncated() {
    let directory = tempfile::tempdir().unwrap();
    for (comm, line, whole) in [
        ("sh\n", &b"/bin/other\0-c"[..], "sh"),
        ("a-very-long-nam\n", &b"/usr/bin/a-very-long-name\0-x"[..], "a-very-long-name"),
        ("a-very-long-nam\n", &b"python3\0x"[..], "a-very-long-nam"),
    ] {
        let process = directory.path().join("17");
        std::fs::create_dir_all(&process).unwrap();
        std::fs::write(process.join("comm"), comm).unwrap();
        std::fs::write(process.join("cmdline"), line).unwrap();
        assert_eq!(name(&process).as_deref(), Some(whole));
    }
    assert_eq!(name(Path::new("/proc/sys")), None);
    assert!(!names().unwrap().is_empty());
}

#[test]
fn options_are_checked() {
    assert_eq!(
        wrong("ps", &list![map! {"processes" => list!["a"]}]),
        "option 'processes': expected a mapping, got list"
    );
}

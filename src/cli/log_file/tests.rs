use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn rotated_file_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log/salt/master");
    let mut log = LogFile::new(&path, true);
    assert!(!path.exists(), "the first line opens the file");
    log.write_all(b"one\n").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777 & !0o640, 0);
    fs::rename(&path, path.with_extension("1")).unwrap();
    log.write_all(b"two\n").unwrap();
    assert_eq!(fs::read_to_string(path.with_extension("1")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    fs::remove_dir_all(directory.path().join("log")).unwrap();
    log.write_all(b"three\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
}

#[test]
fn errors_of_the_file_are_retried() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let path = directory.path().join("file/log");
    let mut log = LogFile::new(&path, true);
    log.open_now();
    assert!(log.is_reported);
    assert_eq!(log.write(b"line\n").unwrap(), 5);
    fs::remove_file(directory.path().join("file")).unwrap();
    log.write_all(b"later\n").unwrap();
    assert!(!log.is_reported);
    assert_eq!(fs::read_to_string(&path).unwrap(), "later\n");
}

#[test]
fn directory_of_a_disabled_log_file_is_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = LogFile::new(&directory.path().join("salt/master"), false);
    log.write_all(b"line\n").unwrap();
    assert!(!log.is_reported && !directory.path().join("salt").exists());
}

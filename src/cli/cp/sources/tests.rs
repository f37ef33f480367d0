use super::*;

#[test]
fn directories_are_walked_without_links_to_directories() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("site");
    fs::create_dir_all(root.join("deep/empty")).unwrap();
    fs::write(root.join("a"), "").unwrap();
    fs::write(root.join("deep/b"), "").unwrap();
    std::os::unix::fs::symlink(&root, root.join("deep/loop")).unwrap();
    let source_files = SourceFiles::below(&[root.display().to_string()]).unwrap();
    let names = |entries: &[Entry]| -> Vec<_> {
        entries.iter().map(|one| (one.name.clone(), one.below.clone().unwrap_or_default())).collect()
    };
    let pair = |below: &str| ("site".to_owned(), below.to_owned());
    assert_eq!(names(&source_files.files), [pair("a"), pair("deep/b")]);
    assert_eq!(names(&source_files.empty), [pair("deep/empty")]);
    let single = root.join("a").display().to_string();
    assert_eq!(SourceFiles::below(&[single]).unwrap().files[0].below, None);
    assert!(SourceFiles::below(&["/no/such/file".to_owned()]).unwrap_err().to_string().contains("does not exist"));
}

#[test]
fn only_small_text_files_are_sent_in_one_job() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    assert_eq!(small(&write("text", "häß".as_bytes())).unwrap(), "häß");
    for (source, expected) in [
        (write("binary", b"\xff\xfe"), "is not text: use the option --chunked"),
        (write("large", &vec![b'a'; MAX_SINGLE_JOB_SIZE as usize + 1]), "is larger than 1 MiB"),
        (directory.path().display().to_string(), "is a directory"),
        ("/no/such/file".to_owned(), "is not available"),
    ] {
        assert!(small(&source).unwrap_err().to_string().contains(expected), "{source}");
    }
}

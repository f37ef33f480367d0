use super::*;

#[test]
fn cache_paths_are_unique_and_confined() {
    let cache = Path::new("/c");
    for (url, expected) in [
        ("salt://a/b.txt", Some("/c/files/base/a/b.txt")),
        ("salt:///a", Some("/c/files/base/a")),
        ("salt://a?saltenv=dev", Some("/c/files/dev/a")),
        ("salt://|a", Some("/c/files/base/a")),
        ("salt://../a", None),
        ("salt://a?saltenv=../../etc", None),
        ("/etc/hosts", Some("/c/localfiles/etc/hosts")),
        ("https://h.example/a/b", Some("/c/extrn_files/base/h.example/a/b")),
        ("https://who:word@h.example:81/a?q=1#x", Some("/c/extrn_files/base/h.example81/a-q=1")),
        ("https://h.example/../../b", None),
    ] {
        assert_eq!(path_of(cache, url, "base"), expected.map(PathBuf::from), "{url}");
    }
    let long = external(cache, &format!("https://h/{}", "a".repeat(300)), "base").unwrap();
    assert_eq!(long.file_name().unwrap().len(), 64);
}

#[test]
fn etag_avoids_the_second_fetch() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("files/a");
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    // A request with the ETag is answered with a status only.
    let port = brine_testing::web::server(move |request| {
        if request.to_lowercase().contains("if-none-match: \"1\"") {
            return ("304 Not Modified", "text/plain", String::new());
        }
        count.fetch_add(1, Ordering::Relaxed);
        ("200 OK\r\nETag: \"1\"", "text/plain", "content".into())
    });
    let url = format!("http://127.0.0.1:{port}/a");
    let context = crate::testing::context(&[]);
    let fetch = |use_etag| {
        let remote = Remote { use_etag, ..Remote::default() };
        fetch_remote(&context, &url, &target, &remote).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "content");
        sent.load(Ordering::Relaxed)
    };
    assert_eq!((fetch(true), fetch(true), fetch(false)), (1, 1, 2));
    std::fs::remove_file(&target).unwrap();
    assert_eq!((fetch(true), fetch(true)), (3, 3));
}

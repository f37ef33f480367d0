//! Files of a master with another `hash_type`, fetched by functions of `cp`.

use crate::support;

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::support::{System, stdout};
use brine_value::{Value, list, map};

/// A web server with one file.
fn web_server() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            let length = stream.read(&mut asked).unwrap();
            let is_there = asked[..length].starts_with(b"GET /file ");
            let (status, body) = if is_there { ("200 OK", "from the web\n") } else { ("404 Not Found", "") };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    port
}

async fn system(options: &str) -> System {
    let mut system = System::start(options).await;
    system.write("srv/salt/web/a.txt", "content\n");
    system.write("srv/salt/web/deep/b.txt", "b\n");
    system.write("srv/salt/greeting.j2", "hello {{ who }} of {{ grains.id }}\n");
    // Larger than one reply, and not cached in memory.
    system.write("srv/salt/big", &"0123456789abcdef".repeat(20_000));
    system.start_minion("web1").await;
    system
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_fetched_with_any_hash_type() {
    for (kind, hash) in [
        ("md5", "f75b8179e4bbe7e2b4a074dcef62de95"),
        ("sha1", "7fe70820e08a1aac0ef224d9c66ab66831cc4ab1"),
        (
            "sha512",
            "90eecf7b3db9ea38dda020755b28405c5267c8865e76bd9847f4f2f8c95a7ebf\
             be1e2c81ab9766573535389264178eda6ca951287471840115bd403668a4ec37",
        ),
    ] {
        let system = system(&format!("hash_type: {kind}\n")).await;
        let report = system.salt_json(&["web1", "cp.hash_file", "salt://web/a.txt"]);
        assert_eq!(report.get("web1"), Some(&map! {"hash_type" => kind, "hsum" => hash}.into()));
        for (path, content) in [("web/a.txt", "content\n".to_owned()), ("big", "0123456789abcdef".repeat(20_000))] {
            let report = system.salt_json(&["web1", "cp.get_file_str", &format!("salt://{path}")]);
            assert_eq!(report.get("web1"), Some(&content.into()), "{kind} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_cp_get_files_from_a_master() {
    let system = system("hash_type: md5\n").await;
    let to = |name: &str| system.path(&format!("to/{name}")).display().to_string();
    let cached = |name: &str| system.path(&format!("web1/cache/files/base/{name}")).display().to_string();
    let port = web_server();
    let (there, none) = (format!("http://127.0.0.1:{port}/file"), format!("http://127.0.0.1:{port}/none"));
    let text = |words: &[&str]| {
        let report = system.salt_json(&[&["web1"], words].concat());
        report.get("web1").cloned().unwrap_or_else(|| panic!("{words:?}: {report}"))
    };
    let named = to("new/{{ grains.id }}");
    let directory = to("tree");
    std::fs::create_dir_all(&directory).unwrap();
    for (words, expected) in [
        (vec!["cp.is_cached", "salt://web/a.txt"], Value::from("")),
        (vec!["cp.cache_file", "salt://web/a.txt"], cached("web/a.txt").into()),
        // The second time, the copy is compared by its hash.
        (vec!["cp.cache_file", "salt://web/a.txt"], cached("web/a.txt").into()),
        (vec!["cp.is_cached", "salt://web/a.txt"], cached("web/a.txt").into()),
        (vec!["cp.cache_file", "salt://big"], cached("big").into()),
        (vec!["cp.cache_file", "salt://none"], false.into()),
        (vec!["cp.get_file", "salt://{{ 'web' }}/a.txt", &named, "template=jinja"], false.into()),
        (
            vec!["cp.get_file", "salt://{{ 'web' }}/a.txt", &named, "template=jinja", "makedirs=True"],
            to("new/web1").into(),
        ),
        (vec!["cp.get_template", "salt://greeting.j2", &to("hello"), "who=somebody"], to("hello").into()),
        (vec!["cp.get_dir", "salt://web", &directory], list![to("tree/web/a.txt"), to("tree/web/deep/b.txt")]),
        (vec!["cp.list_master"], list!["big", "greeting.j2", "web/a.txt", "web/deep/b.txt"]),
        (vec!["cp.list_master", "prefix=web/deep"], list!["web/deep/b.txt"]),
        (vec!["cp.hash_file", "salt://none"], "".into()),
        (vec!["cp.get_url", "salt://web/a.txt", &to("url")], to("url").into()),
        (vec!["cp.get_url", "salt://none", &to("none")], false.into()),
        (vec!["cp.get_url", &there, &to("from-web")], to("from-web").into()),
    ] {
        assert_eq!(text(&words), expected, "{words:?}");
    }
    let report = text(&["cp.get_url", &none, &to("none")]).to_string();
    assert!(report.contains("404"), "{report}");
    for (name, content) in [
        ("new/web1", "content\n"),
        ("hello", "hello somebody of web1\n"),
        ("tree/web/deep/b.txt", "b\n"),
        ("url", "content\n"),
        ("from-web", "from the web\n"),
    ] {
        assert_eq!(std::fs::read_to_string(to(name)).unwrap(), content, "{name}");
    }
    assert!(!system.path("to/none").exists());

    // Changed files are fetched again.
    system.write("srv/salt/web/a.txt", "changed\n");
    assert_eq!(text(&["cp.cache_file", "salt://web/a.txt"]), cached("web/a.txt").into());
    assert_eq!(std::fs::read_to_string(cached("web/a.txt")).unwrap(), "changed\n");
    let output = system.tool("salt", &["web1", "state.single", "file.managed", &to("managed"), "source=salt://big"]);
    assert!(output.status.success(), "{}", stdout(&output));
}

/// Returns the number of jobs that have sent pieces of files. Their loads are stored without the pieces.
fn chunks_sent(system: &System) -> usize {
    let output = system.tool("salt-run", &["jobs.list_jobs", "search_function=cp.recv_chunked", "--out=json"]);
    let jobs = brine_value::json::from_json(&stdout(&output)).unwrap();
    let jobs = jobs.as_map().unwrap();
    for job in jobs.values() {
        let piece = job.get("Arguments").and_then(|arguments| arguments.as_list()?.get(1)).unwrap();
        assert!(piece.is_nil() || piece.as_str().unwrap().ends_with(" bytes)"), "{piece}");
    }
    jobs.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn salt_cp_copies_small_files_large_ones_and_directories() {
    let mut system = system("salt_cp_chunk_size: 50000\n").await;
    system.start_minion("web2").await;
    let text = system.write("from/motd", "welcome\n").display().to_string();
    let copied = |words: &[&str]| {
        let output = system.tool("salt-cp", &[words, &["--out=json"]].concat());
        (brine_value::json::from_json(&stdout(&output)).unwrap_or_default(), output.status.code())
    };
    let here = |name: &str| system.path(name).display().to_string();
    let both = |path: &str| map! {"web1" => map! {path => true}, "web2" => map! {path => true}};
    assert_eq!(copied(&["*", &text, &here("to.txt")]), (both(&here("to.txt")).into(), Some(0)));
    assert_eq!(std::fs::read_to_string(here("to.txt")).unwrap(), "welcome\n");
    let refused = map! {"web1" => "Destination unavailable"};
    assert_eq!(copied(&["-L", "web1", &text, "/no/such/dir/x"]), (refused.into(), Some(1)));

    // Binary, larger than several pieces and no multiple of one; each minion has its own destination.
    let bytes: Vec<u8> = (0_u32..180_001).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::create_dir_all(system.path("from/tree/empty")).unwrap();
    std::fs::write(system.path("from/tree/big"), &bytes).unwrap();
    std::fs::write(system.path("from/tree/none"), "").unwrap();
    for more in [&["-C"][..], &["-C", "-n"]] {
        let to = here(&format!("copy{}", more.len()));
        let (result, status) = copied(&[more, &["web1", &here("from/tree"), &to]].concat());
        let names = ["tree/big", "tree/none", "tree/empty"].map(|name| format!("{to}/{name}"));
        let files: brine_value::Map = names.iter().map(|name| (name.as_str().into(), true.into())).collect();
        assert_eq!((result, status), (map! {"web1" => files}.into(), Some(0)));
        assert_eq!(std::fs::read(&names[0]).unwrap(), bytes);
        assert_eq!(std::fs::read(&names[1]).unwrap(), b"");
        assert!(std::path::Path::new(&names[2]).is_dir());
    }
    // An interrupted copy is resumed; a destination that is not a beginning of the file is replaced.
    let big = here("from/tree/big");
    for (name, present, pieces) in
        [("part", &bytes[..100_000], 2), ("none", b"", 4), ("all", &bytes, 0), ("other", &bytes[1..100_001], 4)]
    {
        let to = here(name);
        if name != "none" {
            std::fs::write(&to, present).unwrap();
        }
        let before = chunks_sent(&system);
        assert_eq!(
            copied(&["-C", "--resume", "web1", &big, &to]),
            (map! {"web1" => map! {to.as_str() => true}}.into(), Some(0))
        );
        assert_eq!(std::fs::read(&to).unwrap(), bytes, "{name}");
        assert_eq!(chunks_sent(&system) - before, pieces, "{name}");
    }
    for (words, status, expected) in [
        (&["web1", "--resume", &text, "/tmp/x"][..], 64, "--resume needs --chunked"),
        (&["nobody", &text, "/tmp/x"], 2, "No minions matched"),
        (&["*", "/no/such/file", "/tmp/x"], 42, "is not available"),
        (&["*", &here("from"), "/tmp/x"], 1, "--chunked"),
        (&["*"], 64, "a target, a file and a destination"),
    ] {
        let output = system.tool("salt-cp", words);
        let text = stdout(&output) + &support::stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?} {text}");
        assert!(text.contains(expected), "{words:?} {text}");
    }
}

/// Returns the peak of the resident memory of a process, in MiB; `None` for one that has ended.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10)
}

#[tokio::test(flavor = "multi_thread")]
async fn salt_cp_needs_no_more_memory_for_a_larger_file() {
    const WHOLE: usize = 30 << 20;
    // More than fits into a job: smaller pieces are sent.
    let system = system("salt_cp_chunk_size: 10000000\n").await;
    let minion = system.minion_pid("web1");
    let copy = |size: usize| {
        // Bytes that cannot be compressed.
        let mut state = 1_u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        })
        .take(size)
        .collect();
        let (from, to) = (system.path("from"), system.path("to"));
        std::fs::write(&from, &bytes).unwrap();
        let mut child = std::process::Command::new(support::BRINE)
            .args(["salt-cp", "-c", &system.etc(), "-C", "-t", "60", "web1"])
            .args([&from, &to])
            .stdout(std::io::stderr())
            .spawn()
            .unwrap();
        let mut tool = 0;
        let status = loop {
            tool = peak(child.id()).unwrap_or_default().max(tool);
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        assert!(status.success(), "{}", system.master_log());
        assert!(std::fs::read(&to).unwrap() == bytes, "the copy differs");
        std::fs::remove_file(to).unwrap();
        [peak(system.master_pid()).unwrap(), peak(minion).unwrap(), tool]
    };
    // The first copies fill the bounded buffers: the ring of the bus, the cache of the store, the heap.
    copy(WHOLE / 3);
    let small = copy(WHOLE / 3);
    let large = copy(WHOLE);
    for (who, (small, large)) in ["master", "minion", "salt-cp"].iter().zip(small.into_iter().zip(large)) {
        // A program that holds the whole file would use 20 MiB more.
        assert!(large < small + 15, "{who}: {small} MiB, then {large} MiB");
    }
}

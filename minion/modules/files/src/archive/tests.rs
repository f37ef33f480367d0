use std::sync::Arc;

use brine_config::MinionConfig;

use std::fs;

use super::*;
use crate::testing;

#[test]
fn saltenv_does_not_lead_out_of_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let mut minion = testing::minion(&[("a.tar", "content")]);
    let own = Arc::get_mut(&mut minion).unwrap();
    own.config = Arc::new(MinionConfig { cachedir: directory.path().join("cache"), ..(*own.config).clone() });
    let context = testing::context_of(minion);
    let path = cached(&context, "salt://a.tar", "dev").unwrap();
    assert_eq!(path, directory.path().join("cache/files/dev/a.tar"));
    assert_eq!(fs::read_to_string(path).unwrap(), "content");
    for (name, saltenv) in [("salt://a.tar", "../../out"), ("salt://a.tar?saltenv=../../out", "base")] {
        assert!(cached(&context, name, saltenv).unwrap_err().to_string().contains("Failed to cache"));
        assert!(!directory.path().join("out").exists(), "{name}");
    }
}

#[test]
fn names_of_files_never_become_options() {
    const OPTION: &str = "--checkpoint-action=exec=touch /tmp/x";
    let context = testing::context_with(brine_testing::debian(), testing::Scripted::new(""));
    for (function, keyword) in [
        ("archive.tar", map! {"options" => "cf", "tarfile" => "/tmp/a", "sources" => OPTION}),
        ("archive.tar", map! {"options" => "x", "tarfile" => OPTION}),
        ("archive.gzip", map! {"sourcefile" => OPTION}),
        ("archive.gunzip", map! {"gzipfile" => OPTION}),
        ("archive.cmd_zip", map! {"zip_file" => OPTION, "sources" => "a"}),
        ("archive.cmd_zip", map! {"zip_file" => "/tmp/a", "sources" => brine_value::list!["a", OPTION]}),
        ("archive.cmd_unzip", map! {"zip_file" => OPTION, "dest" => "/tmp"}),
        ("archive.cmd_unzip", map! {"zip_file" => "/tmp/a", "dest" => "/tmp", "excludes" => OPTION}),
    ] {
        let error = context.call(function, Args::keyword(keyword)).unwrap_err().to_string();
        assert!(error.contains("cannot be used: it starts with '-'"), "{function}: {error}");
    }
}

/// A minion whose directories are below this one, with these limits.
fn limited_context(root: &Path, archive_max_size: u64, archive_max_entries: usize) -> Context {
    let mut minion = testing::minion(&[]);
    let own = Arc::get_mut(&mut minion).unwrap();
    let cachedir = root.join("cache");
    own.config = Arc::new(MinionConfig { cachedir, archive_max_size, archive_max_entries, ..MinionConfig::default() });
    testing::context_of(minion)
}

fn shell(directory: &Path, script: &str) {
    let output = std::process::Command::new("sh").args(["-ec", script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn extractions_are_limited() {
    const PREPARE: &str = "mkdir in; printf %2000s x >in/a; printf %2000s x >in/b; mkfifo fifo; printf x >set-id; \
        chmod 4755 set-id; mkdir set-gid; chmod 2755 set-gid; tar czf a.tgz in; tar cf fifo.tar fifo; \
        tar cf set-id.tar set-id; tar cf set-gid.tar set-gid; zip -qr a.zip in; gzip -c in/a >a.gz; echo x | gzip -c >b.gz";
    const SPECIAL: &str = "set 'special_files' to True";
    let directory = tempfile::tempdir().unwrap();
    shell(directory.path(), PREPARE);
    let at = |name: &str| directory.path().join(name).display().to_string();
    let tar = |name: &str| map! {"options" => "xf", "tarfile" => at(name), "dest" => at("out")};
    let long = map! {"options" => "--extract --file", "tarfile" => "a.tgz", "cwd" => at(""), "dest" => at("out")};
    let zip = || map! {"zip_file" => at("a.zip"), "dest" => at("out")};
    // `gunzip` is limited in units of 512 bytes.
    for (function, arguments, size, entries, expected) in [
        ("archive.tar", tar("a.tgz"), 4000, 3, Ok("in/a")),
        ("archive.tar", tar("a.tgz"), 3999, 3, Err("`archive_max_size`")),
        ("archive.tar", tar("a.tgz"), 4000, 2, Err("`archive_max_entries`")),
        ("archive.tar", long.clone(), 4000, 3, Ok("in/a")),
        ("archive.tar", long, 3999, 3, Err("`archive_max_size`")),
        ("archive.tar", tar("fifo.tar"), 4000, 3, Err(SPECIAL)),
        ("archive.tar", tar("set-id.tar"), 4000, 3, Err(SPECIAL)),
        ("archive.tar", tar("set-gid.tar"), 4000, 3, Ok("set-gid")),
        ("archive.tar", map! {"options" => "-xf/a", "tarfile" => "b"}, 4000, 3, Err("named in 'options'")),
        ("archive.cmd_unzip", zip(), 4000, 3, Ok("in/a")),
        ("archive.cmd_unzip", zip(), 3999, 3, Err("`archive_max_size`")),
        ("archive.cmd_unzip", zip(), 4000, 2, Err("`archive_max_entries`")),
        ("archive.unzip", zip(), 4000, 3, Ok("in/a")),
        ("archive.unzip", zip(), 3999, 3, Err("`archive_max_size`")),
        ("archive.gunzip", map! {"gzipfile" => at("a.gz")}, 1024, 1, Err("`archive_max_size`")),
        ("archive.gunzip", map! {"gzipfile" => at("b.gz")}, 1024, 1, Ok("b")),
    ] {
        shell(directory.path(), "rm -rf out; mkdir out");
        let context = limited_context(directory.path(), size, entries);
        let case = format!("{function} {arguments:?} {size} {entries}");
        let result = context.call(function, Args::keyword(arguments));
        let written = fs::read_dir(at("out")).unwrap().count() + usize::from(Path::new(&at("b")).exists());
        match expected {
            Ok(name) => {
                assert!(result.is_ok(), "{case}: {result:?}");
                let made = [at(&format!("out/{name}")), at(name)];
                assert!(made.iter().any(|path| Path::new(path).exists()), "{case}: {name}");
            }
            Err(expected) => {
                let error = result.unwrap_err().to_string();
                assert!(error.contains(expected), "{case}: {error}");
                assert_eq!(written, 0, "{case}");
            }
        }
    }
    assert!(Path::new(&at("a.gz")).exists() && !Path::new(&at("a")).exists());
    let context = limited_context(directory.path(), 4000, 3);
    for name in ["fifo", "set-id"] {
        let mut arguments = tar(&format!("{name}.tar"));
        arguments.insert("special_files".into(), true.into());
        context.call("archive.tar", Args::keyword(arguments)).unwrap();
        assert!(Path::new(&at(&format!("out/{name}"))).exists(), "{name}");
    }
}

#[test]
fn programs_work_on_private_copies_where_others_can_write() {
    let directory = tempfile::tempdir().unwrap();
    let open = directory.path().join("open");
    fs::create_dir(&open).unwrap();
    shell(&open, "chmod 777 .; echo one >one; echo two >two; chmod 640 one");
    let context = limited_context(directory.path(), 1 << 20, 10);
    let open_path = open.display().to_string();
    let at = |name: &str| open.join(name).display().to_string();
    let call = |function: &str, arguments: Map| {
        let case = format!("{function} {arguments:?}");
        let result = context.call(function, Args::keyword(arguments)).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(!result.to_string().contains("cache/private"), "{case}: {result}");
        assert_eq!(context.job.retcode.swap(0, std::sync::atomic::Ordering::Relaxed), 0, "{case}: {result}");
        result
    };
    let tar = |options: &str, name: &str, sources: &str| {
        let arguments =
            map! {"options" => options, "tarfile" => name, "sources" => sources, "cwd" => open_path.clone()};
        call("archive.tar", arguments)
    };
    // The second run does not archive the result of the first.
    for _ in 0..2 {
        tar("cavf", "a.tgz", ".");
        assert_eq!(tar("tzf", "a.tgz", "").to_string().matches("./").count(), 3);
    }
    tar("cf", "b.tar", "one");
    tar("rf", "b.tar", "two");
    assert_eq!(tar("tf", "b.tar", ""), brine_value::list!["one", "two"]);
    for source in ["one", "two", "."] {
        let arguments = map! {"zip_file" => at("c.zip"), "sources" => source, "cwd" => open_path.clone()};
        call("archive.cmd_zip", arguments);
    }
    let listed = call("archive.list", map! {"name" => at("c.zip")});
    assert_eq!(listed, brine_value::list!["a.tgz", "b.tar", "one", "two"]);
    call("archive.cmd_unzip", map! {"zip_file" => at("c.zip"), "dest" => directory.path().join("out")});
    assert_eq!(fs::read_to_string(directory.path().join("out/two")).unwrap(), "two\n");

    let names = || fs::read_dir(&open).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let modified = fs::metadata(at("one")).unwrap().modified().unwrap();
    call("archive.gzip", map! {"sourcefile" => at("one")});
    assert!(!names().contains(&"one".into()), "{:?}", names());
    call("archive.gunzip", map! {"gzipfile" => at("one.gz"), "options" => "-k"});
    assert_eq!(fs::read_to_string(at("one")).unwrap(), "one\n");
    let status = fs::metadata(at("one")).unwrap();
    let since = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mode = std::os::unix::fs::PermissionsExt::mode(&status.permissions());
    assert_eq!((mode & 0o7777, since(status.modified().unwrap())), (0o640, since(modified)));
    fs::write(at("one"), "changed").unwrap();
    let again = context.call("archive.gunzip", Args::keyword(map! {"gzipfile" => at("one.gz")}));
    assert!(again.unwrap_err().to_string().contains("already exists; not overwritten"));
    call("archive.gunzip", map! {"gzipfile" => at("one.gz"), "options" => "-f"});
    assert_eq!(fs::read_to_string(at("one")).unwrap(), "one\n");
    assert!(!names().contains(&"one.gz".into()), "{:?}", names());
    assert_eq!(fs::read_dir(directory.path().join("cache/private")).unwrap().count(), 0);
}

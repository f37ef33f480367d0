use std::sync::Arc;

use brine_config::MinionConfig;
use brine_function::Args;
use brine_value::json::to_json;
use brine_value::list;

use super::*;
use crate::testing;

#[test]
fn files_are_listed_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let context = keeping(directory.path(), &[("web/init.sls", "{}"), ("web/a.txt", "hello"), ("db.sls", "{}")]);
    for (fun, args, expected) in [
        ("cp.list_states", &[][..], list!["db", "web"]),
        ("cp.list_master", &["base", "web/a"], list!["web/a.txt"]),
        ("cp.get_file_str", &["salt://web/a.txt"], "hello".into()),
        ("cp.get_file_str", &["salt://web/a.txt?saltenv=base"], "hello".into()),
        ("cp.get_file_str", &["salt://no"], Value::Bool(false)),
        // The test's file server uses the file's length as its hash.
        ("cp.hash_file", &["salt://web/a.txt"], map! {"hash_type" => "sha256", "hsum" => "5"}.into()),
        ("cp.hash_file", &["salt://no"], "".into()),
        ("cp.hash_file", &["/nonexistent"], Value::map()),
        ("cp.stat_file", &["salt://no"], Value::Nil),
        ("cp.stat_file", &["/nonexistent"], Value::Nil),
    ] {
        let positional = args.iter().map(|arg| Value::from(*arg)).collect();
        let actual = context.call(fun, Args { positional, keyword: Map::new() }).map_err(|error| error.to_string());
        assert_eq!(actual, Ok(expected), "{fun} {args:?}");
    }
}

/// Returns the context of a minion with these files, and with the cache in a directory.
fn keeping(directory: &Path, files: &[(&str, &str)]) -> Context {
    let mut minion = testing::minion(files);
    if let Some(own) = Arc::get_mut(&mut minion) {
        own.config = Arc::new(MinionConfig { cachedir: directory.join("cache"), ..(*own.config).clone() });
    }
    testing::context_of(minion)
}

/// Returns the result of a call as a string, with the directory replaced by `ROOT`.
fn answer(context: &Context, directory: &Path, call: &str) -> String {
    let root = directory.display().to_string();
    let mut words = call.replace("ROOT", &root);
    let mut args = Args::default();
    let named = words.split_off(words.find(" --").unwrap_or(words.len()));
    let value = |word: &str| match word {
        "None" => Value::Nil,
        "True" => true.into(),
        "''" => "".into(),
        word => word.into(),
    };
    let mut words = words.split(' ');
    let function = words.next().unwrap_or_default();
    args.positional = words.map(value).collect();
    for (name, word) in named.split(" --").filter_map(|word| word.split_once('=')) {
        args.keyword.insert(name.into(), value(word));
    }
    match context.call(function, args) {
        Ok(value) => to_json(&value).replace(&root, "ROOT"),
        Err(error) => format!("!{}", error.message()).replace(&root, "ROOT"),
    }
}

#[test]
fn files_are_cached_and_copied_as_in_salt() {
    let directory = tempfile::tempdir().unwrap();
    let files = [("a.txt", "hello"), ("dir/one", "1"), ("dir/sub/two.py", "2"), ("dirt", "x"), ("test-minion/f", "f")];
    let context = keeping(
        directory.path(),
        &[&files[..], &[("t", "{{ grains.id }} {{ x | default(1) }} {{ saltenv }}")]].concat(),
    );
    std::fs::create_dir(directory.path().join("out")).unwrap();
    std::fs::write(directory.path().join("own"), "own").unwrap();
    for (call, expected) in [
        ("cp.is_cached salt://a.txt", r#""""#),
        ("cp.cache_file salt://a.txt", r#""ROOT/cache/files/base/a.txt""#),
        ("cp.cache_file salt://a.txt?saltenv=dev", r#""ROOT/cache/files/dev/a.txt""#),
        ("cp.cache_file salt://no", "false"),
        ("cp.cache_file /etc/hostname", r#""/etc/hostname""#),
        ("cp.cache_file relative", "!Path 'relative' is not absolute"),
        ("cp.cache_file s4://a/b", "!Unsupported url scheme: s4://a/b"),
        ("cp.cache_file salt://../a", "!salt://../a does not name a file below its root"),
        ("cp.cache_files salt://a.txt,salt://no", r#"["ROOT/cache/files/base/a.txt", false]"#),
        ("cp.cache_dir salt://dir", r#"["ROOT/cache/files/base/dir/one", "ROOT/cache/files/base/dir/sub/two.py"]"#),
        ("cp.cache_dir salt://dir --include_pat=E@py$", r#"["ROOT/cache/files/base/dir/sub/two.py"]"#),
        ("cp.cache_dir salt://dir --exclude_pat=*.py", r#"["ROOT/cache/files/base/dir/one"]"#),
        ("cp.cache_dir nope", "!Unsupported path: nope"),
        ("cp.cache_local_file ROOT/own", r#""ROOT/cache/localfilesROOT/own""#),
        ("cp.cache_local_file ROOT/nope", r#""""#),
        ("cp.is_cached ROOT/own", r#""ROOT/cache/localfilesROOT/own""#),
        ("cp.is_cached salt://|a.txt", r#""|ROOT/cache/files/base/a.txt""#),
        ("cp.cache_dest salt://b", r#""ROOT/cache/files/base/b""#),
        ("cp.cache_dest /b", r#""/b""#),
        ("cp.list_minion dev", r#"["ROOT/cache/files/dev/a.txt", "ROOT/cache/localfilesROOT/own"]"#),
        ("cp.get_file salt://a.txt ROOT/out/a", r#""ROOT/out/a""#),
        ("cp.get_file salt://no ROOT/out/a", r#""""#),
        ("cp.get_file salt://a.txt ROOT/no/a", "false"),
        ("cp.get_file salt://a.txt ROOT/no/a --makedirs=True", r#""ROOT/no/a""#),
        ("cp.get_file salt://a.txt ROOT/out", r#""ROOT/out/a.txt""#),
        ("cp.get_file salt://a.txt ''", r#""ROOT/cache/files/base/a.txt""#),
        ("cp.get_file /etc/hostname ROOT/out/x", "!Unsupported path: /etc/hostname"),
        ("cp.get_file salt://{{grains.id}}/f ROOT/out/{{grains.id}} --template=jinja", r#""ROOT/out/test-minion""#),
        (
            "cp.get_file salt://a.txt ROOT/out/x --template=py",
            "!Attempted to render file paths with unavailable engine py",
        ),
        ("cp.get_dir salt://dir/ ROOT/out", r#"["ROOT/out/dir/one", "ROOT/out/dir/sub/two.py"]"#),
        ("cp.get_dir salt://dir/sub ROOT/out", r#"["ROOT/out/sub/two.py"]"#),
        ("cp.get_dir salt://nope ROOT/out", "[]"),
        ("cp.get_url salt://a.txt", r#""ROOT/cache/files/base/a.txt""#),
        ("cp.get_url salt://a.txt ROOT/out/u", r#""ROOT/out/u""#),
        ("cp.get_url salt://a.txt None", r#""hello""#),
        ("cp.get_url salt://no None", "false"),
        ("cp.get_url ROOT/own ROOT/out/v", r#""ROOT/own""#),
        ("cp.get_url ROOT/own None", r#""own""#),
        ("cp.get_template salt://t ROOT/out/t --x=y", r#""ROOT/out/t""#),
        ("cp.get_template salt://t ''", r#""ROOT/cache/extrn_files/base/t""#),
        ("cp.get_template salt://no ROOT/out/t2", r#""""#),
        ("cp.get_template salt://t ROOT/none/t", r#""""#),
        ("cp.get_template salt://t ROOT/out/t --template=mako", r#""""#),
        ("cp.get_file_str ROOT/own", r#""own""#),
    ] {
        assert_eq!(answer(&context, directory.path(), call), expected, "{call}");
    }
    for (path, text) in [("no/a", "hello"), ("out/sub/two.py", "2"), ("out/t", "test-minion y base")] {
        assert_eq!(std::fs::read_to_string(directory.path().join(path)).unwrap(), text, "{path}");
    }
    assert!(!directory.path().join("out/v").exists());
}

#[test]
fn files_are_fetched_from_web_servers() {
    let directory = tempfile::tempdir().unwrap();
    let context = keeping(directory.path(), &[]);
    std::fs::create_dir(directory.path().join("out")).unwrap();
    let port = brine_testing::web::server(|request| {
        let is_there = !request.starts_with("GET /none ");
        let (status, body) = if is_there { ("200 OK", "web") } else { ("404 Not Found", "") };
        (status, "text/plain", body.into())
    });
    for (call, expected) in [
        ("cp.get_url URL/a ROOT/out/a", r#""ROOT/out/a""#),
        ("cp.get_url URL/a ROOT/out/", r#""ROOT/out/a""#),
        ("cp.get_url URL/ ROOT/out/", r#""ROOT/out/index.html""#),
        ("cp.get_url URL/a ROOT/none/a", r#""""#),
        ("cp.get_url URL/a None", r#""web""#),
        ("cp.get_url URL/none ROOT/out/b", "!Error: HTTP 404: Not Found reading /none"),
        ("cp.cache_file URL/a?b=c", r#""ROOT/cache/extrn_files/base/127.0.0.1PORT/a-b=c""#),
        ("cp.get_file_str URL/a", r#""web""#),
    ] {
        let call = call.replace("URL", &format!("http://127.0.0.1:{port}"));
        let expected = expected.replace("PORT", &port.to_string());
        assert_eq!(answer(&context, directory.path(), &call), expected, "{call}");
    }
}

/// Only a whole file is a file, whatever a server answers. Each function that reads from web servers keeps the old
/// file; Salt 3008 does so too, except for the statuses 204, 205 and 206.
#[test]
fn odd_answers_never_become_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let context = keeping(directory.path(), &[]);
    let port = brine_testing::web::odd_server();
    let old = directory.path().join("old");
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let state = |name: &str, args: Map| {
        let state = brine_testing::state_context(false, context.clone());
        context.minion.states.call(&state, name, Args::keyword(args)).unwrap()
    };
    let result = |answer: &Value| answer.as_map().and_then(|map| map.get("result")).cloned();
    for (is_whole, name) in brine_testing::web::ODD
        .iter()
        .map(|(name, _)| (false, name))
        .chain(brine_testing::web::WHOLE.iter().map(|(name, _)| (true, name)))
    {
        let url = format!("http://127.0.0.1:{port}/{name}");
        let expected = if is_whole { "whole" } else { "old" };
        std::fs::write(&old, "old").unwrap();
        let answered = answer(&context, directory.path(), &format!("cp.get_url {url} ROOT/old"));
        assert_eq!(
            (answered.starts_with('!'), text(&old).as_str()),
            (!is_whole, expected),
            "get_url {name}: {answered}"
        );

        std::fs::write(&old, "old").unwrap();
        let outcome =
            state("file.managed", map! {"name" => old.clone(), "source" => url.as_str(), "skip_verify" => true});
        assert_eq!(
            (result(&outcome), text(&old).as_str()),
            (Some(is_whole.into()), expected),
            "managed {name}: {outcome:?}"
        );

        let cached = directory.path().join(format!("cache/extrn_files/base/127.0.0.1{port}/{name}"));
        std::fs::create_dir_all(cached.parent().unwrap()).unwrap();
        std::fs::write(&cached, "old").unwrap();
        for call in [format!("cp.cache_file {url}"), format!("cp.get_url {url}")] {
            let answered = answer(&context, directory.path(), &call);
            assert_eq!(
                (answered.starts_with('/') || answered.starts_with("\"ROOT"), text(&cached).as_str()),
                (is_whole, expected),
                "{call}: {answered}"
            );
        }
        std::fs::write(&cached, "old").unwrap();
        let outcome = state("file.cached", map! {"name" => url.as_str(), "skip_verify" => true});
        assert_eq!(
            (result(&outcome), text(&cached).as_str()),
            (Some(is_whole.into()), expected),
            "cached {name}: {outcome:?}"
        );

        let into = directory.path().join("into");
        let outcome = state(
            "archive.extracted",
            map! {"name" => into.clone(), "source" => format!("{url}.tar"), "skip_verify" => true},
        );
        assert_eq!(result(&outcome), Some(false.into()), "extracted {name}: {outcome:?}");
        assert!(!into.exists(), "{name}");

        let answered = answer(&context, directory.path(), &format!("cp.get_url {url} None"));
        assert_eq!(answered.starts_with('!'), !is_whole, "content of {name}: {answered}");
    }
    let rest: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(rest.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{rest:?}");
}

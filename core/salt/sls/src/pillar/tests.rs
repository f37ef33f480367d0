use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_jinja::{Functions, Role};
use brine_value::{list, map};

use super::*;

/// A master's files and options.
pub(super) struct Master {
    pub directory: tempfile::TempDir,
    pub opts: Map,
}

impl Master {
    pub fn new(files: &[(&str, &str)], opts: Map) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let roots = ["base", "dev"].map(|name| (name.to_owned(), vec![directory.path().join(name)]));
        let mut all = map! {"pillar_roots" => Roots::from(roots)};
        all.extend(opts);
        Master { directory, opts: all }
    }

    pub fn pillar(&self, id: &str, pillarenv: Option<&str>, over: &Map) -> Map {
        self.pillar_in(id, None, pillarenv, over)
    }

    fn pillar_in(&self, id: &str, saltenv: Option<&str>, pillarenv: Option<&str>, over: &Map) -> Map {
        let grains = Arc::new(map! {"id" => id, "os" => "Debian"});
        PillarSource::new(Arc::new(self.opts.clone())).render(&PillarRequest {
            id: &id.parse().unwrap(),
            grains: &grains,
            saltenv,
            pillarenv,
            pillar_override: over,
            on_demand: None,
            extra_minion_data: &map! {"site" => "b", "rack" => map! {"row" => 3, "unit" => 4}},
            functions: Some(Host::new().with_functions(Commands)),
        })
    }

    pub fn of(&self, id: &str) -> Map {
        self.pillar(id, None, &Map::new())
    }
}

#[test]
fn templates_see_the_options_of_the_request() {
    let seen = "v: {{ opts.saltenv }} {{ opts.pillarenv }} {{ opts.id }} {{ opts.minion_id }} {{ opts.grains.os }} \
                {{ opts.file_client }} {{ opts.state_top }}";
    let files = [
        ("base/top.sls", "base: {'*': [a, in_base]}"),
        ("base/a.sls", seen),
        ("base/in_base.sls", "in: base"),
        ("dev/top.sls", "dev: {'*': [a, in_dev]}"),
        ("dev/a.sls", seen),
        ("dev/in_dev.sls", "in: dev"),
    ];
    for (saltenv, pillarenv, written, expected, from) in [
        (None, None, map! {}, "None None", "dev"),
        (Some("dev"), None, map! {}, "dev None", "dev"),
        (None, Some("base"), map! {}, "None base", "base"),
        (None, None, map! {"saltenv" => "a", "pillarenv" => "base"}, "a base", "base"),
        (None, None, map! {"pillarenv" => "", "state_top" => "salt://top.sls"}, "None ", "dev"),
        (None, None, map! {"state_top" => "/top.sls"}, "None None", "dev"),
        (Some("dev"), Some("base"), map! {"saltenv" => "a", "pillarenv" => "dev"}, "dev base", "base"),
        (Some("base"), None, map! {"pillarenv_from_saltenv" => true, "pillarenv" => "dev"}, "base base", "base"),
    ] {
        let pillar = Master::new(&files, written.clone()).pillar_in("web1", saltenv, pillarenv, &Map::new());
        let expected = format!("{expected} web1 web1 Debian local salt://top.sls");
        let case = format!("{saltenv:?} {pillarenv:?} {written:?}");
        assert_eq!(pillar.get("v"), Some(&expected.as_str().into()), "{case}");
        assert_eq!(pillar.get("in"), Some(&from.into()), "{case}");
    }
}

#[test]
fn an_environment_without_an_entry_is_served_by_that_of_any_name() {
    let files = &[
        ("base/top.sls", "base: {'*': [a]}"),
        ("base/a.sls", "a: base"),
        ("any/top.sls", "any: {'*': [a]}"),
        ("any/a.sls", "a: any"),
        ("envs/dev/top.sls", "dev: {'*': [a]}"),
        ("envs/dev/a.sls", "a: dev"),
        ("envs/base/top.sls", "base: {'*': [a]}"),
        ("envs/base/a.sls", "a: wrong"),
        ("secret/top.sls", "'../secret': {'*': [a]}"),
        ("secret/a.sls", "a: secret"),
    ];
    let (base, dev, any) = (map! {"a" => "base"}, map! {"a" => "dev"}, map! {"a" => "any"});
    let none = Map::new;
    for (opts, saltenv, pillarenv, expected) in [
        (none(), None, None, &base),
        (none(), None, Some("base"), &base),
        (none(), None, Some("dev"), &dev),
        (none(), Some("dev"), None, &dev),
        (none(), Some("dev"), Some("base"), &base),
        (none(), Some("base"), Some("dev"), &dev),
        (none(), None, Some("nope"), &none()),
        (none(), None, Some("any"), &any),
        (none(), None, Some("__env__"), &none()),
        (none(), None, Some("../secret"), &none()),
        (none(), None, Some("dev/../../secret"), &none()),
        (map! {"saltenv" => "dev"}, None, None, &dev),
        (map! {"pillarenv" => "dev"}, None, None, &dev),
    ] {
        let mut master = Master::new(files, opts.clone());
        let at = |path: &str| vec![master.directory.path().join(path)];
        let roots = [("base", at("base")), ("any", at("any")), ("__env__", at("envs/__env__"))];
        let roots = roots.map(|(name, at)| (name.to_owned(), at));
        master.opts.insert("pillar_roots".into(), Roots::from(roots).into());
        let mut pillar = master.pillar_in("web1", saltenv, pillarenv, &Map::new());
        // Without `pillarenv`, the files of all environments are merged.
        if pillarenv.is_none() && saltenv.is_none() && opts.is_empty() {
            assert_eq!(pillar.insert("a".into(), "base".into()), Some("any".into()));
        }
        assert_eq!(pillar, *expected, "{opts:?} {saltenv:?} {pillarenv:?}");
    }
}

#[test]
fn pillar_opts_adds_the_options_of_the_master() {
    let files = &[("base/top.sls", "base: {'*': [a]}"), ("base/a.sls", "master: {own: 1}\na: 1")];
    let pillar = Master::new(files, map! {"pillar_opts" => true, "colour" => "blue"}).of("web1");
    let options = pillar.get("master").unwrap();
    assert_eq!((options.get("colour"), options.get("own")), (Some(&"blue".into()), None));
    assert_eq!(options.get("saltversion"), Some(&brine_config::SALT_VERSION.into()));
    assert_eq!(pillar.get("a"), Some(&1.into()));
    assert_eq!(Master::new(files, map! {}).of("web1").get("master"), Some(&map! {"own" => 1}.into()));
}

#[test]
fn renderers_that_are_not_allowed_are_errors_of_the_pillar() {
    let files = &[
        ("base/top.sls", "base: {'*': [a, b]}"),
        ("base/a.sls", "#!py\ndef run(): return {}"),
        ("base/b.sls", "b: 1"),
    ];
    for (opts, disallowed) in [
        (map! {"renderer_blacklist" => list!["mako", "py"]}, "py"),
        (map! {"renderer_whitelist" => list!["jinja", "yaml"]}, "py"),
    ] {
        let mut opts: Map = opts;
        opts.insert("pillar_safe_render_error".into(), false.into());
        let pillar = Master::new(files, opts).of("web1");
        let errors = pillar.get("_errors").unwrap().to_string();
        assert!(errors.contains(&format!("The renderer \"{disallowed}\" is disallowed by configuration")), "{errors}");
        assert_eq!(pillar.get("b"), Some(&1.into()));
    }
}

#[test]
fn a_pillar_without_sources_is_known_to_be_empty() {
    let nothing: &[(&str, &str)] = &[];
    for (files, opts, has_sources) in [
        (nothing, map! {}, false),
        (&[("base/web.sls", "a: 1")], map! {}, false),
        (&[("base/top.sls", "base: {}")], map! {}, true),
        (&[("dev/top.sls", "")], map! {}, true),
        (&[("base/start.sls", "")], map! {"state_top" => "start.sls"}, true),
        (nothing, map! {"ext_pillar" => list![]}, false),
        (nothing, map! {"ext_pillar" => list![map! {"nodegroups" => Value::Nil}]}, true),
        (nothing, map! {"ext_pillar" => "a mistake"}, true),
        (nothing, map! {"pillar_opts" => true}, true),
    ] {
        let master = Master::new(files, opts);
        let source = PillarSource::new(Arc::new(master.opts.clone()));
        assert_eq!(source.has_sources(), has_sources, "{files:?} {:?}", master.opts);
        assert!(has_sources || master.of("web1").is_empty(), "{files:?}");
    }
}

/// Commands that print their arguments.
struct Commands;

impl Functions for Commands {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        if function == "http.query" {
            return Ok(match args.keyword["url"].as_str() {
                Some("http://pillar/web1") => map! {"dict" => map! {"said" => args.keyword}}.into(),
                Some("http://pillar/list") => map! {"dict" => list![1]}.into(),
                Some("http://pillar/text") => map! {"body" => "no data"}.into(),
                url => map! {"error" => format!("HTTP 404: Not Found: {url:?}"), "status" => 404}.into(),
            });
        }
        let command = args.positional[0].to_string();
        if function == "nacl.dec" {
            return Ok(format!("open {command}").into());
        }
        match (function, args.keyword.get("python_shell")) {
            ("cmd.run", Some(Value::Bool(false))) | ("cmd.run_stdout", Some(Value::Bool(true))) => {
                command.strip_prefix("echo ").map(Value::from).ok_or_else(|| format!("{command}: not found").into())
            }
            _ => Err(format!("unexpected call of {function}").into()),
        }
    }

    fn has(&self, _: &str) -> bool {
        true
    }

    fn has_module(&self, _module: &str) -> bool {
        true
    }

    fn name_of(&self, role: Role) -> Option<&'static str> {
        Some(match role {
            Role::Run => "cmd.run",
            Role::RunInShell => "cmd.run_stdout",
            Role::HttpQuery => "http.query",
            Role::LookUpGrains => "grains.get",
            Role::LookUpPillar => "pillar.get",
            Role::OpenBox => "nacl.dec",
            Role::IfElse => return None,
        })
    }
}

const ENVIRONMENTS: &[(&str, &str)] = &[
    ("base/top.sls", "base: {'*': [a, gone*]}\ndev: {'*': [d]}\n"),
    ("base/a.sls", "from: {base: 1}\nlist: [1]\n"),
    ("dev/top.sls", "dev: {'web*': [e]}\n"),
    ("dev/d.sls", "from: {d: 1}\nlist: [2]\n"),
    ("dev/e.sls", "from: {e: 1}\n"),
];

#[test]
fn all_environments_are_merged_unless_one_is_requested() {
    let missing = "Specified SLS 'gone*' in environment 'base' is not available on the salt master\n  hint: neither gone*.sls \
                   nor gone*/init.sls is below the pillar_roots of this environment";
    let base = map! {"from" => map! {"base" => 1}, "list" => list![1], "_errors" => list![missing]};
    for (opts, pillarenv, id, expected) in [
        (
            map! {},
            None,
            "web1",
            map! {"from" => map! {"base" => 1, "d" => 1, "e" => 1}, "list" => list![2], "_errors" => list![missing]},
        ),
        (
            map! {"pillar_merge_lists" => true, "env_order" => list!["dev", "base"]},
            None,
            "db1",
            map! {"from" => map! {"d" => 1, "base" => 1}, "list" => list![2, 1], "_errors" => list![missing]},
        ),
        (map! {}, Some("base"), "web1", base.clone()),
        (map! {}, Some("dev"), "web1", map! {"from" => map! {"e" => 1}}),
        (map! {}, Some("nowhere"), "web1", map! {}),
        (
            map! {"pillar_source_merging_strategy" => "overwrite"},
            None,
            "web1",
            map! {"from" => map! {"e" => 1}, "list" => list![2], "_errors" => list![missing]},
        ),
    ] {
        let pillar = Master::new(ENVIRONMENTS, opts.clone()).pillar(id, pillarenv, &Map::new());
        assert_eq!(pillar, expected, "{opts:?} {pillarenv:?}");
    }
}

#[test]
fn includes_have_defaults_and_keys() {
    let files = [
        ("base/top.sls", "base: {'*': [a, b]}"),
        ("base/a.sls", "include:\n- c: {defaults: {word: one}, key: 'x:y'}\n- c: {key: z}\n- b\nv: a\nw: a\n"),
        ("base/b.sls", "v: b\n"),
        ("base/c.sls", "word: {{ word }}\n"),
    ];
    let word = map! {"word" => "one"};
    let expected = map! {"x" => map! {"y" => word.clone()}, "z" => word, "v" => "b", "w" => "a"};
    assert_eq!(Master::new(&files, map! {}).of("m"), expected);
    let opts = map! {"pillar_includes_override_sls" => true};
    let files = [files[0], ("base/a.sls", "include: [b]\nv: a\n"), files[2]];
    assert_eq!(Master::new(&files[..2], opts.clone()).of("m").get("v"), Some(&"a".into()));
    assert_eq!(Master::new(&files, opts).of("m").get("v"), Some(&"b".into()));
}

#[test]
fn include_errors_repeat_as_in_salt() {
    let files = [
        ("base/top.sls", "base: {'*': [a]}"),
        ("base/a/init.sls", "include: [.b, a.bad, nope, a.c]\n"),
        ("base/a/b.sls", "b: 1\n"),
        ("base/a/c.sls", "c: 1\n"),
        ("base/a/bad.sls", "x: {{ no }}\n"),
        // Names are also looked up without their dots.
        ("base/b.sls", "top: 1\n"),
    ];
    let bad = "Rendering SLS 'a.bad' failed. Please see master log for details.\n  --> a/bad.sls:1";
    let nope = "Specified SLS 'nope' in environment 'base' is not available on the salt master\n  hint: neither nope.sls nor \
                nope/init.sls is below the pillar_roots of this environment";
    let expected = map! {"top" => 1, "b" => 1, "c" => 1, "_errors" => list![bad, bad, nope]};
    assert_eq!(Master::new(&files, map! {}).of("m"), expected);
}

#[test]
fn ext_pillar_is_merged_over_or_under_the_files() {
    let files = [
        ("base/top.sls", "base: {'*': [a], 'I@role:web': [w]}"),
        ("base/a.sls", "who: file\nseen: {{ pillar.get('role') }} {{ salt['pillar.get']('m:n', 'none') }}\n"),
        ("base/w.sls", "web: true\n"),
    ];
    let external = list![
        map! {"cmd_json" => "echo {\"who\": \"%s\", \"role\": \"web\"}"},
        map! {"cmd_yaml" => "echo {m: {n: 1}}"},
        map! {"nodegroups" => map! {"pillar_name" => "groups"}},
    ];
    let nodegroups = map! {"debians" => "G@os:Debian", "others" => "L@x"};
    let mut opts = map! {"ext_pillar" => external, "nodegroups" => nodegroups};
    let after = Master::new(&files, opts.clone()).of("m1");
    let both = map! {"role" => "web", "m" => map! {"n" => 1}, "groups" => list!["debians"]};
    let mut expected = map! {"who" => "m1", "seen" => "None none"};
    expected.extend(both.clone());
    assert_eq!(after, expected);

    opts.insert("ext_pillar_first".into(), true.into());
    let before = Master::new(&files, opts).pillar("m1", None, &map! {"over" => 1});
    let mut expected = map! {"who" => "file", "seen" => "web 1", "web" => true, "over" => 1};
    expected.extend(both);
    assert_eq!(before, expected);
}

#[test]
fn unavailable_sources_are_errors() {
    let advice = "remove it from 'ext_pillar', or copy its module with `salt-run saltutil.sync_pillar`; built in are cmd_json, cmd_yaml, extra_minion_data_in_pillar, file_tree, git, gpg, http_json, http_yaml, nodegroups, stack";
    for (external, errors) in [
        (list![map! {"vault" => "x"}], vec![format!("ext_pillar interface named vault is unavailable: {advice}")]),
        (list!["cmd_json"], vec!["The \"ext_pillar\" option is malformed".to_owned()]),
        ("x".into(), vec!["The \"ext_pillar\" option is malformed".to_owned()]),
        (
            list![map! {"cmd_yaml" => "echo a: b: c"}, map! {"cmd_json" => "nonsense"}],
            vec![
                "Failed to load ext_pillar cmd_yaml: the output is not YAML: line 1, column 5: mapping values are not \
                 allowed in this context"
                    .to_owned(),
                "Failed to load ext_pillar cmd_json: nonsense: not found".to_owned(),
            ],
        ),
        (
            list![map! {"cmd_json" => "echo [1]"}],
            vec!["Failed to load ext_pillar cmd_json: its output is of type list, not a mapping".to_owned()],
        ),
    ] {
        let pillar = Master::new(&[], map! {"ext_pillar" => external}).of("m1");
        assert_eq!(pillar, map! {"_errors" => errors});
    }
    let opts = map! {"ext_pillar" => list![map! {"vault" => "x"}], "exclude_ext_pillar" => list!["vault"]};
    assert_eq!(Master::new(&[], opts).of("m1"), map! {});
}

#[test]
fn paths_that_fail_to_decrypt_are_named() {
    let text = "-----BEGIN PGP MESSAGE-----\n\nx\n-----END PGP MESSAGE-----";
    let own = "a:\n  b: |\n    -----BEGIN PGP MESSAGE-----\n\n    x\n    -----END PGP MESSAGE-----";
    let files = |text| [("base/top.sls", "base: {'*': [a]}"), ("base/a.sls", text)];
    let render = |decrypt: Value, text: &'static str, over: Map| {
        let keys = tempfile::tempdir().unwrap();
        let opts = map! {
            "decrypt_pillar" => decrypt, "gpg_decrypt_must_succeed" => true, "gpg_keydir" => keys.path().to_owned(),
        };
        Master::new(&files(text), opts).pillar("m", None, &over)
    };
    let master = |decrypt: Value| render(decrypt, own, Map::new());
    let report = |pillar: Map| pillar.get("_errors").map(|errors| errors.as_list().unwrap()[0].to_string());
    let error = report(master(list!["a:b"])).unwrap();
    assert!(error.starts_with("Failed to decrypt pillar key 'a:b': Could not decrypt cipher with the keys in "));
    let nacl = "Failed to decrypt pillar key 'a:b': 'nacl' is not a valid decryption renderer. Valid choices are: gpg";
    assert_eq!(report(master(list![map! {"a:b" => "nacl"}])).as_deref(), Some(nacl));
    assert_eq!(
        check(&map! {"decrypt_pillar" => list![map! {"a:b" => "nacl"}]}, |_| false),
        ["option 'decrypt_pillar': 'a:b': 'nacl' is not a valid decryption renderer. Valid choices are: gpg"]
    );
    assert_eq!(report(master(list!["a:c"])), None);
    // PGP messages from the minion are not decrypted.
    let over = map! {"a" => map! {"b" => list![map! {"c" => text}]}};
    assert_eq!(render(list!["a"], "c: 1", over.clone()), map! {"c" => 1, "a" => over.get("a").cloned()});
}

#[test]
fn boxes_are_opened_at_the_paths_that_the_options_name() {
    let files =
        [("base/top.sls", "base: {'*': [a]}"), ("base/a.sls", "a: {b: 'NACL[x]', c: ['NACL[y]']}\nd: 'NACL[z]'")];
    let render = |more: Map, over: &Map| {
        let mut opts = map! {"decrypt_pillar_renderers" => list!["gpg", "nacl", "yaml"]};
        opts.extend(more);
        Master::new(&files, opts).pillar("m", None, over)
    };
    let none = Map::new();
    let opened = map! {"a" => map! {"b" => "open x", "c" => list!["open y"]}, "d" => "NACL[z]"};
    assert_eq!(render(map! {"decrypt_pillar" => map! {"a" => "nacl"}}, &none), opened);
    let by_default = map! {"decrypt_pillar" => list!["a:b", "a:c"], "decrypt_pillar_default" => "nacl"};
    assert_eq!(render(by_default, &none), opened);
    let wrong = render(map! {"decrypt_pillar" => list![map! {"d" => "yaml"}]}, &none);
    let error = "Failed to decrypt pillar key 'd': Decryption renderer 'yaml' is not available";
    assert_eq!(wrong.get("_errors"), Some(&list![error]));
    // Boxes from the minion are not opened: anyone with the public key can make them, and see the result.
    let over = map! {"d" => list!["NACL[of the minion]"]};
    let mixed = render(map! {"decrypt_pillar" => map! {"d" => "nacl"}}, &over);
    assert_eq!(mixed.get("d"), over.get("d"));
}

#[test]
fn http_pillar_requests_the_minions_url() {
    let of = |name: &str, args: Value| {
        let opts = map! {"ext_pillar" => list![map! {name => args}]};
        Master::new(&[], opts).of("web1")
    };
    let asked = |kind: &str| map! {"url" => "http://pillar/web1", "decode" => true, "decode_type" => kind};
    assert_eq!(of("http_json", "http://pillar/%s".into()), map! {"said" => asked("json")});
    let said = of("http_yaml", map! {"username" => "u", "url" => "http://pillar/%s", "namespace" => "n"}.into());
    let mut expected = map! {"username" => "u"};
    expected.extend(asked("yaml"));
    assert_eq!(said, map! {"n" => map! {"said" => expected}});
    for (url, error) in [
        ("http://pillar/list", "its output is of type list, not a mapping"),
        ("http://pillar/text", "the response is not json"),
        ("http://pillar/none", "HTTP 404: Not Found: Some(\"http://pillar/none\")"),
    ] {
        let expected = format!("Failed to load ext_pillar http_json: {error}");
        assert_eq!(of("http_json", url.into()), map! {"_errors" => list![expected]}, "{url}");
    }
}

#[test]
fn data_that_the_minion_sends_is_added_to_its_pillar() {
    let own = |include: Value| {
        let entry = map! {"extra_minion_data_in_pillar" => map! {"include" => include}};
        Master::new(&[], map! {"ext_pillar" => list![entry]}).of("web1")
    };
    assert_eq!(own("<all>".into()), map! {"site" => "b", "rack" => map! {"row" => 3, "unit" => 4}});
    assert_eq!(own(list!["rack:row", "none"]), map! {"rack" => map! {"row" => 3}});
    // As in Salt, a later key replaces the mapping of an earlier one.
    assert_eq!(own(list!["rack:row", "rack:unit"]), map! {"rack" => map! {"unit" => 4}});
    assert!(own("site".into()).contains_key("_errors"));
}

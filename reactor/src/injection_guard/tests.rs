use brine_ids::MinionId;
use brine_jinja::{Context, Host};
use brine_sls::render::Sls;
use brine_value::{list, map};
use proptest::prelude::*;

use super::*;
use crate::parser::{ReactionError, read_all};

const AUTH: &str = "\
{% if 'act' in data and data['act']  == 'pend' and data['id'].endswith('_youshi') %}
minion_add:
  wheel.key.accept:
    - match: {{ data['id'] }}
{% endif %}
";
const START: &str = "\
highstate_run:
  local.state.highstate:
    - tgt: {{ data['id'] }}
";

fn reactions(source: &str, data: &Map) -> Result<Vec<Reaction>, String> {
    let host = Host::new();
    let mut context = Context::new("base");
    context.set("data", &data.clone().into());
    let sls = Sls::compile_guarded("t.sls", source, "jinja|yaml", VARIABLES).map_err(|error| error.message())?;
    let (text, placeholders) = sls.render_guarded(&context, &host).map_err(|error| error.message())?;
    let located = sls.parse_guarded(&text, &placeholders).map_err(|error| error.message())?;
    let all: Result<Vec<_>, ReactionError> = read_all(&located, &placeholders).into_iter().collect();
    let all: Vec<_> = all.map_err(|error| error.message)?.into_iter().map(|written| written.reaction).collect();
    assert!(all.iter().all(|reaction| !placeholders.touches(&format!("{reaction:?}"))), "{all:?}");
    Ok(all)
}

fn accepts(id: &str) -> Vec<Reaction> {
    vec![Reaction::Wheel { fun: "key.accept".into(), args: brine_function::Args::keyword(map! {"match" => id}) }]
}

fn pending(id: &str) -> Map {
    map! {"act" => "pend", "id" => id}
}

#[test]
fn text_of_an_event_names_no_argument() {
    let local = |arg: &str| format!("a:\n  local.test.arg:\n    - tgt: web1\n    - arg: {arg}\n");
    let execute =
        |arg: &str| format!("a:\n  runner.salt.execute:\n    - tgt: web1\n    - fun: test.arg\n    - arg: {arg}\n");
    for (text, arg, is_allowed) in [
        ("runas=evil", "['{{ data.x }}']", false),
        ("runas=evil", "[{{ data.x | yaml_encode }}]", false),
        ("runas=evil", "[{{ data.x | json }}]", false),
        ("=evil", "['runas{{ data.x }}']", false),
        ("evil", "['runas={{ data.x }}']", true),
        ("a=b", "['runas={{ data.x }}']", true),
        ("a=b", "['echo {{ data.x }}']", true),
        ("a b=c", "['{{ data.x }}']", true),
        ("web1", "['{{ data.x }}']", true),
    ] {
        for source in [local(arg), execute(arg)] {
            let read = reactions(&source, &map! {"x" => text});
            assert_eq!(read.is_ok(), is_allowed, "{source} {text}: {read:?}");
        }
    }
    for (kwarg, is_allowed) in [(true, false), (false, true)] {
        let value = if kwarg {
            map! {"__kwarg__" => true, "runas" => "evil"}
        } else {
            map! {"runas" => "evil"}
        };
        for source in [local("[{{ data.x }}]"), local("[{{ data.x | json }}]")] {
            let read = reactions(&source, &map! {"x" => value.clone()});
            assert_eq!(read.is_ok(), is_allowed, "{source} {kwarg}: {read:?}");
        }
    }
}

#[test]
fn text_of_an_event_decides_on_no_option_of_a_job_but_its_metadata() {
    for (option, is_allowed) in [
        ("metadata: {from: '{{ data.x }}'}", true),
        ("module_executors: ['{{ data.x }}']", false),
        ("executor_opts: {key: '{{ data.x }}'}", false),
        ("executor_opts: {{ data.whole }}", false),
        ("ret_config: '{{ data.x }}'", false),
        ("ret_kwargs: {'{{ data.x }}': 1}", false),
        ("ret_kwargs: {port: 1}", true),
    ] {
        let source = format!("a:\n  local.test.arg:\n    - tgt: web1\n    - {option}\n");
        let read = reactions(&source, &map! {"x" => "evil", "whole" => map! {"evil" => "evil"}});
        assert_eq!(read.is_ok(), is_allowed, "{option}: {read:?}");
    }
}

#[test]
fn hostile_ids_accept_only_their_own_key() {
    for id in [
        "\"*\" #_youshi",
        "'*' #x_youshi",
        "[p*] #x_youshi",
        "*_youshi",
        "?*,_youshi",
        "web1,db1_youshi",
        "[a-z]_youshi",
        "&a *_youshi",
        "*a_youshi",
        "!!str *_youshi",
        "{a: b}_youshi",
        "web1 #_youshi",
        "web1\n    - include_denied: true\n#_youshi",
        "x\nevil:\n  wheel.key.delete:\n    - match: '*'\n#_youshi",
    ] {
        for source in [AUTH, &AUTH.replace("data['id'] }}", "data['id'] | yaml_encode }}")] {
            match reactions(source, &pending(id)) {
                Ok(reactions) => assert_eq!(reactions, accepts(id), "{id}"),
                Err(error) => {
                    assert!(error.contains("yaml_encode") || error.contains("is not literal there"), "{error}");
                }
            }
        }
        let error = reactions(AUTH, &pending(id)).unwrap_err();
        assert!(error.contains("`{{ data['id'] }}`"), "{error}");
    }
    assert_eq!(reactions(AUTH, &pending("web1_youshi")), Ok(accepts("web1_youshi")));
    assert_eq!(reactions(AUTH, &pending("web1_other")), Ok(Vec::new()));
}

#[test]
fn text_from_the_event_cannot_change_the_structure_of_a_reaction() {
    let data = map! {
        "id" => "web1", "fun" => "local.cmd.run", "name" => "cmd", "type" => "compound",
        "all" => map! {"tgt" => "*"}, "list" => list![map! {"tgt" => "*"}], "star" => "*",
    };
    for source in [
        "a:\n  {{ data.fun }}:\n    - tgt: web1",
        "a:\n  local.{{ data.name }}.run:\n    - tgt: web1",
        "a:\n  local:\n    - {{ data.fun }}\n    - tgt: web1",
        "a: {{ data.fun | json }}",
        "a:\n  local.cmd.run: {{ data.all | json }}",
        "a:\n  local.cmd.run: {{ data.list | json }}",
        "a:\n  local.cmd.run:\n    - tgt: web1\n    - {{ data.name }}: ls",
        "a:\n  local.cmd.run:\n    - tgt: web1\n    - {{ data.all | json }}",
        "a:\n  local.cmd.run:\n    - tgt: web1\n    - tgt_type: {{ data.type }}",
        "a:\n  local.cmd.run:\n    - tgt: web1\n    - args: {{ data.all | json }}",
        "a:\n  runner.cache.grains:\n    - kwarg: {{ data.all | json }}",
        "a:\n  local.cmd.run:\n    - tgt: web1\n    - kwarg: {cmd: ls, {{ data.name }}: true}",
        "a:\n  local.cmd.run:\n    - tgt: web1\n    - kwarg: {cmd: ls, {{ data.name | json }}: true}",
        "a:\n  local.cmd.run:\n    - tgt: web1\n    - kwarg:\n        x{{ data.name }}: true",
        "a:\n  wheel.key.accept:\n    - kwarg: { {{ data.name }}: web1}",
        "a:\n  runner.test.arg:\n    - kwarg: { {{ data.name | yaml_encode }}: web1}",
        "a:\n  runner.cache.grains:\n    - args: [{{ data.star | json }}]",
        "a:\n  wheel.key.accept:\n    - args: [{{ data.star | json }}]",
        "a:\n  wheel.key.accept_dict:\n    - match: {minions_pre: [{{ data.star | json }}]}",
    ] {
        assert!(reactions(source, &data).is_err(), "{source}");
    }
}

#[test]
fn text_from_the_event_is_an_argument() {
    let data =
        map! {"id" => "web1", "text" => "a: 'b' *\n#", "kw" => map! {"cmd" => "ls", "n" => 1}, "l" => list!["a", 2]};
    let run = |source: &str| match reactions(source, &data).unwrap().remove(0) {
        Reaction::Local(local) => local.args,
        other => panic!("{other:?}"),
    };
    let args = brine_function::Args::keyword;
    assert_eq!(
        run("a:\n  local.x.y:\n    - tgt: web1\n    - t: {{ data.text | yaml_encode }}"),
        args(map! {"t" => "a: 'b' *\n#"})
    );
    assert_eq!(
        run("a:\n  local.x.y:\n    - tgt: web1\n    - kwarg: {{ data.kw | json }}"),
        args(map! {"cmd" => "ls", "n" => 1})
    );
    assert_eq!(
        run("a:\n  local.x.y:\n    - tgt: web1\n    - arg: {{ data.l | json }}"),
        brine_function::Args::positional([Value::from("a"), Value::from(2)])
    );
    assert_eq!(
        run("go_{{ data.id }}:\n  local.x.y:\n    - tgt: {{ data.id }}\n    - pillar: {event_data: {{ data | json }}}"),
        args(map! {"pillar" => map! {"event_data" => Value::from(data.clone())}})
    );
}

#[test]
fn targets_from_events_are_literal() {
    for (kind, tgt, good, bad) in [
        ("glob", "{{ x }}", &["web1.example.org", "a b", "a,b"][..], &["*", "web?", "[a]", "a*"][..]),
        ("glob", "x[{{ x }}]", &[], &["a", "a-z"]),
        ("list", "a,{{ x }}", &["web1.example.org", "*"], &["a,b", "a b"]),
        ("pcre", "{{ x }}$", &["web1"], &["web1.example.org", ".*", "a|b"]),
        ("grain", "os:{{ x }}", &["Debian 12"], &["*", "a:b"]),
        ("pillar", "a:{{ x }}", &["b"], &["*"]),
        ("ipcidr", "{{ x }}", &["10.0.0.1"], &["0.0.0.0/0"]),
        ("nodegroup", "{{ x }}", &["web"], &["a or b"]),
        ("compound", "{{ x }} and G@os:Debian", &["web1"], &["web1 or *", "*", "not", "G@os:x", "(a", "web1.x"]),
        ("compound", "{{ x }} and web1.x", &["web1.x"], &["L@a"]),
        ("range", "{{ x }}", &[], &["a"]),
    ] {
        let source = format!(
            "{{% set x = data.x | yaml_encode %}}a:\n  local.x.y:\n    - tgt: \"{}\"\n    - tgt_type: {kind}\n",
            tgt.replace("{{ x }}", "{{ data.x }}")
        );
        for text in good {
            assert!(reactions(&source, &map! {"x" => *text}).is_ok(), "{kind} {tgt} {text}");
        }
        for text in bad {
            let error = reactions(&source, &map! {"x" => *text}).unwrap_err();
            assert!(error.contains("is not literal"), "{kind} {tgt} {text}: {error}");
        }
    }
    let chosen = "{% set g = {'web': 'web*'} %}a:\n  local.x.y:\n    - tgt: {{ g[data.x] }}\n";
    assert!(reactions(chosen, &map! {"x" => "web"}).is_ok());
}

#[test]
fn an_error_about_text_of_the_file_within_braces_does_not_blame_the_event() {
    for (kind, tgt, special) in [
        ("grain", "{{ ('role:' ~ data.x) | yaml_encode }}", "':'"),
        ("compound", "{{ ('G@os:' ~ data.x) | yaml_encode }}", "'@'"),
        ("glob", "{{ (data['x'] ~ \"*\") | yaml_encode }}", "'*'"),
    ] {
        let source = format!("a:\n  local.x.y:\n    - tgt: {tgt}\n    - tgt_type: {kind}\n");
        let error = reactions(&source, &map! {"x" => "web"}).unwrap_err();
        assert!(error.contains(&format!("its text has {special}, which is not literal there")), "{error}");
        assert!(error.contains("write it outside of them, as in `os:{{ data.os }}`"), "{error}");
    }
    let source = "a:\n  local.x.y:\n    - tgt: {{ data['x'] }}\n    - tgt_type: grain\n";
    let error = reactions(source, &map! {"x" => "a:b"}).unwrap_err();
    assert!(error.contains("the event's text has ':'"), "{error}");
}

/// The cost of the guard: `cargo test -p brine-reactor --lib -- --ignored --nocapture cost`.
#[test]
#[ignore = "a measurement"]
fn cost_of_the_guard() {
    let host = Host::new();
    let mut context = Context::new("base");
    context.set("data", &pending("web1_youshi").into());
    let guarded = Sls::compile_guarded("t.sls", AUTH, "jinja|yaml", VARIABLES).unwrap();
    let bare = Sls::compile("t.sls", AUTH, "jinja|yaml").unwrap();
    // The shortest of many rounds: other load of the machine only makes rounds longer.
    let shortest = |work: &dyn Fn()| {
        let round = || {
            let begun = std::time::Instant::now();
            (0..200).for_each(|_| work());
            begun.elapsed() / 200
        };
        (0..50).map(|_| round()).min().unwrap()
    };
    let plain = || bare.render_text(&context, &host).unwrap();
    let render = || guarded.render_guarded(&context, &host).unwrap();
    let (text, (covered, placeholders)) = (plain(), render());
    println!("render: {:?}, guarded {:?}", shortest(&|| drop(plain())), shortest(&|| drop(render())));
    println!(
        "parse: {:?}, guarded {:?}",
        shortest(&|| drop(bare.parse_located(&text).unwrap())),
        shortest(&|| drop(guarded.parse_guarded(&covered, &placeholders).unwrap()))
    );
    let (located, located_words) =
        (bare.parse_located(&text).unwrap(), guarded.parse_guarded(&covered, &placeholders).unwrap());
    println!(
        "read: {:?}, guarded {:?}",
        shortest(&|| assert_eq!(read_all(&located, &Placeholders::new()).len(), 1)),
        shortest(&|| assert_eq!(read_all(&located_words, &placeholders).len(), 1))
    );
    println!("placeholders: {:?}", shortest(&|| drop(Placeholders::new())));
}

proptest! {
    #[test]
    fn the_documented_files_take_an_id_unchanged_or_refuse_it(
        start in "([a-z0-9]|[ \n\t:#,&*!|>'\"%@`{}\\[\\]?.\\\\-]|\u{85}|---|: | #|- |é){0,12}"
    ) {
        let id = format!("{start}_youshi");
        if let Ok(reactions) = reactions(AUTH, &pending(&id)) {
            prop_assert_eq!(reactions, accepts(&id));
        }
        if let Ok(reactions) = reactions(START, &pending(&id)) {
            prop_assert_eq!(reactions.len(), 1);
            let Reaction::Local(local) = &reactions[0] else { panic!("{reactions:?}") };
            prop_assert_eq!((&local.tgt, local.tgt_type.as_str()), (&Value::from(id.as_str()), "glob"));
            prop_assert!(!id.contains(['*', '?', '[', ']']));
        }
    }

    #[test]
    fn the_documented_files_take_every_usual_id(start in "[a-zA-Z0-9_][a-zA-Z0-9_.@-]{0,40}") {
        let id = format!("{start}_youshi");
        prop_assert!(id.parse::<MinionId>().is_ok());
        prop_assert_eq!(reactions(AUTH, &pending(&id)), Ok(accepts(&id)));
        prop_assert_eq!(reactions(START, &pending(&id)).map(|reactions| reactions.len()), Ok(1));
    }
}

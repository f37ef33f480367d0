//! Guards reactions against injection: untrusted text from an event is data, never structure.
//!
//! An SLS is parsed with placeholders for that text, so that it cannot choose types, functions or names of arguments.
//! Here the placeholders of one reaction are replaced. In targets and names of keys the text must be literal: no
//! wildcard, separator or operator. That holds for encoded text as well, since quoting ends at the YAML.

use brine_target::TargetKind;
use brine_value::{Map, Value};
use brine_yaml::untrusted::{Part, Placeholders};

use crate::reaction::{ParsedReaction, Reaction};

/// Functions whose first argument is a target.
const TARGET_FIRST: [&str; 6] =
    ["cache.grains", "cache.pillar", "cache.mine", "mine.get", "publish.publish", "salt.execute"];

/// Functions that call a wheel function.
const CALL_WHEEL: [&str; 2] = ["saltutil.wheel", "salt.wheel"];

/// The variables of a reactor SLS.
pub(crate) const VARIABLES: brine_jinja::Variables = brine_jinja::Variables {
    trusted: &["opts", "grains", "pillar", "sls", "slspath", "tplfile", "tpldir"],
    untrusted: &["data", "tag", "rule", "key", "count", "events", "members", "share", "value", "registers"],
    from_minions: &["mine", "cache", "jobs", "publish", "saltutil", "event"],
    change_first: &["defaults.merge", "defaults.update", "slsutil.update"],
};

/// Replaces the placeholders in a reaction.
///
/// # Errors
/// Text from the event where none is allowed, or that is not literal.
pub(crate) fn resolve(mut written: ParsedReaction, placeholders: &Placeholders) -> Result<ParsedReaction, String> {
    if placeholders.is_empty() {
        return Ok(written);
    }
    written.id = placeholders.reveal(&written.id);
    written.name = written.name.map(|name| placeholders.reveal(&name));
    for requisite in &mut written.requisites {
        requisite.reveal(placeholders);
    }
    written.reaction = reaction(written.reaction, placeholders)?;
    Ok(written)
}

fn reaction(mut reaction: Reaction, placeholders: &Placeholders) -> Result<Reaction, String> {
    let name = placeholders.reveal(&reaction.name());
    trusted(placeholders, reaction.fun(), "a function")?;
    let is_wheel = matches!(reaction, Reaction::Wheel { .. });
    let args = match &mut reaction {
        Reaction::Local(local) => {
            trusted(placeholders, &local.tgt_type, "a type of target")?;
            targets(placeholders, &local.tgt_type, &local.tgt, &name)?;
            local.tgt = placeholders.resolve(std::mem::take(&mut local.tgt))?;
            local.ret = placeholders.reveal(&local.ret);
            local.metadata = local.metadata.take().map(|metadata| placeholders.resolve(metadata)).transpose()?;
            (&local.fun, &mut local.args)
        }
        Reaction::Runner { fun, args } | Reaction::Wheel { fun, args } | Reaction::Caller { fun, args } => {
            (&*fun, args)
        }
    };
    let (fun, args) = args;
    for key in args.keyword.keys().filter_map(Value::as_str) {
        trusted(placeholders, key, "the name of an argument")?;
    }
    if is_wheel && fun.starts_with("key.") || CALL_WHEEL.contains(&fun.as_str()) {
        for value in args.positional.iter().chain(args.keyword.values()) {
            keys(placeholders, value, &name)?;
        }
    }
    if !is_wheel {
        target_arguments(placeholders, fun, &args.positional, &args.keyword, &name)?;
    }
    let positional = std::mem::take(&mut args.positional);
    args.positional = positional.into_iter().map(|value| placeholders.resolve(value)).collect::<Result<_, _>>()?;
    args.keyword = placeholders.resolve_map(std::mem::take(&mut args.keyword))?;
    Ok(reaction)
}

/// Rejects text from the event where the SLS itself must decide.
fn trusted(placeholders: &Placeholders, text: &str, what: &str) -> Result<(), String> {
    if !placeholders.touches(text) {
        return Ok(());
    }
    match placeholders.parts(text).into_iter().find_map(untrusted) {
        Some((_, tag)) => Err(format!("`{tag}` is invalid: {what} cannot come from the event, write it in the file")),
        None => Ok(()),
    }
}

fn untrusted(part: Part<'_>) -> Option<(std::sync::Arc<str>, std::sync::Arc<str>)> {
    match part {
        Part::Untrusted { text, origin } => Some((text, origin.tag)),
        Part::Own(_) => None,
    }
}

/// Checks the targets among the arguments of a function.
fn target_arguments(
    placeholders: &Placeholders,
    fun: &str,
    positional: &[Value],
    keyword: &Map,
    name: &str,
) -> Result<(), String> {
    let named = |key: &str| keyword.get(key).and_then(Value::as_str);
    let kind = named("tgt_type").or_else(|| named("expr_form")).unwrap_or("glob");
    let first = positional.first().filter(|_| TARGET_FIRST.contains(&fun));
    for target in keyword.get("tgt").into_iter().chain(first) {
        trusted(placeholders, kind, "a type of target")?;
        targets(placeholders, kind, target, name)?;
    }
    Ok(())
}

/// Checks the strings of a target.
fn targets(placeholders: &Placeholders, kind: &str, target: &Value, name: &str) -> Result<(), String> {
    // Unknown types are rejected when the job is published.
    let kind: Option<TargetKind> = kind.parse().ok();
    each(target, &mut |text| {
        if !placeholders.touches(text) {
            return Ok(());
        }
        let parts = placeholders.parts(text);
        let written: String =
            parts.iter().filter_map(|part| if let Part::Own(own) = part { Some(*own) } else { None }).collect();
        literal(
            parts,
            "the target",
            name,
            |c| is_special(kind, &written, c),
            |text| {
                kind == Some(TargetKind::Compound) && matches!(text.to_ascii_lowercase().as_str(), "and" | "or" | "not")
            },
        )
    })
}

/// Checks the strings that name keys: globs, separated by commas.
fn keys(placeholders: &Placeholders, value: &Value, name: &str) -> Result<(), String> {
    each(value, &mut |text| {
        if !placeholders.touches(text) {
            return Ok(());
        }
        let parts = placeholders.parts(text);
        let in_brackets = parts.iter().any(|part| matches!(part, Part::Own(own) if own.contains('[')));
        literal(parts, "the names of keys", name, |c| in_brackets || "*?[],".contains(c), |_| false)
    })
}

fn each(value: &Value, check: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    match value {
        Value::Str(text) => check(text.as_str()),
        Value::List(items) => items.iter().try_for_each(|item| each(item, check)),
        Value::Map(map) => map.iter().try_for_each(|(key, value)| each(key, check).and_then(|()| each(value, check))),
        _ => Ok(()),
    }
}

fn literal(
    parts: Vec<Part<'_>>,
    location: &str,
    name: &str,
    is_special: impl Fn(char) -> bool,
    is_operator: impl Fn(&str) -> bool,
) -> Result<(), String> {
    for (text, tag) in parts.into_iter().filter_map(untrusted) {
        let found = text.chars().find(|c| is_special(*c)).map(|c| format!("{c:?}"));
        if let Some(found) = found.or_else(|| is_operator(&text).then(|| format!("{text:?}"))) {
            return Err(format!(
                "`{tag}` is invalid in {location} of '{name}': the event's text has {found}, which is not literal \
                 there: check the text in the template, or choose among names in the file"
            ));
        }
    }
    Ok(())
}

/// Returns whether a character is special in a target of this type. `written` is the trusted text beside it.
fn is_special(kind: Option<TargetKind>, written: &str, c: char) -> bool {
    let is_plain = c.is_alphanumeric() || matches!(c, '_' | '-');
    match kind {
        // Within brackets every character is special.
        _ if written.contains('[') => true,
        Some(TargetKind::Glob) => matches!(c, '*' | '?' | '[' | ']'),
        Some(TargetKind::List) => c == ',' || c.is_whitespace(),
        Some(TargetKind::Grain | TargetKind::Pillar | TargetKind::PillarExact) => {
            matches!(c, '*' | '?' | '[' | ']' | ':')
        }
        Some(TargetKind::Nodegroup) => !(is_plain || c == '.'),
        // A dot matches any character of a regular expression.
        Some(TargetKind::Compound) => !(is_plain || c == '.' && !written.contains('@')),
        Some(TargetKind::IpCidr) => !(c.is_ascii_hexdigit() || matches!(c, '.' | ':')),
        Some(TargetKind::Pcre | TargetKind::GrainPcre | TargetKind::PillarPcre) => {
            !(is_plain || matches!(c, '@' | ' '))
        }
        Some(TargetKind::Range) | None => true,
    }
}

#[cfg(test)]
mod tests {

    use brine_ids::MinionId;
    use brine_jinja::{Context, Host};
    use brine_sls::render::Sls;
    use brine_value::{list, map};
    use proptest::prelude::*;

    use super::*;
    use crate::reaction::{ReactionError, read_all};

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
                    Ok(found) => assert_eq!(found, accepts(id), "{id}"),
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
            "a:\n  runner.cache.grains:\n    - args: [{{ data.star | json }}]",
            "a:\n  wheel.key.accept:\n    - args: [{{ data.star | json }}]",
            "a:\n  wheel.key.accept_dict:\n    - match: {minions_pre: [{{ data.star | json }}]}",
        ] {
            assert!(reactions(source, &data).is_err(), "{source}");
        }
    }

    #[test]
    fn text_from_the_event_is_an_argument() {
        let data = map! {"id" => "web1", "text" => "a: 'b' *\n#", "kw" => map! {"cmd" => "ls", "n" => 1}, "l" => list!["a", 2]};
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
            run(
                "go_{{ data.id }}:\n  local.x.y:\n    - tgt: {{ data.id }}\n    - pillar: {event_data: {{ data | json }}}"
            ),
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
            if let Ok(found) = reactions(AUTH, &pending(&id)) {
                prop_assert_eq!(found, accepts(&id));
            }
            if let Ok(found) = reactions(START, &pending(&id)) {
                prop_assert_eq!(found.len(), 1);
                let Reaction::Local(local) = &found[0] else { panic!("{found:?}") };
                prop_assert_eq!((&local.tgt, local.tgt_type.as_str()), (&Value::from(id.as_str()), "glob"));
                prop_assert!(!id.contains(['*', '?', '[', ']']));
            }
        }

        #[test]
        fn the_documented_files_take_every_usual_id(start in "[a-zA-Z0-9_][a-zA-Z0-9_.@-]{0,40}") {
            let id = format!("{start}_youshi");
            prop_assert!(id.parse::<MinionId>().is_ok());
            prop_assert_eq!(reactions(AUTH, &pending(&id)), Ok(accepts(&id)));
            prop_assert_eq!(reactions(START, &pending(&id)).map(|found| found.len()), Ok(1));
        }
    }
}

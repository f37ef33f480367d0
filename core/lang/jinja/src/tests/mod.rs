//! Templates, with recorded results of Salt.

mod data;
mod imports;
mod lenient;
mod limits;
mod ordered;
mod python;
mod recorded;

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_value::{Value, list, map};

use super::template::catch_panics;
use super::*;

/// A few functions and files.
struct Salt;

impl Functions for Salt {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        match function {
            "test.echo" => args.positional.into_iter().next().ok_or_else(|| CallError::execution("nothing to say")),
            "test.nothing" | "config.get" => Ok(Value::Nil),
            "defaults.merge" => Ok(map! {"a" => 1, "in" => map! {"b" => 2}}.into()),
            "test.arg" => Ok(map! {"args" => args.positional, "kwargs" => args.keyword}.into()),
            _ => Err(CallError::execution("it broke")),
        }
    }

    fn has(&self, function: &str) -> bool {
        matches!(function, "test.echo" | "test.arg" | "test.broken" | "test.nothing" | "config.get" | "defaults.merge")
    }

    fn has_module(&self, module: &str) -> bool {
        matches!(module, "test" | "defaults")
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        let undefined = match function {
            "test.echo" | "test.arg" => MayBeUndefined::All,
            "config.get" => MayBeUndefined::Default(1),
            _ => MayBeUndefined::None,
        };
        Behaviour { undefined, changes_first: function == "defaults.merge", ..Behaviour::default() }
    }
}

impl Files for Salt {
    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
        if path == "unreadable" {
            return Err(FilesError::Disk(std::io::Error::other("permission denied")));
        }
        Ok(imports::FILES.iter().find(|(name, _)| *name == path).map(|(_, source)| (*source).to_owned()))
    }
}

fn host() -> Host {
    Host::new().with_functions(Salt).with_files(Salt)
}

fn context() -> Context {
    let mut context = Context::new("base");
    context.set("data", &map! {"id" => "web1_youshi", "act" => "pend", "n" => 5, "list" => list![1, "a"]}.into());
    let grains = map! {"id" => "m1", "os" => "Debian", "ip" => map!{"lo" => list!["127.0.0.1"]}, 7 => "seven"};
    context.set_shared("grains", Arc::new(grains));
    let (sls, path, directory) = ("deep.er.vars", "deep/er/vars.sls", "deep/er");
    context.set_all(&map! {"sls" => sls, "tplfile" => path, "tpldir" => directory, "tpldot" => "deep.er"});
    context
}

fn render(source: &str) -> Result<String, JinjaError> {
    let host = host();
    Template::compile("deep/er/vars.sls", source)?.render(&context(), &host)
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (source, text) in cases {
        match render(source) {
            Ok(rendered) => assert_eq!(rendered, *text, "{source}"),
            Err(error) => panic!("{source}: {error}"),
        }
    }
}

/// Checks that each template fails with this message.
#[track_caller]
fn check_errors(cases: &[(&str, &str)]) {
    for (source, message) in cases {
        assert_eq!(render(source).map_err(|error| error.message), Err((*message).to_owned()), "{source}");
    }
}

#[test]
fn repeated_renders_keep_the_trailing_newline() {
    let template = Template::compile("t", "{{ x }}\n").unwrap();
    let host = Host::new();
    for n in 0..3 {
        let mut context = Context::default();
        context.set("x", &n.into());
        assert_eq!(template.render(&context, &host), Ok(format!("{n}\n")));
    }
}

#[test]
fn conditions_of_a_reactor_hold_as_in_salt() {
    check(&[
        ("{% if 'act' in data and data['act'] == 'pend' and data['id'].endswith('_youshi') %}yes{% endif %}", "yes"),
        ("{% if data['act'] == 'accept' or not data.get('result', True) %}yes{% else %}no{% endif %}", "no"),
        (
            "{{ data['id'] }} {{ data.id }} {{ data.get('x', 'y') }} {{ data.get('x') }}",
            "web1_youshi web1_youshi y None",
        ),
    ]);
}

#[test]
fn functions_of_the_host_are_called_by_item_or_by_attribute() {
    check(&[
        ("{{ salt['test.echo']('a b') }} {{ salt.test.echo(2) }}", "a b 2"),
        ("{{ 'test.echo' in salt }} {{ 'no.x' in salt }}", "True False"),
        ("{{ salt['test.arg'](1, b='x', **{'c': []}) }}", "{'args': [1], 'kwargs': {'b': 'x', 'c': []}}"),
        ("{{ salt['test.arg'](*[1, 2])['args'] }}", "[1, 2]"),
        ("{% set f = 'test.echo' %}{{ salt[f]('by name') }}", "by name"),
        ("{% set l = salt['test.echo']([1]) %}{% do l.append(2) %}{{ l }}", "[1, 2]"),
    ]);
    let missing = "Jinja variable 'salt.utils.templates.AliasedLoader object' has no attribute 'no.fun'";
    check_errors(&[
        ("{{ salt['no.fun']() }}", missing),
        ("{{ salt['no.fun'] }}", missing),
        ("{{ salt.no.fun() }}", "Jinja variable 'salt.utils.templates.AliasedLoader object' has no attribute 'no'"),
        ("{{ salt.no }}", "Jinja variable 'salt.utils.templates.AliasedLoader object' has no attribute 'no'"),
        ("{{ salt.test.fun() }}", "Jinja variable 'salt.loader.lazy.LoadedMod object' has no attribute 'fun'"),
        ("{{ salt.test.fun }}", "Jinja variable 'salt.loader.lazy.LoadedMod object' has no attribute 'fun'"),
        ("{{ salt.test + 1 }}", "Jinja error: unsupported operand type(s) for +: 'LoadedMod' and 'int'"),
        (
            "{% import 'lib.jinja' as lib %}{{ lib + 1 }}",
            "Jinja error: unsupported operand type(s) for +: 'TemplateModule' and 'int'",
        ),
        ("{{ salt['test.broken']() }}", "Problem running salt function in Jinja template: it broke"),
    ]);
}

#[test]
fn undefined_values_are_errors_unless_tested() {
    check(&[
        ("{{ nosuch is defined }} {{ nosuch is undefined }} {{ data.nosuch is defined }}", "False True False"),
        ("{{ nosuch | default('d') }} {{ '' | default('d', true) }} {{ data.nosuch | d(none) }}", "d d None"),
        ("{{ 'a' if false }}|{{ [nosuch] }}", "|[Undefined]"),
    ]);
    check_errors(&[
        ("{{ nosuch }}", "Jinja variable 'nosuch' is undefined"),
        ("{% if nosuch %}{% endif %}", "Jinja variable 'nosuch' is undefined"),
        ("{% for x in nosuch %}{% endfor %}", "Jinja variable 'nosuch' is undefined"),
        ("{{ nosuch == 1 }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ 'a' ~ nosuch }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ 'a{}b{}'.format(1, nosuch) }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ '{x}'.format(2, y=[1, 2], x=nosuch) }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ '{}'.format(data.nosuch) }}", "Jinja variable 'dict object' has no attribute 'nosuch'"),
        ("{{ '%s (%s' % (data['1, 2'] | default(1), nosuch) }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ nosuch() }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ nosuch.b }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ data.b.c | default('d') }}", "Jinja variable 'dict object' has no attribute 'b'"),
        ("{{ data['b'] }}", "Jinja variable 'dict object' has no attribute 'b'"),
        ("{{ data.b() }}", "Jinja variable 'dict object' has no attribute 'b'"),
        ("{{ nosuch | yaml }}", "Jinja variable 'nosuch' is undefined"),
        ("{{ nosuch | upper }}", "Jinja variable 'nosuch' is undefined"),
    ]);
}

#[test]
fn panics_of_the_engine_are_errors() {
    check_errors(&[
        ("{{ 4 is divisibleby 0 }}", "Jinja error: integer modulo by zero"),
        ("{{ '%(\u{447}%s' % 5 }}", "Jinja error: incomplete format key"),
    ]);
    let broken = catch_panics(|| -> Result<(), minijinja::Error> { panic!("a panic of the engine") });
    assert!(broken.is_err_and(|error| error.to_string().contains("the template engine panicked")));
}

#[test]
fn errors_show_the_line_and_its_surroundings() {
    let error = render("one\n\n{% set l = [\n  1] %}{{ nothing_here }}\ntwo\n").unwrap_err();
    insta::assert_snapshot!(error, @r"
    Jinja variable 'nothing_here' is undefined; line 4

    ---
    one

    {% set l = [
      1] %}{{ nothing_here }}    <======================
    two
    ---
    ");
    let long = "x\n".repeat(20) + "{{ raise('stop here') }}\n" + &"y\n".repeat(20);
    insta::assert_snapshot!(render(&long).unwrap_err(), @r"
    Jinja error: stop here; line 21

    ---
    [...]
    x
    x
    x
    x
    x
    {{ raise('stop here') }}    <======================
    y
    y
    y
    y
    y
    [...]
    ---
    ");
}

#[test]
fn syntax_errors_are_reported_as_such() {
    check_errors(&[
        ("{{ 1 | q }}", "Jinja syntax error: No filter named 'q'."),
        ("{{ 1 is q }}", "Jinja syntax error: No test named 'q'."),
        ("{% q %}", "Jinja syntax error: Encountered unknown tag 'q'."),
    ]);
    for source in ["{% if x %}", "{{ ", "{{ 'a }}", "{% endif %}", "{{ [1 }}", "{% load_yaml %}{% endload %}"] {
        let message = render(source).unwrap_err().message;
        assert!(message.starts_with("Jinja syntax error: "), "{source}: {message}");
    }
}

#[test]
fn arbitrary_sources_do_not_panic() {
    let nested = "[".repeat(300) + &"]".repeat(300);
    for source in [
        format!("{{{{ {nested} }}}}"),
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".into(),
        "{% include 'itself' %}".into(),
        "{% set l = [] %}{% do l.append(l) %}{{ l }}".into(),
        "{% set d = {} %}{% do d.update({'d': [d]}) %}{{ d }}".into(),
        "{% set d = {} %}{% do d.setdefault(d, 1) %}".into(),
        "{% set l = [1] %}{% do l.remove(l) %}".into(),
        "{{ 'x'.center(10 ** 18) }}".into(),
        "{{ 'x' | center(10 ** 18) }}".into(),
        "{{ 10 ** 18 | random_str }}".into(),
        "{{ -9223372036854775808 // -1 }}{{ 1 % 0 }}".into(),
        "{{ 'a' | regex_replace('(', 'x') }}".into(),
        "{{ 1e300 | strftime }}".into(),
    ] {
        assert!(render(&source).is_err() || source.contains("center"), "{}", &source[..source.len().min(80)]);
    }
}

#[test]
fn chains_deeper_than_the_stack_are_dropped() {
    let grow = |step: &str| {
        format!(
            "{{% set ns = namespace(root=[], last=[]) %}}{{% set ns.root = ns.last %}}\
             {{% for i in range(50000) %}}{step}{{% endfor %}}{{{{ ns.root | length }}}}"
        )
    };
    check(&[
        (&grow("{% set ns.root = [ns.root] %}"), "1"),
        (&grow("{% set ns.root = {'in': ns.root} %}"), "1"),
        (&grow("{% set n = [] %}{% do ns.last.append(n) %}{% set ns.last = n %}"), "1"),
    ]);
}

proptest::proptest! {
    #[test]
    fn any_text_renders_or_is_refused(source in "[a-z{}%# |'.()\\[\\]=\"\n-]{0,60}") {
        let _ = render(&source);
    }

    #[test]
    fn any_words_render_or_are_refused(
        source in "(\\{\\{ |\\}\\}| %\\}|\\{% |if |for |in |set |x|=|\\[|\\]|\\{|\\}|:|,|\\(|\\)|'a'|1|\\+|%|\\||\
            yaml|load_yaml as |endload|import_yaml 'data.yaml' as |include 'itself'|from |endfor|endif|é|\n){0,40}",
    ) {
        let _ = render(&source);
    }
}

#[test]
fn excessive_numbers_of_parts_are_refused() {
    for source in ["{{ [1] | slice(5555555555) | list }}", "{{ [1] | batch(5555555555, 0) | list }}"] {
        let error = render(source).unwrap_err().to_string();
        assert!(error.contains("5555555555 parts requested"), "{error}");
    }
}

//! Templates as people write them, with what real Salt makes of them.

use std::sync::Arc;

use super::*;
use crate::function::Args;
use crate::{list, map};

struct Functions;

impl Host for Functions {
    fn call(&self, function: &str, args: Args) -> Result<Value, String> {
        match function {
            "test.echo" => Ok(args.positional[0].clone()),
            "test.kwarg" => Ok(args.keyword.into()),
            _ => Err("it broke".into()),
        }
    }

    fn has(&self, function: &str) -> bool {
        function.starts_with("test.")
    }

    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, String> {
        Ok((path == "lib.jinja").then(|| {
            "{% macro hello(who) %}hello {{ who }} from {{ grains.id }}{% endmacro %}{% set answer = 42 %}".into()
        }))
    }
}

fn render(source: &str) -> Result<String, JinjaError> {
    let mut context = Context::new("base");
    context.set("data", &map! {"id" => "web1_youshi", "act" => "pend", "n" => 5, "list" => list![1, "a"]}.into());
    context.set_shared("grains", Arc::new(map! {"id" => "m1", "os" => "Debian"}));
    let host: Arc<dyn Host> = Arc::new(Functions);
    Template::compile("x.sls", source)?.render(&context, &host)
}

#[test]
fn templates_render_as_in_salt() {
    for (source, text) in [
        ("{{ data['id'] }} {{ data.id }} {{ data.get('x', 'y') }}\n", "web1_youshi web1_youshi y\n"),
        ("{% if 'act' in data and data['act']  == 'pend' and data['id'].endswith('_youshi') %}yes{% endif %}", "yes"),
        ("{{ data.list }} {{ none }} {{ true }} {{ 1.0 }} {{ {'a': 'b'} }}", "[1, 'a'] None True 1.0 {'a': 'b'}"),
        ("{% do data.list.append(2) %}{{ data.list }}", "[1, 'a', 2]"),
        ("{% do data.update({'x': 1}) %}{{ data.x }}{{ data.pop('x') }}{{ 'x' in data }}", "11False"),
        ("{% for k, v in data.items() %}{{ k }}{% if not loop.last %},{% endif %}{% endfor %}", "id,act,n,list"),
        ("{{ grains['os'] }} {{ grains.get('none', 'default') }} {{ 'os' in grains }}", "Debian default True"),
        (
            "{{ salt['test.echo']('a b') }} {{ salt.test.echo(2) }} {{ 'test.x' in salt }} {{ 'no.x' in salt }}",
            "a b 2 True False",
        ),
        ("{{ salt['test.kwarg'](a=1, b='x') }}", "{'a': 1, 'b': 'x'}"),
        ("{% from 'lib.jinja' import hello, answer %}{{ hello('you') }} {{ answer }}", "hello you from m1 42"),
        ("{{ {'b': 1, 'a': [1, 2]} | yaml }} {{ {'b': 'x'} | json }}", "{a: [1, 2], b: 1} {\"b\": \"x\"}"),
        ("{{ 'a: 1' | load_yaml }} {{ '1' | to_bool }} {{ data | traverse('list:1') }}", "{'a': 1} True a"),
        ("{{ 'abc' | regex_replace('b(.)', '<\\\\1>') }} {{ 'abc' | regex_search('b(.)') }}", "a<c> ['c']"),
        ("{{ undefined_one | default('d') }} {{ undefined_one is defined }}", "d False"),
        ("{{ {'m': 'l1\\nl2'} }}", "{'m': \"l1\\nl2\"}"),
        ("{{ 'it''s' | quote }}{{ '/a' | path_join('b', 'c') }}", "its/a/b/c"),
    ] {
        assert_eq!(render(source).as_deref(), Ok(text), "{source}");
    }
}

#[test]
fn errors_show_the_line_and_what_is_around_it() {
    let error = render("one\n\n{{ nothing_here }}\ntwo\n").unwrap_err();
    assert_eq!((error.line, error.message.as_str()), (3, "Jinja variable 'nothing_here' is undefined"));
    insta::assert_snapshot!(error, @r"
    Jinja variable 'nothing_here' is undefined; line 3

    ---
    one

    {{ nothing_here }}    <======================
    two
    ---
    ");
    for (source, line, message) in [
        ("\n{{ data.nope }}", 2, "Jinja variable 'dict object' has no attribute 'nope'"),
        ("\n\n{{ salt['test.broken']() }}", 3, "Problem running salt function in Jinja template: it broke"),
        ("{{ raise('stop here') }}", 1, "Jinja error: stop here"),
    ] {
        let error = render(source).unwrap_err();
        assert_eq!((error.line, error.message.as_str()), (line, message), "{source}");
    }
    assert!(render("{% if x %}").unwrap_err().message.starts_with("Jinja syntax error: "));
    assert!(render("{{ 1 | nofilter }}").unwrap_err().message.starts_with("Jinja syntax error: "));
}

proptest::proptest! {
    #[test]
    fn any_template_renders_or_is_refused(source in "[a-z{}%# |'.()\\[\\]=\"\n-]{0,60}") {
        let _ = render(&source);
    }
}

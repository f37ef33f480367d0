//! Templates that read other templates.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{check, check_errors, context, host, render};
use crate::{Blocks, Files, FilesError, Host, ImportCache, Template};

/// The files below `salt://`.
pub(super) const FILES: [(&str, &str); 11] = [
    (
        "lib.jinja",
        "{% macro hello(who, times=1) %}{{ (who | upper) * times }} from {{ grains.id }}{% endmacro %}\n{% set answer = [42] %}{% set _private = 1 %}",
    ),
    ("deep/er/rel.jinja", "{% set rel = [tplfile, tpldir, here is defined] %}"),
    ("deep/up.jinja", "{% set up = [tplfile, tpldir, here is defined] %}"),
    ("deep/map.jinja", "{% set mapped = [tplfile, tpldir, tpldot, sls] %}{% set seen = here %}"),
    ("deep/own.jinja", "{% from './up.jinja' import up %}{% set own = [tplfile, tpldir] + up %}"),
    ("deep/near.jinja", "{% import_text './near.txt' as near %}{% set dir = tpldir %}"),
    ("deep/near.txt", "near"),
    ("data.yaml", "srv: {ports: [80, {{ 400 + 43 }}]}\nid: {{ grains.id }}\n"),
    ("note.txt", "  a {{ 1 }}\n"),
    ("itself", "{% include 'itself' %}"),
    ("bad.jinja", "{% macro m() %}\n{{ deep_undefined }}\n{% endmacro %}\n"),
];

#[test]
fn macros_and_variables_are_imported() {
    check(&[
        ("{% from 'lib.jinja' import hello, answer %}{{ hello('you', times=2) }} {{ answer }}", "YOUYOU from m1 [42]"),
        ("{% import 'lib.jinja' as lib with context %}{{ lib.hello('you') }} {{ lib.answer }}", "YOU from m1 [42]"),
        ("{% set t = 'lib' %}{% from t ~ '.jinja' import answer as a %}{% do a.append(1) %}{{ a }}", "[42, 1]"),
    ]);
}

#[test]
fn a_macro_includes_a_file_named_by_an_outer_variable() {
    check(&[(
        "{% for f in ['note', 'none'] %}{% set f = f ~ '.txt' %}{% macro m() %}{% include f ignore missing %}{% endmacro %}[{{ m() | trim }}]{% endfor %}",
        "[a 1][]",
    )]);
}

#[test]
fn only_an_import_with_context_sees_its_importer() {
    check(&[
        ("{% set here = 1 %}{% from './rel.jinja' import rel %}{{ rel }}", "['./rel.jinja', 'deep/er', False]"),
        (
            "{% set here = 1 %}{% from '../up.jinja' import up with context %}{{ up }}",
            "['deep/er/vars.sls', 'deep/er', True]",
        ),
        (
            "{% set here = 1 %}{% from 'deep/map.jinja' import seen, mapped with context %}{{ mapped }} {{ seen }}",
            "['deep/er/vars.sls', 'deep/er', 'deep.er', 'deep.er.vars'] 1",
        ),
        ("{% from 'deep/own.jinja' import own %}{{ own }}", "['deep/own.jinja', 'deep', './up.jinja', 'deep', False]"),
        // Its `./` names are relative to itself, although its `tpldir` is that of the importer.
        ("{% from 'deep/near.jinja' import near, dir with context %}{{ near }} {{ dir }}", "near deep/er"),
        ("{% from './rel.jinja' import rel %}{{ tplfile }} {{ tpldir }}", "deep/er/vars.sls deep/er"),
    ]);
}

#[test]
fn data_files_are_rendered_and_parsed() {
    check(&[
        ("{% import_yaml 'data.yaml' as d %}{{ d.srv.ports }} {{ d.id }}", "[80, 443] m1"),
        (
            "{%- import_yaml\n 'data.yaml' as d with context -%}\n {% do d.srv.ports.append(1) %}{{ d.srv }}",
            "{'ports': [80, 443, 1]}",
        ),
        ("{% import_text 'note.txt' as t %}[{{ t }}] {{ t | trim }}", "[  a 1] a 1"),
    ]);
}

#[test]
fn includes_see_the_variables_of_their_includer_and_keep_their_own() {
    check(&[
        ("{% include 'note.txt' %}.", "  a 1."),
        ("{% include 'no' ignore missing %}{% include ['no', 'note.txt'] %}", "  a 1"),
        ("{% set here = 1 %}{% include 'deep/map.jinja' %}{{ seen is defined }}", "False"),
        ("{% load_yaml as x %}{% include 'data.yaml' ignore missing %}{% endload %}{{ x.id }}", "m1"),
    ]);
}

#[test]
fn unreadable_templates_are_errors() {
    check_errors(&[
        ("{% include 'no.jinja' %}", "Jinja error: no.jinja"),
        ("{% from './no.jinja' import x %}", "Jinja error: deep/er/no.jinja"),
        ("{% from '../../../x' import x %}", "Jinja error: ../../../x is outside of the root"),
        ("{% include 'unreadable' %}", "Jinja error: permission denied"),
    ]);
    insta::assert_snapshot!(render("x\n\n{% from 'bad.jinja' import m %}\n{{ m() }}").unwrap_err(), @r"
    Jinja variable 'deep_undefined' is undefined
    bad.jinja(2):
    ---
    {% macro m() %}
    {{ deep_undefined }}    <======================
    {% endmacro %}
    ---
    ");
}

#[test]
fn an_imported_template_is_compiled_once_for_all_importers() {
    let host = host();
    let cache = ImportCache::new();
    let render = |name: &str, source: &str| {
        Template::compile_sharing(&cache, name, source).unwrap().render(&context(), &host).unwrap()
    };
    for n in 0..200 {
        let source = format!("{{% set x{n} = 1 %}}{{% from 'lib.jinja' import answer with context %}}{{{{ answer }}}}");
        assert_eq!(render(&format!("sls{n}"), &source), "[42]");
    }
    assert_eq!(cache.compilations(), 1);
    // The importer's own variables are hidden.
    for n in 0..200 {
        let source = format!("{{% set here = {n} %}}{{% from 'deep/up.jinja' import up %}}{{{{ up }}}}");
        assert_eq!(render(&format!("sls{n}"), &source), "['deep/up.jinja', 'deep', False]");
    }
    assert_eq!(cache.compilations(), 2);
    // Repeated renders of a template reuse its imports, too.
    let template = Template::compile_sharing(&cache, "often", "{% import_yaml 'data.yaml' as d %}{{ d.id }}").unwrap();
    for _ in 0..3 {
        assert_eq!(template.render(&context(), &host).unwrap(), "m1");
    }
    assert_eq!(cache.compilations(), 3);
}

/// Files whose content changes.
#[derive(Clone)]
struct Changing(Arc<Mutex<&'static str>>);

impl Files for Changing {
    fn template(&self, _path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
        Ok(Some((*self.0.lock()).to_owned()))
    }
}

#[test]
fn an_imported_template_is_compiled_again_when_it_changes() {
    let changing = Changing(Arc::new(Mutex::new("{% set v = 1 %}")));
    let host = Host::new().with_files(changing.clone());
    let template = Template::compile("t", "{% from 'f' import v %}{{ v }}").unwrap();
    for (source, text) in [("{% set v = 1 %}", "1"), ("{% set v = 2 %}", "2"), ("{% set v = 1 %}", "1")] {
        *changing.0.lock() = source;
        for _ in 0..2 {
            assert_eq!(template.render(&context(), &host).unwrap(), text);
        }
    }
    *changing.0.lock() = "\n{{ nope }}";
    let error = template.render(&context(), &host).unwrap_err();
    assert_eq!((error.name.as_str(), error.line, error.imported), ("f", 2, true), "{error}");
}

#[test]
fn options_of_an_importer_apply_only_to_its_imports() {
    let changing = Changing(Arc::new(Mutex::new("{% if true %}\n a\n{% endif %}\n")));
    let host = Host::new().with_files(changing);
    let cache = ImportCache::new();
    for (options, text) in [("", "\n a\n"), ("#jinja2: {\"trim_blocks\": true}\n", " a\n"), ("", "\n a\n")] {
        let source = format!("{options}{{% include 'f' %}}");
        let template = Template::compile_sharing(&cache, "t", &source).unwrap();
        assert_eq!(template.render(&context(), &host).unwrap(), text, "{options}");
    }
}

#[test]
fn whitespace_around_blocks_follows_the_cache_and_the_line_of_options() {
    let source = "x\n  {% if true %}\n a\n  {% endif %}\nb\n";
    for (trim, lstrip, line, text) in [
        (false, false, "", "x\n  \n a\n  \nb\n"),
        (true, false, "", "x\n   a\n  b\n"),
        (false, true, "", "x\n\n a\n\nb\n"),
        (true, true, "", "x\n a\nb\n"),
        (true, true, "#jinja2: {\"trim_blocks\": false}\n", "x\n\n a\n\nb\n"),
        (false, false, "#jinja2: {\"lstrip_blocks\": true}\n", "x\n\n a\n\nb\n"),
    ] {
        let cache = ImportCache::with_blocks(Blocks { trim, lstrip });
        let host = Host::new().with_files(Changing(Arc::new(Mutex::new("x\n  {% if true %}\n a\n  {% endif %}\nb\n"))));
        // Imports have the options of their importer.
        for source in [format!("{line}{source}"), format!("{line}{{% include 'f' %}}\n")] {
            let rendered = Template::compile_sharing(&cache, "t", &source).unwrap().render(&context(), &host).unwrap();
            assert_eq!(rendered.trim_end_matches('\n'), text.trim_end_matches('\n'), "{trim} {lstrip} {source:?}");
        }
    }
}

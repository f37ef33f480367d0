//! Templates that read other templates.

use super::{check, check_errors, render};

/// What there is under `salt://`.
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
fn a_macro_includes_what_a_variable_around_it_names() {
    check(&[(
        "{% for f in ['note', 'none'] %}{% set f = f ~ '.txt' %}{% macro m() %}{% include f ignore missing %}{% endmacro %}[{{ m() | trim }}]{% endfor %}",
        "[a 1][]",
    )]);
}

#[test]
fn an_import_without_context_sees_itself_and_with_context_its_importer() {
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
        // Its own names are beside itself, although it sees its importer's folder.
        ("{% from 'deep/near.jinja' import near, dir with context %}{{ near }} {{ dir }}", "near deep/er"),
        ("{% from './rel.jinja' import rel %}{{ tplfile }} {{ tpldir }}", "deep/er/vars.sls deep/er"),
    ]);
}

#[test]
fn data_files_are_rendered_and_read() {
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
fn includes_see_their_includer_and_keep_what_they_set() {
    check(&[
        ("{% include 'note.txt' %}.", "  a 1."),
        ("{% include 'no' ignore missing %}{% include ['no', 'note.txt'] %}", "  a 1"),
        ("{% set here = 1 %}{% include 'deep/map.jinja' %}{{ seen is defined }}", "False"),
        ("{% load_yaml as x %}{% include 'data.yaml' ignore missing %}{% endload %}{{ x.id }}", "m1"),
    ]);
}

#[test]
fn what_cannot_be_read_is_told() {
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

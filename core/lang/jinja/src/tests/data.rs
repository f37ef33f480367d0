//! Data in templates: printing, changing, filters.

use super::{check, check_errors};

#[test]
fn values_print_as_in_python() {
    check(&[
        ("{{ data.list }} {{ none }} {{ true }} {{ 1.0 }} {{ 1e20 }}", "[1, 'a'] None True 1.0 1e+20"),
        (
            "{{ {'b': 1, 'a': 'x', 'n': None, 't': True, 'l': ['q', \"it's\"]} }}",
            "{'b': 1, 'a': 'x', 'n': None, 't': True, 'l': ['q', \"it's\"]}",
        ),
        ("{{ {'m': 'l1\\nl2'} }} {{ ['l1\\nl2'] }}", "{'m': \"l1\\nl2\"} ['l1\\nl2']"),
        ("{{ ('a',) }} {{ (1, [2]) }} {{ () }}", "('a',) (1, [2]) ()"),
        ("{{ {'a': 1}.items() }} {{ {'a': 1}.keys() }}", "dict_items([('a', 1)]) dict_keys(['a'])"),
        ("{{ 'a' ~ 1 ~ none ~ [1, 'x'] ~ {'a': true} }}", "a1None[1, 'x']{'a': True}"),
        ("{{ [1, none] | join('-') }} {{ ['x', {'a': 1}] | string }}", "1-None ['x', {'a': 1}]"),
        ("{{ grains.ip }} {{ grains[7] }}", "{'lo': ['127.0.0.1']} seven"),
    ]);
}

#[test]
fn lists_and_mappings_change_in_place() {
    check(&[
        (
            "{% set items = [] %}{% do items.append(1) %}{% do items.extend([2, 3]) %}{{ items }} {{ items.pop() }} {{ items }}",
            "[1, 2, 3] 3 [1, 2]",
        ),
        (
            "{% set d = {} %}{% set _ = d.update({'x': 1}, y=2) %}{{ d }} {{ d.pop('x') }} {{ d }}",
            "{'x': 1, 'y': 2} 1 {'y': 2}",
        ),
        (
            "{% set d = {'l': []} %}{% do d.l.append(1) %}{% do d.setdefault('m', []).append(2) %}{{ d }}",
            "{'l': [1], 'm': [2]}",
        ),
        ("{% set l = [1] + [2] %}{% do l.append(3) %}{{ l }}", "[1, 2, 3]"),
        ("{% set l = 'a b'.split() %}{% do l.insert(0, 'z') %}{{ l }}{{ l[-1] }}", "['z', 'a', 'b']b"),
        ("{% set l = [3, 1] | sort %}{% do l.append(2) %}{{ l }}", "[1, 3, 2]"),
        (
            "{% set ns = namespace(l=[]) %}{% for i in range(3) %}{% do ns.l.append(i) %}{% endfor %}{{ ns.l }}",
            "[0, 1, 2]",
        ),
        ("{% for i in [1, 2] %}{% set l = [] %}{% do l.append(i) %}{{ l }}{% endfor %}", "[1][2]"),
        ("{% set a = [1] %}{% set b = a %}{% do b.append(2) %}{{ a }} {{ a.copy() == b }}", "[1, 2] True"),
        ("{% do data.list.append(2) %}{% do data.update({'x': 1}) %}{{ data.list }}{{ data.x }}", "[1, 'a', 2]1"),
        (
            "{% do grains.ip.update({'eth0': []}) %}{{ grains.ip }} {{ grains | length }}",
            "{'lo': ['127.0.0.1'], 'eth0': []} 4",
        ),
        ("{% do grains.update({'x': 1}) %}{{ grains.x }} {{ grains.os }} {{ grains[7] }}", "1 Debian seven"),
        (
            "{% set l = [1, 2, 1] %}{% do l.remove(1) %}{% do l.reverse() %}{{ l }}{{ l.index(1) }}{{ l.count(2) }}",
            "[1, 2]01",
        ),
        (
            "{% set d = dict(a=1) %}{% do d.update([('b', 2)]) %}{{ d }} {{ odict([('x', 1)]) }}",
            "{'a': 1, 'b': 2} {'x': 1}",
        ),
        (
            "{% set d = {'a': 1} %}{{ d.get('b', {}).get('c', 'no') }} {{ d.copy() }} {{ d.values() | list }}",
            "no {'a': 1} [1]",
        ),
        (
            "{% set d = {'b': 1, 'a': 2} %}{% for k, v in d.items() %}{{ k }}={{ v }}{{ '' if loop.last else ';' }}{% endfor %}",
            "b=1;a=2",
        ),
        ("{% do data.list.append(1) if true %}{{ data.list }}", "[1, 'a', 1]"),
    ]);
    check_errors(&[
        ("{{ [1][5] }}", "Jinja variable list object has no element 5"),
        ("{{ 1 / 0 }}", "Jinja error: division by zero"),
        ("{{ {}.pop('x') }}", "Jinja error: 'x'"),
        ("{{ [].pop() }}", "Jinja error: pop from empty list"),
        ("{% do {}.update({[]: 1}) %}", "Jinja error: unhashable type: 'list'"),
    ]);
}

#[test]
fn a_context_keeps_changes_for_the_next_template_but_not_for_shared_owners() {
    use std::sync::Arc;

    use super::{Context, Host, Template};
    let shared = Arc::new(brine_value::map! {"l" => brine_value::list![1]});
    let mut context = Context::new("base");
    context.set_shared("pillar", Arc::clone(&shared));
    let host = Host::new();
    let render = |source| Template::compile("t", source).unwrap().render(&context, &host).unwrap();
    assert_eq!(render("{% do pillar.l.append(2) %}{{ pillar.l }}"), "[1, 2]");
    assert_eq!(render("{{ pillar.l }}"), "[1, 2]");
    assert_eq!(shared.get("l"), Some(&brine_value::list![1]));
}

#[test]
fn operators_and_methods_match_python() {
    check(&[
        ("{{ 7 // 2 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 'xy' * 2 }}", "3 3.5 8 1 2 xyxy"),
        ("{{ '%s-%02d' % ('a', 5) }} {{ '%s' % data.n }} {{ '%s%%' | format(1) }}", "a-05 5 1%"),
        ("{{ 'x' * true }}|{{ 'x' * false }}|", "x||"),
        ("{{ 'a.b.c'.split('.') }} {{ 'a/b'.rpartition('/') }}", "['a', 'b', 'c'] ('a', '/', 'b')"),
        ("{{ '{}-{x}'.format(1, x=2) }} {{ ' x '.strip() }} {{ 'salt://x'.startswith('salt') }}", "1-2 x True"),
        ("{{ 'abc'[1:] }} {{ 'abc'[::-1] }} {{ [1, 2, 3][:-1] }} {{ 'xxay'.lstrip('x') }}", "bc cba [1, 2] ay"),
        (
            "{{ 'a.b.c'.rsplit('.', 1) }} {{ 'a b  c'.rsplit(none, 1) }} {{ '7'.zfill(3) }}",
            "['a.b', 'c'] ['a b', 'c'] 007",
        ),
        ("{{ '-'.join(['a', 'b']) }} {{ 'ab'.center(6, '*') }}|{{ 'a'.ljust(3) }}|", "a-b **ab**|a  |"),
        (
            "{{ 'abc'.find('c') }} {{ 'abc'.index('b') }} {{ 'aXb'.swapcase() }} {{ 'ab'.removeprefix('a') }}",
            "2 1 AxB b",
        ),
        (
            "{{ 1 in [1] }} {{ 'a' in {'a': 1} }} {{ 'b' not in 'abc' }} {{ [1, {'a': 2}] == [1, {'a': 2}] }}",
            "True True False True",
        ),
        (
            "{% for i in range(5) %}{% if i == 3 %}{% break %}{% elif i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
            "02",
        ),
        ("{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set x %}[1]{% endset %}{{ x }}", "1[2][1]"),
        ("{% raw %}{{ raw }} {% set x = [] %}{% endraw %}{# {{ [1] }} #}", "{{ raw }} {% set x = [] %}"),
        (
            "{% macro m(a, b=[]) %}{% do b.append(a) %}{{ b }}{% endmacro %}{{ m(1) }}{{ m(2) }}{{ m(3, b=[0]) }}",
            "[1][2][0, 3]",
        ),
    ]);
}

#[test]
fn filters_match_salt() {
    check(&[
        (
            "{{ {'srv': {'name': 'web', 'ports': [80, 443]}, 'a': 'on'} | yaml }}",
            "{a: 'on', srv: {name: web, ports: [80, 443]}}",
        ),
        (
            "{{ {'srv': {'name': 'web', 'ports': [80]}, 'a': 'on'} | yaml(False) }}",
            "a: 'on'\nsrv:\n  name: web\n  ports:\n  - 80",
        ),
        ("{{ 'a' | yaml }} {{ {'b': 'x', 'a': none} | json }}", "a {\"a\": null, \"b\": \"x\"}"),
        ("{{ {'z': \"<'>\", 'a': 'é'} | tojson }}", "{\"z\": \"\\u003c\\u0027\\u003e\", \"a\": \"\\u00e9\"}"),
        ("{{ {'b': 1, 'a': ['x', None, True, 1.0]} | python }}", "{'a': ['x', None, True, 1.0], 'b': 1}"),
        ("{{ ('a: 0644' | load_yaml).a }} {{ ('[1, {\"a\": 2}]' | load_json)[1] }}", "644 {'a': 2}"),
        (
            "{{ {'a': {'b': [1, 2]}} | traverse('a:b:1') }} {{ data | traverse('no:x', 'dflt') }} {{ data | traverse('list.0', delimiter='.') }}",
            "2 dflt 1",
        ),
        ("{{ 'ab-12' | regex_replace('[0-9]+', 'N') }} {{ 'abc' | regex_replace('b(.)', '<\\\\1>') }}", "ab-N a<c>"),
        (
            "{{ 'abc' | regex_match('(a)(b)') }} {{ 'abc' | regex_search('b') }} {{ 'abc' | regex_match('b') }}",
            "('a', 'b') ('b',) None",
        ),
        (
            "{{ 'ABC' | regex_search('b', ignorecase=True) }} {{ 'a$b' | regex_replace('b', '$1') }} {{ 'a.b' | regex_escape }}",
            "('B',) a$$1 a\\.b",
        ),
        (
            "{{ ['yes' | to_bool, 'on' | to_bool, 1 | to_bool, none | to_bool, 'TRUE' | to_bool] }}",
            "[True, False, True, False, True]",
        ),
        (
            "{{ [1, 1, 2] | unique }} {{ [1, 2] | union([2, 3]) }} {{ [1, 2] | intersect([2]) }} {{ [1, 2] | difference([2]) }}",
            "[1, 2] [1, 2, 3] [2] [1]",
        ),
        (
            "{{ [1, 2] | symmetric_difference([2, 3]) }} {{ [1, [2, [3, none]]] | flatten }} {{ [1, [2, [3]]] | flatten(levels=1) }}",
            "[1, 3] [1, 2, 3] [1, 2, [3]]",
        ),
        (
            "{{ \"it's\" | quote }} {{ 'ab' | quote }} {{ '' | quote }} {{ 'a\"b' | yaml_dquote }} {{ \"a'b\" | yaml_squote }}",
            "'it'\"'\"'s' ab '' \"a\\\"b\" 'a''b'",
        ),
        (
            "{{ 'x' | yaml_encode }} {{ none | yaml_encode }} {{ 7 | yaml_encode }} {{ true | yaml_encode }}",
            "\"x\" null 7 true",
        ),
        ("{{ 'a\nb\n\nc' | indent(2) }}", "a\n  b\n\n  c"),
        (
            "{{ {'b': 1, 'a': 2} | dictsort }} {{ ['x', '', 'y'] | select | list }} {{ [1, 2] | map('string') | join('-') }}",
            "[('a', 2), ('b', 1)] ['x', 'y'] 1-2",
        ),
        (
            "{{ {'b': 1, 'a': 2} | items | list }} {{ nope | items | list }} {% for k, v in data.nope | items %}x{% endfor %}{{ nope | to_bool }}",
            "[('b', 1), ('a', 2)] [] False",
        ),
        (
            "{{ 'abc' | base64_encode }} {{ 'YWJj' | base64_decode }} {{ 'abc' | sha256 | truncate(11) }}",
            "YWJj abc ba7816bf...",
        ),
        (
            "{{ '/a' | path_join('b', 'c') }} {{ 'x' | is_list }} {{ [] | is_list }} {{ (1,) | is_list }}",
            "/a/b/c False True False",
        ),
        (
            "{{ 'abc' is match('a.') }} {{ 'abc' is match('b') }} {{ 1 is equalto 1 }} {{ [] is list }} {{ (1,) is list }}",
            "True False True True False",
        ),
        (
            "{{ data is mapping }} {{ data.list is sequence }} {{ 'x' is string }} {{ data.n is number }} {{ grains is iterable }}",
            "True True True True True",
        ),
        (
            "{{ 8 | random_str | length }} {{ [5] | random }} {{ 'MyName' | to_snake_case }} {{ 'my_name' | to_camelcase }}",
            "8 5 my_name myName",
        ),
        (
            "{{ {'a': 1} | to_entries }} {{ [{'key': 'a', 'value': 1}] | from_entries }}",
            "[{'key': 'a', 'value': 1}] {'a': 1}",
        ),
        (
            "{{ {} | set_dict_key_value('a:b', 1) }} {{ {'a': [1]} | append_dict_key_value('a', 2) }}",
            "{'a': {'b': 1}} {'a': [1, 2]}",
        ),
        ("{{ {'a': 1} | compare_dicts({'a': 2, 'b': 3}) }}", "{'a': {'old': 1, 'new': 2}, 'b': {'old': '', 'new': 3}}"),
        (
            "{{ '12' | int + 1 }} {{ '2.5' | float }} {{ 'x' | int(7) }} {{ '3' | to_num + 1 }} {{ '::1' | ipwrap }}",
            "13 2.5 7 4 [::1]",
        ),
        (
            "{{ 'x' | int }} {{ none | int }} {{ 'ff' | int(0, 16) }} {{ '12.7' | int }} {{ 'x' | float }}",
            "0 0 255 12 0.0",
        ),
        (
            "{{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'A': 2} | dictsort(by='value') }}",
            "[('A', 2), ('b', 1)] [('b', 1), ('A', 2)]",
        ),
        (
            "{{ '%.2f' % 3.14159 }} {{ '%(a)s' % {'a': 1} }} {{ 'a&b=é' | urlencode }} {{ 'é' | yaml_encode }}",
            "3.14 1 a%26b%3D%C3%A9 \"\\xE9\"",
        ),
        ("{{ '/a/' | path_join('b', '/c') }} {{ 'a\nb' | yaml_squote }}", "/a/b/c 'a\n\nb'"),
        ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}", "aba"),
        ("{{ '2024-05-06T07:08:09' | strftime('%d.%m.%Y') }} {{ '2024-05-06' | strftime }}", "06.05.2024 2024-05-06"),
    ]);
    check_errors(&[
        (
            "{{ [1] | yaml_encode }}",
            "Jinja error: yaml_encode() only works with YAML scalar data; failed for <class 'list'>",
        ),
        ("{{ '{' | load_json }}", "Jinja syntax error: Unable to load json from {"),
    ]);
}

#[test]
fn blocks_of_data_become_variables() {
    check(&[
        (
            "{%- load_yaml as local %}\nlist: [3, 1]\nmode: 0644\nid: {{ data.id }}\n{%- endload %}{{ local.mode }} {{ local.list | sort }} {{ local.id }}",
            "644 [1, 3] web1_youshi",
        ),
        ("{% load_json as x %}{\"a\": [1]}{% endload %}{% do x.a.append(2) %}{{ x }}", "{'a': [1, 2]}"),
        ("{% load_text as x %} a: b {% endload %}[{{ x }}]", "[ a: b ]"),
        ("{% macro m() %}{a: [1, 2]}{% endmacro %}{{ (m() | load_yaml).a[1] }}", "2"),
        ("{% profile as 'x' %}in{% endprofile %}side", "inside"),
        ("{% set x = show_full_context() %}{{ x.sls }} {{ x.data.n }} {{ 'salt' in x }}", "deep.er.vars 5 False"),
    ]);
}

#[test]
fn arguments_may_be_named() {
    check(&[
        ("{{ '' | default('x', boolean=True) }} {{ none | d(default_value=1, boolean=true) }}", "x 1"),
        ("{{ no | default(default_value=3) }} {{ none | default('x') }} [{{ no | d }}]", "3 None []"),
        ("{{ 'aaa' | replace(old='a', new='b', count=1) }} {{ 'xx' | float(default=2.5) }}", "baa 2.5"),
        ("{{ [1, 2, 3] | batch(linecount=2, fill_with=0) | list }}", "[[1, 2], [3, 0]]"),
        ("{{ 'xax' | trim(chars='x') }} [{{ 'a' | center(width=3) }}]", "a [ a ]"),
        ("{{ 1234567 | filesizeformat(binary=true) }}", "1.2 MiB"),
        ("{{ 'a,b,c'.split(sep=',', maxsplit=1) }} {{ 'a b'.split(maxsplit=1) }}", "['a', 'b,c'] ['a', 'b']"),
        ("{{ 'a,b,c'.rsplit(',', maxsplit=1) }} {{ 'a\\nb'.splitlines(keepends=True) }}", "['a,b', 'c'] ['a\\n', 'b']"),
    ]);
    check_errors(&[("{{ 'a' | trim(what='x') }}", "Jinja error: trim() got an unexpected keyword argument 'what'")]);
}

#[test]
fn none_is_a_default_and_not_iterable() {
    check(&[
        ("{{ {}.pop('x', none) }} {{ {'x': 1}.pop('x', none) }}", "None 1"),
        (
            "{{ none is iterable }} {{ [] is iterable }} {{ 'a' is iterable }} {{ 1 is iterable }}",
            "False True True False",
        ),
    ]);
    check_errors(&[
        ("{{ none.get('x') }}", "Jinja variable 'None' has no attribute 'get'"),
        ("{% set a, b = [1] %}", "Jinja error: not enough values to unpack (expected 2, got 1)"),
        ("{% set a, b = [1, 2, 3] %}", "Jinja error: too many values to unpack (expected 2)"),
        ("{% set d = {{ 1 }} %}", "Jinja syntax error: expected token ':', got '}'"),
    ]);
}

#[test]
fn a_called_item_may_be_a_method() {
    check(&[
        ("{{ {'a': 1}['get']('a') }} {{ {'a': {'b': 'c'}}['a']['get']('b')['upper']() }}", "1 C"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{% set all = {'m': m} %}{{ all['m'](1) }}", "<1>"),
    ]);
}

#[test]
fn a_merge_of_defaults_changes_its_argument() {
    let setup = "{% set d = {'in': {}} %}{% set inside = d.in %}";
    check(&[
        (
            &format!("{setup}{{% do salt['defaults.merge'](d, {{}}) %}}{{{{ d }}}} {{{{ inside }}}}"),
            "{'in': {'b': 2}, 'a': 1} {'b': 2}",
        ),
        (&format!("{setup}{{% do salt['defaults.merge'](dest=d, src={{}}) %}}{{{{ d.a }}}}"), "1"),
        (
            &format!("{setup}{{% set m = salt['defaults.merge'](d, {{}}, in_place=False) %}}{{{{ d }}}} {{{{ m.a }}}}"),
            "{'in': {}} 1",
        ),
    ]);
}

#[test]
fn undefined_values_stay_undefined_in_data_and_through_functions() {
    check(&[
        ("{% set d = {'x': no} %}{{ salt['config.get']('y', d.x) | default('d') }}", "d"),
        ("{{ salt['config.get']('y', default=no) is defined }} {{ salt['test.nothing'](1) }}", "False None"),
        ("{{ {'a': 1}.get('b', no) is defined }} {{ {'a': 1}.get('a', no) }} {{ {}.get('a') }}", "False 1 None"),
    ]);
    check_errors(&[("{{ salt['config.get']('y', no) }}", "Jinja variable 'no' is undefined")]);
}

/// Data with an undefined value in it is printed, but no filter that reads all of it takes it.
#[test]
fn undefined_values_at_any_depth_are_not_serialized() {
    for data in ["[no]", "[[1, no]]", "{'a': no}", "{'a': [no]}", "[{'a': no}]"] {
        for filter in ["json", "tojson", "tojson(indent=1)", "yaml", "yaml(False)", "python"] {
            check_errors(&[(&format!("{{{{ {data} | {filter} }}}}"), "Jinja variable 'no' is undefined")]);
        }
    }
    check(&[("{{ [no] }} {{ [no] | length }} {{ [[no]] | string }}", "[Undefined] 1 [[Undefined]]")]);
}

#[test]
fn operations_on_undefined_values_are_refused() {
    for source in [
        "salt['test.nothing'](no)",
        "salt['test.nothing'](x=no)",
        "salt['config.get'](no)",
        "['a', no] | join(':')",
        "no | join",
        "[1, no] | sum",
        "[1, no] | sort",
        "[1, no] | max",
        "[no] | select | list",
        "no | list",
        "no | first",
        "'{}'.format(no)",
        "{'a': 1}.get(no)",
        "{no: 1} | json",
        "(no,) | yaml",
    ] {
        check_errors(&[(&format!("{{% set x = {source} %}}"), "Jinja variable 'no' is undefined")]);
    }
    check(&[
        ("{{ [no] | list | length }} {{ [no, 1] | select('defined') | list }} {{ [no, 2] | last }}", "1 [1] 2"),
        (
            "{{ [3, 1] | sort }} {{ ['b', 'A'] | sort }} {{ [[2], [1]] | max }} {{ [] | join }}",
            "[1, 3] ['A', 'b'] [2] ",
        ),
        ("{{ [{'a': {'b': 2}}, {'a': {'b': 1}}] | sort(attribute='a.b') }}", "[{'a': {'b': 1}}, {'a': {'b': 2}}]"),
    ]);
}

#[test]
fn items_are_iterated_and_compared_as_in_python() {
    check_errors(&[
        ("{{ none | list }}", "Jinja error: 'NoneType' object is not iterable"),
        ("{{ 1 | join }}", "Jinja error: 'int' object is not iterable"),
        ("{{ [3, 'a'] | sort }}", "Jinja error: '<' not supported between instances of 'str' and 'int'"),
        ("{{ [3, 'a'] | max }}", "Jinja error: '>' not supported between instances of 'str' and 'int'"),
        ("{{ [{'a': 1}, {}] | join(attribute='a') }}", "Jinja variable 'dict object' has no attribute 'a'"),
        ("{{ [{'a': 1}, {}] | sort(attribute='a') }}", "Jinja variable 'dict object' has no attribute 'a'"),
        ("{{ none | items | list }}", "Jinja error: Can only get item pairs from a mapping."),
        ("{{ [1] | items | list }}", "Jinja error: Can only get item pairs from a mapping."),
        ("{{ 'a' | dictsort }}", "Jinja error: 'str' object has no attribute 'items'"),
        ("{{ ','.join(['a', 1]) }}", "Jinja error: sequence item 1: expected str instance, int found"),
    ]);
}

#[test]
fn leading_zeros_are_a_separate_number() {
    check(&[("{{ 0 }} {{ 00 }} {{ 0.5 }} {{ 100 }}", "0 0 0.5 100")]);
    check_errors(&[
        ("{{ {}.get('mode', 0600) }}", "Jinja syntax error: expected token ',', got 'integer'"),
        ("{{ 0600 }}", "Jinja syntax error: expected token 'end of print statement', got 'integer'"),
    ]);
}

#[test]
fn functions_are_callable() {
    check(&[
        (
            "{{ salt['test.echo'] is callable }} {{ salt.test.echo is callable }} {{ range is callable }}",
            "True True True",
        ),
        ("{{ salt['no.such'] | default(none) is callable }} {{ {} is callable }}", "False False"),
        ("{% set f = salt['test.echo'] %}{{ f('x') }} {{ f is mapping }}", "x False"),
    ]);
}

#[test]
fn byte_strings_are_not_strings() {
    check(&[
        (r"{{ 'x'.encode() }} {{ ['é\n'.encode()] }} {{ 'é'.encode().decode() }}", r"b'x' [b'\xc3\xa9\n'] é"),
        (
            "{{ 'ab'.encode() + 'c'.encode() }} {{ 'abc'.encode()[1:] }} {{ 'ab'.encode() == 'ab' }}",
            "b'abc' b'bc' False",
        ),
        ("{% for b in 'ab' | to_bytes %}{{ b }},{% endfor %}", "97,98,"),
        ("{{ {'a': 'x', 1: ('q', 2, none)} | json_encode_dict }}", "{b'a': b'x', 1: [b'q', 2, None]}"),
        (
            "{{ ['a', {'b': 'c'}] | json_encode_list }} {{ 'ab' | json_decode_list }}",
            "[b'a', {b'b': b'c'}] [b'a', b'b']",
        ),
        (r"{{ '08:00:27:13:69:7f' | mac_str_to_bytes }}", r#"b"\x08\x00'\x13i\x7f""#),
        (
            "{{ 'YQ==' | base64_decode }} {{ 'Y Q==' | base64_decode }} {{ 'a' | to_bytes | md5 }}",
            "a a 0cc175b9c0f1b6a831c399e269772661",
        ),
    ]);
    check_errors(&[
        ("{{ 1 | md5 }}", "Jinja error: expected str, bytes, or bytearray not <class 'int'>"),
        ("{{ none | base64_encode }}", "Jinja error: expected str, bytes, or bytearray not <class 'NoneType'>"),
        ("{{ [] | uuid }}", "Jinja error: expected str, bytes, or bytearray not <class 'list'>"),
        ("{{ 'a' | path_join(1) }}", "Jinja error: expected str, bytes, or bytearray not <class 'int'>"),
        ("{{ 'YQ' | base64_decode }}", "Jinja error: Incorrect padding"),
        ("{{ {} | regex_match('a') }}", "Jinja error: expected string or bytes-like object, got 'dict'"),
        ("{{ 1 is match('a') }}", "Jinja error: expected string or bytes-like object, got 'int'"),
        ("{{ true | regex_escape }}", "Jinja error: decoding to str: need a bytes-like object, bool found"),
        ("{{ 1 | which }}", "Jinja error: access: path should be string, bytes or os.PathLike, not int"),
        ("{{ nope | md5 }}", "Jinja variable 'nope' is undefined"),
        ("{{ [1] | json_encode_dict }}", "Jinja error: 'list' object has no attribute 'items'"),
        ("{{ 'x' | mac_str_to_bytes }}", "Jinja error: Invalid MAC address"),
    ]);
}

#[test]
fn safe_html_is_marked_in_data() {
    check(&[
        ("{{ ['a' | e, 'a'] }} {{ {'a': '<' | e} }} {{ 'a' | e }}", "[Markup('a'), 'a'] {'a': Markup('&lt;')} a"),
        (
            "{{ 'see (www.foo.org)' | urlize }}",
            "see (<a href=\"https://www.foo.org\" rel=\"noopener\">www.foo.org</a>)",
        ),
        (
            "{{ 'http://x.com/abc.' | urlize(10, true, target='_blank') }}",
            "<a href=\"http://x.com/abc\" rel=\"nofollow noopener\" target=\"_blank\">http://x.c...</a>.",
        ),
    ]);
}

#[test]
fn random_results_have_the_expected_form() {
    check(&[
        ("{{ lipsum(0) }}{{ lipsum()[:3] }}{{ lipsum(2, html=false, min=3, max=4) | wordcount }}", "<p>6"),
        ("{{ ('52:54:00' | gen_mac)[:9] }}{{ '52:54:00' | gen_mac | length }}", "52:54:00:17"),
    ]);
    check_errors(&[("{{ lipsum(1, min=5, max=5) }}", "Jinja error: empty range for randrange() (5, 5, 0)")]);
}

#[test]
fn tables_of_mysql_become_mappings() {
    check(&[(
        "{{ ['+--+', '| a | b |', '+--+', '| x | 2 |', '| y | 2.5 |', ''] | mysql_to_dict('a') }}",
        "{'x': {'a': 'x', 'b': 2}, 'y': {'a': 'y', 'b': 2.5}}",
    )]);
    check_errors(&[("{{ ['| a |', '| x |'] | mysql_to_dict('c') }}", "Jinja error: 'c'")]);
}

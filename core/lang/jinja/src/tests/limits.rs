//! Templates that exceed the limits of time or memory, and the lines at which they are stopped.

use std::time::{Duration, Instant};

use brine_allocator::held;
use brine_function::{Args, CallError};
use brine_value::Value;

use crate::limits::{Render, hand_off, measure_memory};
use crate::{Cancel, Context, Files, FilesError, Functions, Host, JinjaError, LimitExceeded, Limits, Template};

const FUEL: u64 = 1_000_000;
const MEMORY: u64 = 8 << 20;
const OUTPUT: u64 = 1 << 20;

/// The maximum memory: the engine's output buffer doubles when it grows.
const MAX_PEAK: i64 = 2 * MEMORY as i64 + (1 << 20);

fn limits() -> Limits {
    Limits { fuel: FUEL, memory: MEMORY, output: OUTPUT, cancel: None }
}

/// A host whose functions render templates, on this thread or on another one that they wait for.
struct Nested(Cancel);

impl Functions for Nested {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        let source = args.positional.first().and_then(Value::as_str).unwrap_or_default().to_owned();
        let inner = move || match Template::compile("inner.sls", &source) {
            Ok(template) => {
                let host = Host::new().with_functions(Nested(Cancel::new()));
                template.render(&Context::new("base"), &host).map(Value::from)
            }
            Err(error) => Err(error),
        };
        let rendered = match function {
            "render.here" => inner(),
            "render.beside" => {
                let budget = hand_off();
                std::thread::scope(|scope| scope.spawn(|| budget.run(inner)).join().unwrap())
            }
            _ => {
                self.0.cancel();
                Ok(Value::Nil)
            }
        };
        // A function that ignores errors.
        Ok(rendered.unwrap_or_else(|error| Value::from(error.message)))
    }

    fn has(&self, _function: &str) -> bool {
        true
    }

    fn has_module(&self, _module: &str) -> bool {
        true
    }
}

impl Files for Nested {
    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
        // All on one line: the steps may end anywhere in the loops.
        let endless = "{% macro m() %}\n\n{% for i in range(100000) %}{% for j in range(100000) %}{% set x = 1 %}\
                       {% endfor %}{% endfor %}{% endmacro %}";
        Ok((path == "lib/endless.sls").then(|| endless.to_owned()))
    }
}

/// Renders within limits, and returns the peak of memory.
fn render_within(limits: Limits, source: &str) -> (Result<String, JinjaError>, i64) {
    measure_memory(held);
    let template = Template::compile("t.sls", source).unwrap();
    let nested = || Nested(limits.cancel.clone().unwrap_or_default());
    let host = Host::new().with_functions(nested()).with_files(nested());
    let outer = Render::begin(&limits);
    let rendered = template.render(&Context::new("base"), &host);
    (rendered, outer.budget().peak())
}

/// Checks that each template exceeds this limit on this line, without using much more memory.
#[track_caller]
fn stopped(limit: LimitExceeded, cases: impl IntoIterator<Item = (String, usize)>) {
    let mut wrong = Vec::new();
    for (source, line) in cases {
        let (rendered, peak) = render_within(limits(), &source);
        let error = rendered.map_err(|error| (error.limit, error.line, error.message));
        let message = format!("render failed: {}: t.sls, line {line}", limits().message(limit));
        if error != Err((Some(limit), line, message)) || peak > MAX_PEAK {
            let short = |text: &str| text.chars().take(150).collect::<String>();
            wrong.push(format!("{}\n    {} with {peak} bytes", short(&source), short(&format!("{error:?}"))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn memory_is_limited_for_every_operation() {
    let big = "{% set a = 'a' * 100000 %}\n";
    let loop_of = |body: &str| {
        format!("{{% set ns = namespace(s='x', l=[1]) %}}\n{{% for i in range(60) %}}\n{body}\n{{% endfor %}}")
    };
    let after = |body: &str| format!("{big}{body}");
    let cases = [
        (loop_of("{% set ns.s = ns.s ~ ns.s %}"), 3),
        (loop_of("{% set ns.s = ns.s + ns.s %}"), 3),
        (loop_of("{% set ns.s = '%s%s' % (ns.s, ns.s) %}"), 3),
        (loop_of("{% set ns.s = '{0}{0}'.format(ns.s) %}"), 3),
        (loop_of("{% set ns.s = [ns.s, ns.s] | join %}"), 3),
        (loop_of("{% set ns.s = ns.s.join(['', '', '']) %}{% set ns.s = ns.s ~ 'x' %}"), 3),
        (loop_of("{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}"), 3),
        (loop_of("{% set ns.l = ns.l + ns.l %}"), 3),
        (loop_of("{% set ns.l = ns.l * 2 %}"), 3),
        (loop_of("{% do ns.l.extend(ns.l) %}"), 3),
        (loop_of("{% set ns.l = [ns.l, ns.l] %}{% if i == 40 %}{{ ns.l | json }}{% endif %}"), 3),
        (loop_of("{% set ns.l = [ns.l, ns.l] %}{% if i == 40 %}{{ salt['render.here'](ns.l) }}{% endif %}"), 3),
        ("\n{{ 'x' * 1000000000 }}".to_owned(), 2),
        ("\n{{ [1] * 100000000 }}".to_owned(), 2),
        ("\n{{ (1, 2) * 100000000 }}".to_owned(), 2),
        ("\n{{ '%1000000000d' % 1 }}".to_owned(), 2),
        ("\n{{ '%*d' % (1000000000, 1) }}".to_owned(), 2),
        ("\n{{ '%(a)1000000000d' | format(a=1) }}".to_owned(), 2),
        ("\n{{ '{:1000000000}'.format(1) }}".to_owned(), 2),
        ("\n{{ '{:{}}'.format(1, 1000000000) }}".to_owned(), 2),
        (after("{{ a | replace('a', a) }}"), 2),
        (after("{{ a.replace('a', a) }}"), 2),
        (after("{{ a | regex_replace('a', a) }}"), 2),
        (after("{{ a | regex_replace('(.*)', '\\\\1' * 1000) }}"), 2),
        (after("{{ range(100000) | join(a) }}"), 2),
        (after("{{ a.join(['1'] * 10000) }}"), 2),
        (after("{{ (a.replace('a', '\\n')) | indent(1000, true, true) }}"), 2),
        (after("{{ a | wordwrap(1, true, '=' * 1000) }}"), 2),
        (after("{{ (a ~ a ~ a ~ a).split('a') }}"), 2),
        (after("{{ (a ~ a ~ a ~ a) | list }}"), 2),
        (after("{{ (a ~ a ~ a ~ a) | split('a') }}"), 2),
        (after("{{ (a ~ a ~ a ~ a)[::-1] }}"), 2),
        (after("{% for c in a ~ a ~ a ~ a %}{% endfor %}"), 2),
        (after("{{ a.replace('a', '\t').expandtabs(10000) }}"), 2),
        ("\n{{ range(1000) | combinations(500) | length }}".to_owned(), 2),
        ("\n{{ range(100) | product(range(100), range(10)) | length }}".to_owned(), 2),
        ("\n{{ range(100000) | list | json(indent=60) | length }}".to_owned(), 2),
        (format!("{{% set x %}}{{% for i in range(100000) %}}\n{}\n{{% endfor %}}{{% endset %}}", "x".repeat(1000)), 1),
        (
            format!(
                "{{% macro m() %}}{}{{% endmacro %}}{{% set l = [] %}}\n{{% for i in range(100000) %}}\n{{% do l.append(m()) %}}\n{{% endfor %}}",
                "x".repeat(1000)
            ),
            3,
        ),
        ("{% macro m(s) %}\n{{ m(s ~ s) }}\n{% endmacro %}{{ m('xxxxxxxxxxxx') }}".to_owned(), 2),
        (
            format!(
                "{{% set l = range(100000) | list %}}\n{{% for x in [l] recursive %}}{}{{% if x is iterable %}}\
                 {{% set y = loop(x) %}}{{% endif %}}{{% endfor %}}",
                "x".repeat(1000)
            ),
            2,
        ),
    ];
    stopped(LimitExceeded::Memory, cases);
}

#[test]
fn a_chain_of_any_filter_stays_within_memory() {
    // Each filter that doubles some character, or escapes it, grows its own output.
    let text = r#"{% set x = 'a b\'\"\\\n%&<ä' * 10 %}{% set y = x"#;
    let mut wrong = Vec::new();
    for filter in crate::reference::filters() {
        for length in [8, 12, 16, 20, 24, 32, 48, 64] {
            let source = format!("{text}{} %}}{{{{ y | length }}}}", format!(" | {filter}").repeat(length));
            let (rendered, peak) = render_within(limits(), &source);
            if peak > MAX_PEAK {
                wrong.push(format!("{filter}, {length} times: {peak} bytes"));
            }
            if peak > MAX_PEAK || rendered.is_err() {
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn steps_are_limited_for_every_operation() {
    let nested = "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}\
                  {% set ns.m = [ns.m, ns.m] %}{% endfor %}\n";
    let cases = [
        ("\n{% for i in range(100000) %}{% for j in range(100000) %}{% set x = i %}{% endfor %}{% endfor %}".to_owned(), 2),
        ("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}".to_owned(), 1),
        ("\n{% macro m(n) %}{% if n > 0 %}x{% if m(n - 1) and m(n - 1) %}{% endif %}{% endif %}{% endmacro %}{{ m(60) }}".to_owned(), 2),
        (format!("{nested}{{% if ns.l == ns.m %}}{{% endif %}}{{{{ 1 }}}}"), 2),
        ("\n{% set l = range(50000) | list %}{% for i in l %}{% if -1 in l %}{% endif %}{% endfor %}".to_owned(), 2),
        ("\n{% set a = 'a' * 1000000 %}{% for i in range(100000) %}{% if a.count('b') %}{% endif %}{% endfor %}".to_owned(), 2),
        (format!("{nested}{{{{ ns.l }}}}"), 2),
        ("\n{{ range(2000) | permutations | length }}".to_owned(), 2),
        ("\n{{ [1] | product(repeat=100000) | length }}".to_owned(), 2),
    ];
    stopped(LimitExceeded::Fuel, cases);
}

#[test]
fn output_is_limited() {
    let text = "x".repeat(1000);
    let cases = [
        (format!("{{% for i in range(100000) %}}\n{text}\n{{% endfor %}}"), 1),
        (format!("{{% set x = '{text}' %}}{{% for i in range(100000) %}}\n\n{{{{ x }}}}{{% endfor %}}"), 3),
    ];
    stopped(LimitExceeded::Output, cases);
}

#[test]
fn the_error_names_the_imported_file() {
    let source = "{% from 'lib/endless.sls' import m %}\n{{ m() }}";
    let error = render_within(limits(), source).0.unwrap_err();
    assert_eq!((error.name.as_str(), error.line, error.imported), ("lib/endless.sls", 3, true), "{error}");
    let message = "render failed: template needs more than 1000000 steps (template_fuel): lib/endless.sls, line 3";
    assert_eq!(error.message, message);
}

#[test]
fn renders_inside_of_a_render_share_its_limits() {
    let count = "'{% for i in range(20000) %}{% set x = i %}{% endfor %}'";
    let build = "'\n{% set x = \"x\" * 9000000 %}'";
    for function in ["render.here", "render.beside"] {
        let once = format!("{{{{ salt['{function}']({count}) }}}}");
        assert_eq!(render_within(limits(), &once).0, Ok(String::new()), "{function}");
        let often = format!("{{% for i in range(1000) %}}\n{{% do salt['{function}']({count}) %}}{{% endfor %}}");
        let error = render_within(limits(), &often).0.unwrap_err();
        assert_eq!(error.limit, Some(LimitExceeded::Fuel), "{function}: {error}");
        // A function that ignores the error of an inner render does not escape the limit.
        let passed_over = format!("\n\n{{% set x = salt['{function}']({build}) %}}\n{{{{ 'on' }}}}");
        let error = render_within(limits(), &passed_over).0.unwrap_err();
        assert_eq!(error.limit, Some(LimitExceeded::Memory), "{function}: {error}");
        assert!(error.message.ends_with(": inner.sls, line 2"), "{function}: {error}");
        let outside =
            format!("{{% set a = 'a' * 5000000 %}}{{{{ salt['{function}']('{{% set x = \"x\" * 5000000 %}}') }}}}");
        let error = render_within(limits(), &outside).0.unwrap_err();
        assert_eq!(error.limit, Some(LimitExceeded::Memory), "{function}: {error}");
    }
}

#[test]
fn a_render_ends_at_its_deadline_and_when_it_is_cancelled() {
    let unlimited = Limits { fuel: 0, memory: 0, output: 0, cancel: None };
    let endless = "\n{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    let started = Instant::now();
    let soon = Cancel::at(started + Duration::from_millis(50));
    let error = render_within(unlimited.clone().with_cancel(soon), endless).0.unwrap_err();
    assert_eq!((error.limit, error.line), (Some(LimitExceeded::Deadline), 2), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(error.message, "render failed: template exceeded its deadline: t.sls, line 2");
    // A function during which the render is cancelled.
    let source = "\n\n{% do salt['test.cancel']() %}\n{{ 'on' }}";
    let error = render_within(unlimited.with_cancel(Cancel::new()), source).0.unwrap_err();
    assert_eq!((error.limit, error.line), (Some(LimitExceeded::Cancelled), 3), "{error}");
}

#[test]
fn limits_do_not_affect_ordinary_templates_and_errors() {
    let unlimited = Limits { fuel: 0, memory: 0, output: 0, cancel: None };
    for limits in [limits(), unlimited, Limits::default()] {
        let source =
            "{% for i in range(1000) %}{% set x = 'x' * i %}{% endfor %}{{ '{:>5}'.format(1) }}{{ '%5d%%' % 12 }}";
        assert_eq!(render_within(limits.clone(), source).0.as_deref(), Ok("    1   12%"));
        let source = "{% for n in [{'v': 1, 'c': [{'v': 2}, {'v': 3}]}] recursive %}{{ loop.index }}/{{ loop.length }}:{{ n.v }}(\
                      {% if n.get('c') %}{{ loop(n.c) }}{% endif %}){% endfor %}";
        assert_eq!(render_within(limits.clone(), source).0.as_deref(), Ok("1/1:1(1/2:2()2/2:3())"));
        // Numbers that are not widths.
        let source = "{{ '{} {{12345678901}} 12345678901'.format(12345678901) }}{{ '%s 12345678901' % 12345678901 }}";
        let text = "12345678901 {12345678901} 1234567890112345678901 12345678901";
        assert_eq!(render_within(limits.clone(), source).0.as_deref(), Ok(text));
        let error = render_within(limits, "\n{{ nope }}").0.unwrap_err();
        assert_eq!((error.limit, error.message.as_str()), (None, "Jinja variable 'nope' is undefined"));
    }
}

#[test]
fn memory_that_is_freed_may_be_used_again() {
    let source = "{% for i in range(200) %}{% set x = 'x' * 1000000 %}{% endfor %}done";
    let limits = Limits { fuel: 100_000_000, ..limits() };
    let (rendered, peak) = render_within(limits, source);
    assert_eq!(rendered.as_deref(), Ok("done"));
    assert!(peak < MEMORY as i64, "{peak}");
}

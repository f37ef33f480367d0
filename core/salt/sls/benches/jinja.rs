//! Benchmarks template rendering: the reactor renders one or more templates for each matching event.

use std::hint::black_box;
use std::sync::Arc;

use brine_jinja::{Context, Host, Template};
use brine_sls::render::Sls;
use brine_value::{Map, map};
use criterion::{Criterion, criterion_group, criterion_main};

/// A common reactor: accepts the key of a minion whose id matches a pattern.
const AUTH: &str = "\
{% if 'act' in data and data['act'] == 'pend' and data['id'].startswith('web') %}
accept_key:
  wheel.key.accept:
    - args:
      - match: {{ data['id'] }}
{% endif %}
";

/// Part of a formula: mutable lists and mappings, filters, a loop.
const FORMULA: &str = "\
{%- set packages = ['curl', 'git'] %}
{%- do packages.append('vim') if grains.os == 'Debian' %}
{%- set options = {'mode': '0644'} %}
{%- do options.update({'user': 'root'}) %}
{%- for package in packages | sort %}
{{ package }}:
  pkg.installed:
    - options: {{ options | json }}
{%- endfor %}
";

fn event() -> Arc<Map> {
    Arc::new(
        map! {"act" => "pend", "id" => "web1.example.net", "result" => true, "pub" => "-----BEGIN PUBLIC KEY-----"},
    )
}

fn context() -> Context {
    let mut context = Context::new("base");
    context.set_shared("data", event()).set("tag", &"salt/auth".into());
    context.set_shared("grains", Arc::new(map! {"os" => "Debian"}));
    context
}

fn render(criterion: &mut Criterion) {
    let host = Host::new();
    for (name, source) in [("auth reactor", AUTH), ("formula", FORMULA)] {
        match Template::compile(name, source) {
            Ok(template) => {
                criterion.bench_function(&format!("template of {name}"), |bencher| {
                    bencher.iter(|| template.render(black_box(&context()), &host));
                });
            }
            Err(error) => eprintln!("{name}: {error}"),
        }
        match Sls::compile(name, source, "jinja|yaml") {
            Ok(sls) => {
                criterion.bench_function(&format!("template and YAML of {name}"), |bencher| {
                    bencher.iter(|| sls.render(black_box(&context()), &host));
                });
            }
            Err(error) => eprintln!("{name}: {error}"),
        }
        criterion.bench_function(&format!("compiling {name}"), |bencher| {
            bencher.iter(|| Template::compile(name, black_box(source)));
        });
    }
}

criterion_group!(jinja, render);
criterion_main!(jinja);

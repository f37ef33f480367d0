//! Templates and YAML produce data only; they reach no objects or commands.

use brine_jinja::{Context, Host, Template};
use brine_value::map;

use crate::support::{System, stdout, text};

/// Templates could access Python's objects, and execute commands through them.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_25283_templates_reach_no_objects_and_data_is_no_template() {
    let host = Host::new();
    for source in [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ joiner.__init__.__globals__ }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ lipsum.__globals__['os'].popen('id').read() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ [].__class__.__base__ }}",
        "{{ ''|attr('__class__')|attr('__mro__') }}",
        "{{ data.__class__ }}",
        "{{ '%s'.__mod__ }}",
        "{{ '{0.__class__}'.format(data) }}",
        "{{ '{d.__class__.__init__}'.format(d=data) }}",
        "{{ request.application.__globals__ }}",
        "{{ get_flashed_messages.__globals__ }}",
        "{{ data.items.__globals__ }}",
        "{{ salt['cmd.run']('id') }}",
        "{{ config.__class__ }}",
    ] {
        let Ok(template) = Template::compile("t", source) else { continue };
        let mut context = Context::new("base");
        context.set("data", &map! {"id" => "web1"}.into());
        let Ok(rendered) = template.render(&context, &host) else { continue };
        assert!(
            !["class", "uid=", "object", "globals", "function", "<"].iter().any(|word| rendered.contains(word)),
            "{source}: {rendered}"
        );
    }
    // Data of an event is not rendered again by its reaction.
    let system = System::start("reactor: [{'go': [ROOT/srv/reactor/go.sls]}]\n").await;
    system.write(
        "srv/reactor/go.sls",
        "again:\n  runner.event.send:\n    - tag: done\n    - data: {text: {{ data.text | json }}}\n",
    );
    let mut events = system.events("done").await;
    let hostile = "{{ 7 * 191 }}{% set x = salt['cmd.run']('id') %}{{ x }} #!py\n!!python/object";
    let body = format!("{{text: {}}}", brine_value::json::to_json(&hostile.into()));
    assert!(stdout(&system.tool_async("salt-run", &["event.send", "go", &body]).await).contains("True"));
    let (_, data) = events.until("done").await;
    assert_eq!(text(&data, "text"), hostile);
}

/// An unsafe YAML loader created arbitrary objects.
#[test]
fn cve_2025_62348_yaml_constructs_only_data() {
    for source in [
        "!!python/object/apply:os.system ['id']",
        "!!python/object/new:os.system ['id']",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!python/tuple [1]",
        "a: !!python/object:builtins.object {}",
        "!<tag:yaml.org,2002:python/object/apply:os.system> ['id']",
        "!anything x",
    ] {
        assert!(brine_yaml::load(source).is_err(), "{source}: {:?}", brine_yaml::load(source));
    }
    let mut laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        laughs += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(","));
    }
    assert!(brine_yaml::load(&laughs).is_err(), "aliases multiply");
    assert!(brine_yaml::load(&"[".repeat(10_000)).is_err(), "nesting has a limit");
}

use brine_value::{Map, map};

use super::*;

fn stored(format: &str, more: Map, states: Map) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web1.rpt");
    let mut options =
        map! {"report_format" => format, "file_output" => directory.path().join("{id}.rpt").display().to_string()};
    options.extend(more);
    let returner = Highstate::new(&Options::new(&map! {"highstate" => options, "id" => "web1"}, None)).unwrap();
    let one = map! {
        "jid" => "20261120235852025555", "id" => "web1", "fun" => "state.apply", "fun_args" => "web", "return" => states,
        "retcode" => 2, "success" => false,
    };
    returner.returner(&Return::from_map(one).unwrap()).unwrap();
    std::fs::read_to_string(path).ok()
}

fn states() -> Map {
    map! {
        "file_|-motd_|-/etc/motd_|-managed" => map! {
            "result" => true, "changes" => map! {"diff" => "<b>", "mode" => "0644"}, "comment" => "updated", "duration" => 2.5,
            "__run_num__" => 1, "start_time" => "10:00:00",
        },
        "pkg_|-nginx_|-nginx_|-installed" => map! {
            "result" => false, "changes" => map! {}, "comment" => "not <found>", "duration" => 1, "__run_num__" => 0,
        },
    }
}

#[test]
fn reports_have_statistics_the_job_and_states_in_order() {
    insta::assert_snapshot!(stored("yaml", map! {}, states()).unwrap(), @r"
        - stats:
          - total: 2
          - __style__: failed
            failed: 1
          - __style__: unchanged
            unchanged: 0
          - __style__: changed
            changed: 1
          - duration: 3.5
        - job:
          - function: state.apply
          - arguments: web
          - jid: '20261120235852025555'
          - success: false
          - retcode: 2
        - states:
          - __style__: failed
            nginx:
            - function: pkg.installed
            - name: nginx
            - result: false
            - duration: 1
            - comment: not <found>
          - __style__: changed
            motd:
            - function: file.managed
            - name: /etc/motd
            - result: true
            - duration: 2.5
            - comment: updated
            - changes:
              - diff: <b>
              - mode: '0644'
            - started: '10:00:00'
        ");
    let json = stored("json", map! {}, states()).unwrap();
    assert!(json.starts_with(r#"[{"stats": [{"total": 2}, {"failed": 1, "__style__": "failed"}"#), "{json}");
}

#[test]
fn html_is_escaped() {
    let page = stored("html", map! {}, states()).unwrap();
    assert!(page.contains("not &lt;found&gt;") && page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
    assert!(page.starts_with("<html>\n<body>\n<table") && page.ends_with("</html>\n"), "{page}");
}

#[test]
fn only_configured_runs_are_reported() {
    let calm = map! {"file_|-a_|-a_|-managed" => map! {"result" => true, "changes" => map! {}}};
    assert_eq!(stored("yaml", map! {}, calm.clone()), None);
    assert!(stored("yaml", map! {"report_everything" => true}, calm).is_some());
    let mut failed = states();
    failed.shift_remove("file_|-motd_|-/etc/motd_|-managed");
    assert_eq!(stored("yaml", map! {"report_failures" => false}, failed), None);
    assert_eq!(stored("yaml", map! {"report_everything" => true}, map! {"a" => true}), None, "no state run");
}

#[test]
fn invalid_options_are_named() {
    for (name, value, expected) in [
        ("report_format", "xml", "'xml' is unknown: expected html, json or yaml"),
        ("report_delivery", "fax", "'fax' is unknown: expected file or smtp"),
        ("report_delivery", "smtp", ""),
    ] {
        let options = Options::new(&map! {format!("highstate.{name}") => value}, None);
        let error = Highstate::new(&options).err().unwrap().to_string();
        assert!(error.contains(if expected.is_empty() { "it is required" } else { expected }), "{error}");
    }
}

use brine_value::list;

use super::*;

fn document_of(options: Map, fun: &str, value: impl Into<Value>) -> Option<(String, Value)> {
    let one =
        map! {"jid" => "20261120235852025555", "id" => "web1", "fun" => fun, "return" => value.into(), "retcode" => 0};
    let server = Elasticsearch::new(&Options::new(&map! {"elasticsearch" => options}, None)).unwrap();
    server.document(&Return::from_map(one).unwrap())
}

#[test]
fn documents_have_salts_form() {
    let (index, mut document) = document_of(map! {}, "test.arg", map! {"a.b" => list![map! {"c.d" => 1}]}).unwrap();
    assert_eq!(index, "salt-test_arg");
    document.as_map_mut().unwrap().shift_remove("@timestamp").unwrap();
    let data = map! {"_orig_key" => "a.b", "a_b" => list![map! {"_orig_key" => "c.d", "c_d" => 1}]};
    let expected = map! {
        "success" => true, "retcode" => 0, "minion" => "web1", "fun" => "test.arg", "jid" => "20261120235852025555",
        "counts" => map! {}, "data" => data,
    };
    assert_eq!(document, expected.into());
    assert_eq!(document_of(map! {"functions_blacklist" => list!["test.arg"]}, "test.arg", 1), None);
    assert_eq!(document_of(map! {}, "test.arg", Value::Nil), None);
}

#[test]
fn state_runs_are_ordered_and_counted() {
    let states = map! {
        "file_|-a_|-a_|-managed" => map! {"result" => false, "__run_num__" => 1},
        "pkg_|-b_|-b_|-installed" => map! {"result" => Value::Nil, "__run_num__" => 0},
    };
    let options = map! {"states_count" => true, "states_order_output" => true, "states_single_index" => true};
    let (index, document) = document_of(options, "state.sls", states).unwrap();
    assert_eq!(index, "salt-state_apply-ordered");
    assert_eq!(document.get("counts"), Some(&map! {"succeeded" => 1, "failed" => 1}.into()));
    let first = document.get("data").and_then(|data| data.get("1_|-file_|-a_|-a_|-managed")).unwrap();
    assert_eq!(first.get("_func"), Some(&"file.managed".into()));
}

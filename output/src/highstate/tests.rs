use brine_value::{list, map};

use super::*;
use crate::{StateMode, StateOutput};

/// Returns a state that took 1.5 ms, with additional fields.
fn state(number: i64, result: impl Into<Value>, fields: Map) -> Value {
    let mut data = map! {
        "name" => "n", "result" => result.into(), "changes" => Value::map(), "comment" => "ok", "__run_num__" => number,
        "__sls__" => "s", "start_time" => "10:00:00.000001", "duration" => 1.5,
    };
    data.extend(fields);
    Value::Map(data)
}

fn show(states: Map, options: &OutputOptions) -> String {
    render(&Value::from(map! {"m" => states}), options).unwrap()
}

#[test]
fn states_are_sorted_by_run_number() {
    let states = map! {
        "test_|-late_|-late_|-nop" => state(11, true, map! {}),
        "test_|-early_|-named_|-nop" => state(2, Value::Nil, map! {"comment" => " two\nlines\n"}),
    };
    let options = OutputOptions { state_output_profile: false, ..OutputOptions::default() };
    insta::assert_snapshot!(show(states, &options), @"
    m:
    ----------
              ID: early
        Function: test.nop
            Name: named
          Result: None
         Comment: two
                  lines
         Changes:   
    ----------
              ID: late
        Function: test.nop
          Result: True
         Comment: ok
         Changes:   

    Summary for m
    ------------
    Succeeded: 2 (unchanged=1)
    Failed:    0
    ------------
    Total states run:     2
    ");
}

#[test]
fn counts_widen_the_summary_and_long_runs_are_shown_in_seconds() {
    let states = (0..12).map(|n| {
        let fields = map! {"duration" => 100.25, "__parallel__" => n > 9};
        (Value::from(format!("test_|-i{n}_|-i{n}_|-nop")), state(n, n != 3, fields))
    });
    let options = OutputOptions { state_output_diff: true, state_output_pct: true, ..OutputOptions::default() };
    insta::assert_snapshot!(show(states.collect(), &options), @"
    m:
    ----------
              ID: i3
        Function: test.nop
          Result: False
         Comment: ok
         Started: 10:00:00.000001
        Duration: 100.25 ms
         Changes:   

    Summary for m
    -------------
    Succeeded: 11
    Failed:     1
    Success %: 91.67
    Failure %: 8.33
    -------------
    Total states run:     12
    Total run time:    1.103 s
    ");
}

#[test]
fn states_of_one_id_with_equal_results_are_merged() {
    let key = |name: &str| format!("test_|-i_|-{name}_|-nop");
    let states = map! {
        key("a") => state(0, true, map! {"changes" => map!{"x" => 1}}),
        key("b") => state(1, false, map! {}),
        key("c") => state(2, true, map! {}),
    };
    let options = OutputOptions { state_compress_ids: true, state_output_profile: false, ..OutputOptions::default() };
    insta::assert_snapshot!(show(states, &options), @"
    m:
    ----------
              ID: i (2)
        Function: test.nop
            Name: state_compressed_s_i_True
          Result: True
         Comment: ok
         Changes:   
                  ----------
                  compressed changes:
                      ----------
                      a:
                          ----------
                          x:
                              1
    ----------
              ID: i
        Function: test.nop
            Name: b
          Result: False
         Comment: ok
         Changes:   

    Summary for m
    ------------
    Succeeded: 2 (changed=1)
    Failed:    1
    ------------
    Total states run:     3
    ");
}

#[test]
fn other_values_are_not_state_runs() {
    let without_comment = map! {"test_|-a_|-a_|-nop" => map!{"result" => true, "changes" => Value::map()}};
    for value in [
        Value::from("text"),
        list![1],
        Value::from(map! {"m" => map!{"key" => map!{"result" => true, "comment" => "", "changes" => ""}}}),
        Value::from(map! {"m" => without_comment}),
        Value::from(map! {"data" => "text"}),
    ] {
        assert_eq!(render(&value, &OutputOptions::default()), None, "{value:?}");
    }
}

#[test]
fn the_fields_of_a_runner_result_are_not_minions() {
    let returns = Value::from(map! {"vm_master" => list!["broken"]});
    let plain = render(&returns, &OutputOptions::default()).unwrap();
    insta::assert_snapshot!(plain, @"
    vm_master:
        Data failed to compile:
    ----------
        broken
    ");
    let wrapped = map! {"data" => map!{"vm_master" => list!["broken"], "retcode" => 1}, "outputter" => "highstate"};
    assert_eq!(render(&Value::from(wrapped), &OutputOptions::default()).unwrap(), plain);
}

#[test]
fn the_terse_line_of_a_run_without_states_has_its_reason() {
    let mut states = map! {"no_|-states_|-states_|-None" => state(1, false, map! {})};
    let data = states.get_mut("no_|-states_|-states_|-None").and_then(|state| state.as_map_mut()).unwrap();
    data.insert("comment".into(), "No states found for this minion".into());
    let terse = StateOutput { mode: StateMode::Terse, by_id: false };
    let options = OutputOptions { state_output: terse, state_output_profile: false, ..OutputOptions::default() };
    let line = show(states, &options).lines().nth(1).unwrap().to_owned();
    assert_eq!(
        line.trim(),
        "Name: states - Function: no.None - Result: Failed - Comment: No states found for this minion"
    );
}

#[test]
fn terse_states_can_be_a_table() {
    let states = map! {
        "test_|-a_|-a_|-nop" => state(1, true, map! {}),
        "service_|-b_|-b_|-running" => state(2, false, map! {"warnings" => list!["old"]}),
    };
    let terse = StateOutput { mode: StateMode::Terse, by_id: false };
    let mut options =
        OutputOptions { state_tabular: crate::Tabular::Table, state_output: terse, ..OutputOptions::default() };
    let lines = |options: &OutputOptions| {
        show(states.clone(), options).lines().skip(1).take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(&options),
        ["10:00:00.000001 [    1.5 ms]       test.nop        Clean     Name: a", "Warnings:", "old",]
    );
    options.set_all(&map! {"state_tabular" => "{4} {2}.{3} {6[__run_num__]:>3}"});
    assert_eq!(lines(&options)[..2], ["Clean test.nop   1", "Failed service.running   2"]);
    options.state_output_profile = false;
    // An invalid format falls back to the table.
    options.set_all(&map! {"state_tabular" => "{9}"});
    assert_eq!(lines(&options)[0], "      test.nop        Clean     Name: a");
}

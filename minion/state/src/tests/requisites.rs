//! Requisites, conditions and retries: one SLS each, with Salt's results.

use brine_value::{Map, Value};

use super::{apply, call};
use crate::testing;

const REQUISITES: &str = "
chg: test.succeed_with_changes
same: test.succeed_without_changes
bad: test.fail_without_changes
badchg: test.fail_with_changes
require_good: {test.nop: [{require: [{test: same}, {test: chg}]}]}
require_bad: {test.nop: [{require: [{test: same}, {test: bad}]}]}
require_chain: {test.nop: [{require: [{test: require_bad}]}]}
require_any: {test.nop: [{require_any: [{test: same}, {test: bad}]}]}
require_any_bad: {test.nop: [{require_any: [{test: bad}]}]}
watch_changed: {test.nop: [{watch: [{test: chg}]}]}
watch_same: {test.nop: [{watch: [{test: same}]}]}
watch_bad: {test.nop: [{watch: [{test: badchg}]}]}
watch_own_changes: {test.succeed_with_changes: [{watch: [{test: chg}]}]}
watch_own_failure: {test.fail_without_changes: [{watch: [{test: chg}]}]}
watch_any: {test.nop: [{watch_any: [{test: bad}, {test: chg}]}]}
watch_and_require: {test.nop: [{watch: [{test: chg}]}, {require: [{test: bad}]}]}
onchanges: {test.nop: [{onchanges: [{test: chg}, {test: same}]}]}
onchanges_same: {test.nop: [{onchanges: [{test: same}]}]}
onchanges_bad: {test.nop: [{onchanges: [{test: badchg}]}]}
onchanges_any: {test.nop: [{onchanges_any: [{test: bad}, {test: chg}]}]}
onfail: {test.nop: [{onfail: [{test: same}, {test: bad}]}]}
onfail_good: {test.nop: [{onfail: [{test: same}]}]}
onfail_any: {test.nop: [{onfail_any: [{test: same}, {test: bad}]}]}
onfail_all: {test.nop: [{onfail_all: [{test: bad}, {test: badchg}]}]}
onfail_all_not: {test.nop: [{onfail_all: [{test: bad}, {test: same}]}]}
onfail_not_run: {test.nop: [{onfail: [{test: require_bad}]}]}
onchanges_and_onfail: {test.nop: [{onchanges: [{test: chg}]}, {onfail: [{test: same}]}]}
require_not_run: {test.nop: [{require: [{test: onchanges_same}]}]}
";

#[test]
fn every_requisite_is_evaluated_as_in_salt() {
    insta::assert_snapshot!(apply("requisites", REQUISITES, false), @r###"
    0 chg True changed: Success!
    1 same True -: Success!
    2 bad False -: Failure!
    3 badchg False changed: Failure!
    4 require_good True -: Success!
    5 require_bad False - (not run): One or more requisite failed: requisites.bad
    6 require_chain False - (not run): One or more requisite failed: requisites.require_bad
    7 require_any True -: Success!
    8 require_any_bad False - (not run): One or more requisite failed: requisites.bad
    10 watch_changed True changed: Watch statement fired.
    11 watch_same True -: Success!
    12 watch_bad False - (not run): One or more requisite failed: requisites.badchg
    13 watch_own_changes True changed: Success!
    15 watch_own_failure True changed: Watch statement fired.
    17 watch_any True changed: Watch statement fired.
    18 watch_and_require False - (not run): One or more requisite failed: requisites.bad
    19 onchanges True -: Success!
    20 onchanges_same True - (not run): State was not run because none of the onchanges reqs changed
    21 onchanges_bad True - (not run): State was not run because none of the onchanges reqs changed
    22 onchanges_any True -: Success!
    23 onfail True -: Success!
    24 onfail_good True - (not run): State was not run because onfail req did not change
    25 onfail_any True -: Success!
    26 onfail_all True -: Success!
    27 onfail_all_not True - (not run): State was not run because onfail req did not change
    28 onfail_not_run True -: Success!
    29 onchanges_and_onfail True - (not run): State was not run because onfail req did not change
    30 require_not_run True -: Success!
    retcode 2
    "###);
}

#[test]
fn every_requisite_is_evaluated_as_in_salt_in_test_mode() {
    insta::assert_snapshot!(apply("requisites", REQUISITES, true), @r###"
    0 chg None changed: If we weren't testing, this would be successful with changes
    1 same True -: Success!
    2 bad False -: If we weren't testing, this would be a failure!
    3 badchg None changed: If we weren't testing, this would be failed with changes
    4 require_good True -: Success!
    5 require_bad False - (not run): One or more requisite failed: requisites.bad
    6 require_chain False - (not run): One or more requisite failed: requisites.require_bad
    7 require_any True -: Success!
    8 require_any_bad False - (not run): One or more requisite failed: requisites.bad
    10 watch_changed True changed: Watch statement fired.
    11 watch_same True -: Success!
    13 watch_bad True changed: Watch statement fired.
    14 watch_own_changes None changed: If we weren't testing, this would be successful with changes
    16 watch_own_failure True changed: Watch statement fired.
    18 watch_any True changed: Watch statement fired.
    19 watch_and_require False - (not run): One or more requisite failed: requisites.bad
    20 onchanges True -: Success!
    21 onchanges_same True - (not run): State was not run because none of the onchanges reqs changed
    22 onchanges_bad True -: Success!
    23 onchanges_any True -: Success!
    24 onfail True -: Success!
    25 onfail_good True - (not run): State was not run because onfail req did not change
    26 onfail_any True -: Success!
    27 onfail_all True -: Success!
    28 onfail_all_not True - (not run): State was not run because onfail req did not change
    29 onfail_not_run True -: Success!
    30 onchanges_and_onfail True - (not run): State was not run because onfail req did not change
    31 require_not_run True -: Success!
    retcode 2
    "###);
}

const PREREQ: &str = "
a: {test.succeed_with_changes: [{prereq: [{test: b}]}]}
b: {test.succeed_with_changes: [{prereq: [{test: c}]}]}
c: {test.succeed_with_changes: [{require: [{test: d}]}]}
d: test.nop
nothing: {test.succeed_with_changes: [{prereq: [{test: d}]}]}
unmet: {test.succeed_with_changes: [{prereq: [{test: f}]}]}
f: {test.succeed_with_changes: [{require: [{test: g}]}]}
g: test.fail_without_changes
one_of_two: {test.succeed_with_changes: [{prereq: [{test: d}, {test: l}]}]}
l: test.succeed_with_changes
failing: {test.fail_with_changes: [{prereq: [{test: q}]}]}
q: {test.succeed_with_changes: [{require: [{test: d}]}]}
r: {test.nop: [{require: [{test: q}]}]}
";

#[test]
fn prereqs_dry_run_their_targets_as_in_salt() {
    insta::assert_snapshot!(apply("prereq", PREREQ, false), @r###"
    0 nothing True - (not run): No changes detected
    1 g False -: Failure!
    2 f False - (not run): One or more requisite failed: prereq.g
    3 unmet False - (not run): One or more requisite failed: prereq.f
    4 one_of_two True changed: Success!
    5 d True -: Success!
    6 a True changed: Success!
    7 b True changed: Success!
    8 c True changed: Success!
    9 l True changed: Success!
    10 failing False changed: Failure!
    11 q None -: If we weren't testing, this would be successful with changes
    12 r True -: Success!
    retcode 2
    "###);
}

#[test]
fn prereqs_dry_run_their_targets_as_in_salt_in_test_mode() {
    insta::assert_snapshot!(apply("prereq", PREREQ, true), @r###"
    0 nothing True - (not run): No changes detected
    1 g False -: If we weren't testing, this would be a failure!
    2 f False - (not run): One or more requisite failed: prereq.g
    3 unmet False - (not run): One or more requisite failed: prereq.f
    4 one_of_two None changed: If we weren't testing, this would be successful with changes
    5 d True -: Success!
    6 a None changed: If we weren't testing, this would be successful with changes
    7 b None changed: If we weren't testing, this would be successful with changes
    8 c None changed: If we weren't testing, this would be successful with changes
    9 l None changed: If we weren't testing, this would be successful with changes
    10 failing None changed: If we weren't testing, this would be failed with changes
    11 q None changed: If we weren't testing, this would be successful with changes
    12 r True -: Success!
    retcode 2
    "###);
}

const LISTEN: &str = "
hears: {test.nop: [{listen: [{test: chg}, {test: bad}]}]}
hears_nobody: {test.nop: [{listen: [{test: nope}]}]}
hears_word: {test.nop: [{listen: [chg, nothing]}]}
told: test.nop
hears_same: {test.nop: [{listen: [{test: told}]}]}
chg: {test.succeed_with_changes: [{listen_in: [{test: told}, {test: zz}]}]}
bad: test.fail_with_changes
";

#[test]
fn listeners_act_at_the_end_as_in_salt() {
    insta::assert_snapshot!(apply("listen", LISTEN, false), @r###"
    0 hears True -: Success!
    1 hears_nobody True -: Success!
    2 hears_word True -: Success!
    3 told True -: Success!
    4 hears_same True -: Success!
    5 chg True changed: Success!
    6 bad False changed: Failure!
    7 listener_hears True changed: Watch statement fired.
    8 listener_hears_word True changed: Watch statement fired.
    9 listener_told True changed: Watch statement fired.
    10 listen_nope False -: Referenced state test: nope does not exist
    11 listen_zz False -: Referenced state test: zz does not exist
    retcode 2
    "###);
}

#[test]
fn listeners_act_at_the_end_as_in_salt_in_test_mode() {
    insta::assert_snapshot!(apply("listen", LISTEN, true), @r###"
    0 hears True -: Success!
    1 hears_nobody True -: Success!
    2 hears_word True -: Success!
    3 told True -: Success!
    4 hears_same True -: Success!
    5 chg None changed: If we weren't testing, this would be successful with changes
    6 bad None changed: If we weren't testing, this would be failed with changes
    7 listener_hears True changed: Watch statement fired.
    8 listener_hears_word True changed: Watch statement fired.
    9 listener_told True changed: Watch statement fired.
    10 listen_nope False -: Referenced state test: nope does not exist
    11 listen_zz False -: Referenced state test: zz does not exist
    retcode 2
    "###);
}

const CONDITIONS: &str = "
onlyif_true: {test.succeed_with_changes: [{onlyif: 'true'}]}
onlyif_false: {test.succeed_with_changes: [{onlyif: ['true', 'false']}]}
onlyif_function: {test.succeed_with_changes: [{onlyif: [{fun: test.false}]}]}
onlyif_path: {test.nop: [{onlyif: [{fun: test.echo, args: [{a: {b: 1}}], get_return: 'a:b'}]}]}
onlyif_no_function: {test.nop: [{onlyif: [{foo: bar}]}]}
unless_all: {test.nop: [{unless: ['true', 'true']}]}
unless_one: {test.nop: [{unless: ['true', 'false']}]}
unless_retcode: {test.nop: [{unless: [{fun: test.retcode, code: 3}]}]}
both: {test.nop: [{onlyif: 'true'}, {unless: 'true'}, {creates: /nope}]}
creates: {test.nop: [{creates: /etc}]}
creates_some: {test.nop: [{creates: [/etc, /nope]}]}
command: {cmd.run: [{name: 'true'}, {unless: 'true'}, {onlyif: 'true'}]}
check: {test.fail_without_changes: [{check_cmd: ['true']}]}
check_fails: {test.nop: [{check_cmd: ['true', 'false']}]}
check_skipped: {test.nop: [{onlyif: 'false'}, {check_cmd: ['true']}]}
skipped_watch: {test.nop: [{onlyif: 'false'}, {watch: [{test: onlyif_true}]}]}
";

#[test]
fn conditions_skip_states_as_in_salt() {
    insta::assert_snapshot!(apply("conditions", CONDITIONS, false), @r###"
    0 onlyif_true True changed: Success!
    1 onlyif_false True -: onlyif condition is false
    2 onlyif_function True -: onlyif condition is false
    3 onlyif_path True -: Success!
    4 onlyif_no_function True -: Success!
    5 unless_all True -: unless condition is true
    6 unless_one True -: Success!
    7 unless_retcode True -: Success!
    8 both True -: onlyif condition is true / unless condition is true / Creates files not found
    9 creates True -: /etc exists
    10 creates_some True -: Success!
    11 command True -: onlyif condition is true / unless condition is true
    12 check True -: check_cmd determined the state succeeded
    13 check_fails False -: check_cmd determined the state failed
    14 check_skipped True -: check_cmd determined the state succeeded
    15 skipped_watch True -: onlyif condition is false
    retcode 2
    "###);
}

#[test]
fn conditions_skip_states_as_in_salt_in_test_mode() {
    insta::assert_snapshot!(apply("conditions", CONDITIONS, true), @r###"
    0 onlyif_true None changed: If we weren't testing, this would be successful with changes
    1 onlyif_false True -: onlyif condition is false
    2 onlyif_function True -: onlyif condition is false
    3 onlyif_path True -: Success!
    4 onlyif_no_function True -: Success!
    5 unless_all True -: unless condition is true
    6 unless_one True -: Success!
    7 unless_retcode True -: Success!
    8 both True -: onlyif condition is true / unless condition is true / Creates files not found
    9 creates True -: /etc exists
    10 creates_some True -: Success!
    11 command True -: onlyif condition is true / unless condition is true
    12 check True -: check_cmd determined the state succeeded
    13 check_fails False -: check_cmd determined the state failed
    14 check_skipped True -: check_cmd determined the state succeeded
    15 skipped_watch True -: onlyif condition is false
    retcode 2
    "###);
}

#[test]
fn slots_fill_the_variables_of_templates() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let sls = format!(
        "{}: {{file.managed: [{{contents: '{{% raw %}}{{{{ v }}}}{{% endraw %}}'}}, {{template: jinja}}, \
         {{context: {{v: '__slot__:salt:test.echo(x)'}}}}]}}\n",
        path.display()
    );
    apply("slots", &sls, false);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "x\n");
}

const GLOBALS: &str = "
retried: {test.fail_without_changes: [{retry: {attempts: 3, interval: 0}}]}
retried_until: {test.nop: [{retry: {attempts: 2, interval: 0, until: false}}]}
retried_never: {test.fail_without_changes: [{retry: false}]}
hidden: {test.succeed_with_changes: [{no_log: true}]}
umask: {test.nop: [{umask: zz}]}
number: {test.nop: [{names: [5]}]}
missing: test.nosuch
nowhere: {nosuch.thing: [{require: [{test: retried_until}]}]}
last_one: {test.fail_with_changes: [{failhard: true}]}
never: test.nop
";

#[test]
fn retries_masks_and_faulty_states_are_as_in_salt() {
    insta::assert_snapshot!(apply("globals", GLOBALS, false), @r###"
    2 retried False -: Attempt 1: Returned a result of "False", with the following comment: "Failure!" / Attempt 2: Returned a result of "False", with the following comment: "Failure!" / Failure!
    4 retried_until True -: Attempt 1: Returned a result of "True", with the following comment: "Success!" / Success!
    5 retried_never False -: Failure!
    6 hidden True changed: **********
    7 umask False -: Invalid umask: zz / 
    8 number False -: ID '5' in SLS 'globals' is not formed as a string, but is a int / 
    9 missing False -: State 'test.nosuch' was not found in SLS 'globals' / Reason: 'test.nosuch' is not available. / 
    10 nowhere False -: State 'nosuch.thing' was not found in SLS 'globals' / Reason: 'nosuch.thing' is not available. / 
    11 last_one False changed: Failure!
    retcode 2
    "###);
}

#[test]
fn retries_masks_and_faulty_states_are_as_in_salt_in_test_mode() {
    insta::assert_snapshot!(apply("globals", GLOBALS, true), @r###"
    0 retried False -: If we weren't testing, this would be a failure!  The state would be retried every 0 seconds (with a splay of up to 0 seconds) a maximum of 3 times or until a result of True is returned
    1 retried_until True -: Success!  The state would be retried every 0 seconds (with a splay of up to 0 seconds) a maximum of 2 times or until a result of False is returned
    2 retried_never False -: If we weren't testing, this would be a failure!  The state would be retried every 30 seconds (with a splay of up to 0 seconds) a maximum of 0 times or until a result of True is returned
    3 hidden None changed: **********
    4 umask False -: Invalid umask: zz / 
    5 number False -: ID '5' in SLS 'globals' is not formed as a string, but is a int / 
    6 missing False -: State 'test.nosuch' was not found in SLS 'globals' / Reason: 'test.nosuch' is not available. / 
    7 nowhere False -: State 'nosuch.thing' was not found in SLS 'globals' / Reason: 'nosuch.thing' is not available. / 
    8 last_one None changed: If we weren't testing, this would be failed with changes
    9 never True -: Success!
    retcode 2
    "###);
}

#[test]
fn odd_states_end_as_in_salt() {
    let sls = "a: {test.configurable_test_state: [{result: null}]}\nb: {test.configurable_test_state: [{changes: x}]}\n\
               c: {test.show_notification: []}\nd: {test.nop: [{check_cmd: 5}]}\ne: {test.nop: [{check_cmd: []}]}\n\
               f: {test.nop: [{onlyif: 'false'}]}\n";
    let context = testing::context(&[("t.sls", sls)]);
    let results = call(&context, "state.apply", &["t"], Map::new()).unwrap();
    let report: Vec<_> =
        results.as_map().unwrap().values().map(|one| one.get("result") == Some(&false.into())).collect();
    assert_eq!(report, [true, true, true, true, true, false]);
    let comment = |tag: &str| results.get(tag).and_then(|one| one.get("comment")).map(ToString::to_string);
    assert_eq!(comment("test_|-e_|-e_|-nop").as_deref(), Some("Success!"));
    let skipped = results.get("test_|-f_|-f_|-nop").and_then(Value::as_map).unwrap();
    let keys: Vec<_> = skipped.keys().map(ToString::to_string).collect();
    assert_eq!(keys[..7], ["result", "name", "changes", "comment", "__sls__", "__id__", "skip_watch"]);
}

use brine_config::MinionConfig;
use brine_value::list;

use super::*;
use crate::testing;

#[test]
fn only_keys_of_the_minion_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["minion.pem", "minion.pub", "master.pem"] {
        std::fs::write(directory.path().join(name), "x").unwrap();
    }
    let mut context = testing::context(&[]);
    let config = MinionConfig { pki_dir: directory.path().to_owned(), ..Default::default() };
    Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(config);
    assert_eq!(context.call("saltutil.regen_keys", Args::default()).unwrap(), Value::Nil);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["master.pem"]);
    context.call("saltutil.regen_keys", Args::default()).unwrap();
}

#[test]
fn functions_are_called_for_an_environment() {
    let context = testing::context(&[]);
    let args = Args::positional(["base".into(), "test.echo".into(), 7.into()]);
    assert_eq!(context.call("saltutil.mmodule", args).unwrap(), 7.into());
}

#[test]
fn running_jobs_are_found_and_killed() {
    let context = testing::context(&[]);
    let other = Job::local(&Jid::new(), "test.sleep", &Args::positional([600.into()]));
    let jid = Value::from(other.jid.as_str());
    let other = Arc::new(other);
    context.minion.jobs.lock().insert(other.jid.clone(), Arc::clone(&other));
    let call = |fun: &str, arg: Value| context.call(&format!("saltutil.{fun}"), Args::positional([arg])).unwrap();
    assert_eq!(context.call("saltutil.running", Args::default()).unwrap().as_list().unwrap().len(), 1);
    assert_eq!(call("is_running", "test.*".into()).as_list().unwrap().len(), 1);
    assert_eq!(call("is_running", "state.*".into()), list![]);
    assert_eq!(call("find_job", jid.clone()).get("fun"), Some(&"test.sleep".into()));
    assert_eq!(call("find_job", "20000101000000000000".into()), Value::map());
    assert_eq!(call("term_job", jid), format!("Signal 15 sent to job {} at pid {}", other.jid, other.pid).into());
    assert!(other.cancel.is_cancelled());
    assert_eq!(call("kill_job", "20000101000000000000".into()), "".into());
    let all = context.call("saltutil.kill_all_jobs", Args::default()).unwrap();
    assert_eq!(all, list![format!("Signal 9 sent to job {} at pid {}", other.jid, other.pid)]);
}

use brine_config::MinionConfig;
use brine_context::{MasterEvent, Upstream, UpstreamError};
use brine_value::{list, map};
use parking_lot::Mutex;

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

/// A master that records whether a cached pillar is accepted.
#[derive(Default)]
struct Pillars(Mutex<Vec<&'static str>>);

impl Upstream for Pillars {
    fn has_master(&self) -> bool {
        true
    }

    fn fire_master(&self, _event: MasterEvent) -> Result<(), UpstreamError> {
        Ok(())
    }

    fn pillar(&self, _saltenv: Option<&str>, _pillarenv: Option<&str>, _over: &Map) -> Result<Map, UpstreamError> {
        self.0.lock().push("cached");
        Ok(map! {"fresh" => true})
    }

    fn pillar_with(&self, _external: &Map, _over: &Map) -> Result<Map, UpstreamError> {
        Err(UpstreamError::NoPillar { peer: "this test" })
    }

    fn refreshed_pillar(&self, _saltenv: Option<&str>, _pillarenv: Option<&str>) -> Result<Map, UpstreamError> {
        self.0.lock().push("clean");
        Ok(map! {"fresh" => true})
    }
}

#[test]
fn sync_functions_refresh_the_pillar_unless_refresh_is_false() {
    for (fun, keyword, asked) in [
        ("sync_pillar", map! {}, &["cached"][..]),
        ("sync_pillar", map! {"clean_pillar_cache" => true}, &["clean"]),
        ("sync_pillar", map! {"refresh" => false, "clean_pillar_cache" => true}, &[]),
        ("sync_grains", map! {"clean_pillar_cache" => true}, &["clean"]),
        ("sync_all", map! {}, &["cached"]),
        ("sync_all", map! {"clean_pillar_cache" => true}, &["clean"]),
        ("sync_modules", map! {}, &[]),
        ("sync_tops", map! {}, &[]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let master = Arc::new(Pillars::default());
        let mut minion = testing::minion_with(&[], Arc::clone(&master) as _);
        let (cachedir, file_client) = (directory.path().to_owned(), "local".to_owned());
        Arc::get_mut(&mut minion).unwrap().config =
            Arc::new(MinionConfig { cachedir, file_client, ..Default::default() });
        let context = testing::context_of(minion);
        context.call(&format!("saltutil.{fun}"), Args::keyword(keyword.clone())).unwrap();
        assert_eq!(*master.0.lock(), asked, "{fun} {keyword:?}");
        assert_eq!(context.minion.pillar.read().contains_key(&Value::from("fresh")), !asked.is_empty(), "{fun}");
    }
}

#[test]
fn only_masterless_minions_sync_modules_of_masters() {
    let context = testing::context(&[]);
    for (fun, modules) in
        [("sync_pillar", "Pillar modules"), ("sync_tops", "Master top modules"), ("sync_wrapper", "Wrapper modules")]
    {
        let error = context.call(&format!("saltutil.{fun}"), Args::default()).unwrap_err().to_string();
        assert_eq!(error, format!("ERROR: {modules} can only be synced to masterless minions"), "{fun}");
    }
}

use std::sync::Arc;

use brine_config::MinionConfig;
use brine_function::Args;
use brine_value::map;

use super::*;
use crate::testing;

fn context_in(directory: &Path) -> Context {
    let mut context = testing::context(&[]);
    let config = MinionConfig { cachedir: directory.to_owned(), ..Default::default() };
    Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(config);
    context
}

#[test]
fn the_result_of_revoke_auth_is_whether_the_master_was_reached() {
    // The master of unit tests answers no requests.
    assert_eq!(testing::context(&[]).call("saltutil.revoke_auth", Args::default()), Ok(false.into()));
}

#[test]
fn old_returns_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let context = context_in(directory.path());
    let path = cached_return(&context.minion, "20000101000000000000");
    for (hours, exists) in [(24, true), (0, false)] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        assert_eq!(context.call("saltutil.clear_job_cache", Args::positional([hours.into()])), Ok(true.into()));
        assert_eq!(path.exists(), exists, "{hours}");
    }
}

#[test]
fn clear_cache_keeps_irreplaceable_data() {
    let directory = tempfile::tempdir().unwrap();
    let context = context_in(directory.path());
    for name in [
        "archive_hash/local/a.hash",
        "files/base/a",
        "extrn_files/b",
        "minion_jobs/1/return",
        "returns/1",
        "file_backup/c",
        "proc/1",
    ] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
    }
    std::fs::write(directory.path().join("seen_jobs"), "x").unwrap();
    assert_eq!(context.call("saltutil.clear_cache", Args::default()), Ok(true.into()));
    let mut left: Vec<String> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["file_backup", "proc", "returns", "seen_jobs"]);
    std::fs::write(directory.path().join("files"), "no directory").unwrap();
    assert_eq!(context.call("saltutil.clear_cache", Args::default()), Ok(false.into()));
}

#[test]
fn refreshes_accept_the_arguments_of_salt() {
    let context = testing::context(&[]);
    for (fun, keyword) in [
        ("refresh_pillar", map! {"wait" => true, "timeout" => 10}),
        ("pillar_refresh", map! {"clean_cache" => false}),
        ("refresh_grains", map! {"refresh_pillar" => false}),
        ("refresh_modules", map! {"async" => false}),
        ("refresh_beacons", map! {}),
        ("refresh_matchers", map! {}),
    ] {
        let returned = context.call(&format!("saltutil.{fun}"), Args::keyword(keyword));
        assert_eq!(returned, Ok(true.into()), "{fun}");
    }
    assert_eq!(context.call("saltutil.list_extmods", Args::default()), Ok(Value::map()));
}

use brine_returners::ReturnerError;
use brine_value::{list, map};

use super::*;

const JID: &str = "20261120235852025555";

fn job(fields: Map) -> Load {
    let mut load = map! {"jid" => JID, "fun" => "test.ping", "tgt" => "web1", "tgt_type" => "glob"};
    load.extend(fields);
    Load::from_map(load).unwrap()
}

/// A returner that contains one job.
struct One(Load);

impl Returner for One {
    fn name(&self) -> &'static str {
        "one"
    }

    fn get_jids(&self, _: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        Ok(vec![self.0.clone()])
    }
}

fn matches(search: &Search, job: &Load) -> bool {
    !search.jobs(&One(job.clone()), Some(1)).unwrap().is_empty()
}

#[test]
fn every_filter_of_a_search_must_hold() {
    let search = |metadata: Value, function: Value, target: Value, start: &str, end: &str| {
        Search::new(metadata, &function, &target, &start.into(), &end.into()).unwrap()
    };
    let nil = || Value::Nil;
    let job = job(map! {"metadata" => map! {"a" => 1, "b" => 2}});
    for (is, search) in [
        (true, Search::default()),
        (true, search(map! {"a" => 1, "c" => 3}.into(), nil(), nil(), "", "")),
        (false, search(map! {"a" => 2}.into(), nil(), nil(), "", "")),
        (false, search("a".into(), nil(), nil(), "", "")),
        (true, search(nil(), "pkg.*, test.*".into(), list!["db*", "web*"], "", "")),
        (false, search(nil(), "pkg.*".into(), nil(), "", "")),
        (false, search(nil(), nil(), "db*".into(), "", "")),
        (true, search(nil(), nil(), nil(), "2026, Nov 20 23:58", "2026-11-21")),
        (false, search(nil(), nil(), nil(), "2026-11-21", "")),
        (false, search(nil(), nil(), nil(), "", "2026-11-20T23:58:52")),
    ] {
        assert_eq!(matches(&search, &job), is);
    }
    let of_several = Load::from_map(map! {"jid" => JID, "fun" => list!["test.ping", "cmd.run"]}).unwrap();
    assert!(matches(&search(nil(), "cmd.*".into(), nil(), "", ""), &of_several));
    assert!(time(&"yesterday".into()).is_err());
}

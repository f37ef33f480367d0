//! Runner functions, which `salt-run` calls: one file for each Salt module, its functions declared by `#[function]`.
//!
//! They run in the master, which owns the job cache and the bus. Like execution functions they are synchronous, and
//! each runs on its own thread.

mod auth;
mod backup;
mod batch;
mod brine;
mod cache;
mod config;
mod doc;
mod error;
mod event;
mod event_bus;
mod fileserver;
mod fleet;
mod git_pillar;
mod http;
mod jobs;
mod manage;
mod matching;
mod metrics;
mod mine;
mod network;
mod pillar;
mod plan;
mod queue;
mod reactor;
mod reactor_replay;
mod reactor_views;
mod returner;
mod salt;
mod saltutil;
mod sdb;
mod ssh;
mod state;
mod survey;
mod test;

use brine_function::Functions;
pub use brine_master_calls::RunnerContext;
use brine_value::Map;

/// All runner functions: one line for each module.
pub static MODULES: &[&Functions<RunnerContext>] = &[
    &auth::FUNCTIONS,
    &backup::FUNCTIONS,
    &batch::FUNCTIONS,
    &brine::FUNCTIONS,
    &cache::FUNCTIONS,
    &config::FUNCTIONS,
    &doc::FUNCTIONS,
    &error::FUNCTIONS,
    &event::FUNCTIONS,
    &event_bus::FUNCTIONS,
    &fileserver::FUNCTIONS,
    &fleet::FUNCTIONS,
    &git_pillar::FUNCTIONS,
    &http::FUNCTIONS,
    &jobs::FUNCTIONS,
    &manage::FUNCTIONS,
    &manage::presence::FUNCTIONS,
    &matching::FUNCTIONS,
    &metrics::FUNCTIONS,
    &mine::FUNCTIONS,
    &network::FUNCTIONS,
    &pillar::FUNCTIONS,
    &plan::FUNCTIONS,
    &queue::FUNCTIONS,
    &reactor::FUNCTIONS,
    &reactor_replay::FUNCTIONS,
    &reactor_views::FUNCTIONS,
    &returner::FUNCTIONS,
    &salt::FUNCTIONS,
    &saltutil::FUNCTIONS,
    &sdb::FUNCTIONS,
    &ssh::FUNCTIONS,
    &state::FUNCTIONS,
    &survey::FUNCTIONS,
    &test::FUNCTIONS,
];

/// Removes the keyword arguments that the publisher adds.
pub fn public(mut kwargs: Map) -> Map {
    kwargs.retain(|name, _| name.as_str().is_none_or(|name| !name.starts_with("__")));
    kwargs
}

#[cfg(test)]
mod tests {
    use brine_function::Registry;

    use super::MODULES;
    use crate::wheel;

    #[test]
    fn functions_that_return_secrets_declare_it() {
        let (runners, wheels) = (Registry::new(MODULES), Registry::new(wheel::MODULES));
        let secret: Vec<String> =
            runners.iter().filter(|one| one.is_secret).map(brine_function::Function::full_name).collect();
        let expected = [
            "cache.fetch",
            "cache.pillar",
            "config.get",
            "pillar.show_pillar",
            "pillar.show_pillar_cache",
            "sdb.get",
            "sdb.get_or_set_hash",
            "test.get_opts",
        ];
        assert_eq!(secret, expected);
        let secret: Vec<String> =
            wheels.iter().filter(|one| one.is_secret).map(brine_function::Function::full_name).collect();
        assert_eq!(secret, ["config.values", "key.gen", "key.gen_accept", "pillar_roots.read"]);
        // Further functions whose names suggest one.
        let all = runners.iter().map(|one| (one.full_name(), one.is_secret));
        let all = all.chain(wheels.iter().map(|one| (one.full_name(), one.is_secret)));
        for (name, is_secret) in all {
            let suggests =
                ["gen", "secret", "password"].iter().any(|word| name.split(['.', '_']).any(|part| part == *word));
            assert!(is_secret || !suggests, "{name} returns a secret, but does not declare it");
        }
    }
}

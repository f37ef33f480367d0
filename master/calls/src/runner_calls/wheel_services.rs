//! The services of a running master for wheel functions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_config::Roots;
use brine_function::{Args, CallResult};
use brine_master_custom::Kind;
use brine_value::Map;

use super::custom::CustomCaller;
use super::{Caller, RunnerCalls, WheelHost};

/// The services of wheel functions.
pub(crate) struct WheelServices {
    pub calls: Arc<RunnerCalls>,
    pub caller: Caller,
}

impl WheelHost for WheelServices {
    fn fire(&self, tag: &str, body: &Map) {
        let mut body = body.clone();
        self.caller.mark(&mut body);
        self.caller.thread.wait(self.calls.services.events.fire(tag, &body));
    }

    fn rotate_key(&self) {
        if self.calls.services.config.rotate_aes_key {
            self.caller.thread.wait(self.calls.services.jobs.stream.rotate_keys());
        }
    }

    fn actor(&self) -> String {
        match (self.caller.cause.get("_cause"), self.caller.cause.get("_sls")) {
            (Some(event), Some(sls)) => format!("reaction of {sls} to event {event}"),
            _ => format!("wheel call of {}", self.caller.user),
        }
    }

    fn set_retcode(&self, retcode: i64) {
        self.caller.retcode.store(retcode, Ordering::Relaxed);
    }

    fn options(&self) -> Map {
        let mut options = self.calls.services.config.opts.clone();
        options.insert("id".into(), self.calls.services.id.as_str().into());
        options
    }

    fn file_roots(&self) -> Roots {
        self.calls.services.config.file_roots.clone()
    }

    fn pillar_roots(&self) -> Roots {
        self.calls.services.config.pillar_roots.clone()
    }

    fn config_dir(&self) -> Option<PathBuf> {
        Some(self.calls.services.config.config_dir.clone())
    }

    fn custom(&self, function: &str, args: Args) -> CallResult {
        let caller = CustomCaller { calls: &self.calls, caller: &self.caller };
        self.calls.custom.call(Kind::Wheel, function, args, &caller)
    }

    fn connected(&self) -> Vec<String> {
        self.calls.services.facts.present().iter().map(ToString::to_string).collect()
    }
}

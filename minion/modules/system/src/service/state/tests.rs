//! Tests of states with a service in memory.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use brine_context::Context;

use super::*;
use crate::testing;

/// A service in memory, named `web`.
struct Fake {
    runs: AtomicBool,
    enabled: AtomicBool,
    masked: AtomicBool,
    obeys: bool,
}

impl Services for Fake {
    fn can_mask(&self) -> bool {
        true
    }

    fn is_available(&self, _context: &Context, name: &str) -> Result<bool, CallError> {
        Ok(name == "web")
    }

    fn is_running(&self, _context: &Context, _name: &str, _sig: Option<&str>) -> Result<bool, CallError> {
        Ok(self.runs.load(Relaxed))
    }

    fn is_enabled(&self, _context: &Context, _name: &str) -> Result<bool, CallError> {
        Ok(self.enabled.load(Relaxed))
    }

    fn is_masked(&self, _context: &Context, _name: &str, _runtime: bool) -> Result<bool, CallError> {
        Ok(self.masked.load(Relaxed))
    }

    fn set_mask(&self, _context: &Context, _name: &str, masked: bool, _runtime: bool) -> Result<(), CallError> {
        self.masked.store(if self.obeys { masked } else { self.masked.load(Relaxed) }, Relaxed);
        Ok(())
    }

    fn act(&self, _context: &Context, action: &str, _name: &str, _how: ServiceOptions) -> Result<bool, CallError> {
        match action {
            _ if !self.obeys => {}
            "start" | "restart" => self.runs.store(true, Relaxed),
            "stop" => self.runs.store(false, Relaxed),
            "enable" => self.enabled.store(true, Relaxed),
            "disable" => self.enabled.store(false, Relaxed),
            _ => {}
        }
        Ok(self.obeys)
    }

    fn is_disabled(&self, _context: &Context, _name: &str) -> Result<bool, CallError> {
        Ok(!self.enabled.load(Relaxed))
    }

    fn all(&self, _context: &Context) -> Result<Vec<String>, CallError> {
        Ok(vec!["web".into()])
    }

    fn enabled(&self, context: &Context) -> Result<Vec<String>, CallError> {
        Ok(if self.enabled.load(Relaxed) { self.all(context)? } else { Vec::new() })
    }

    fn disabled(&self, context: &Context) -> Result<Vec<String>, CallError> {
        Ok(if self.enabled.load(Relaxed) { Vec::new() } else { self.all(context)? })
    }
}

fn desired(runs: bool, enable: Option<bool>) -> Desired {
    Desired { runs, enable, sig: None, delay: Value::Nil, how: ServiceOptions::default() }
}

fn watch(sfun: &str, reload: bool) -> Watched {
    Watched { sfun: sfun.into(), sig: None, reload, force: false, delay: Value::Nil, how: ServiceOptions::default() }
}

fn results(test: bool, obeys: bool) -> String {
    let context = testing::state_context(test, &[]);
    let web = || Fake {
        runs: AtomicBool::new(false),
        enabled: AtomicBool::new(false),
        masked: AtomicBool::new(false),
        obeys,
    };
    let up = || Fake { runs: AtomicBool::new(true), ..web() };
    let states = [
        ensure_state(&web(), &context, "nosuch", &desired(true, None)),
        ensure_state(&web(), &context, "nosuch", &desired(false, None)),
        ensure_state(&web(), &context, "web", &desired(true, None)),
        ensure_state(&web(), &context, "web", &desired(true, Some(true))),
        ensure_state(&up(), &context, "web", &desired(true, None)),
        ensure_state(&up(), &context, "web", &desired(true, Some(true))),
        ensure_state(&up(), &context, "web", &desired(false, None)),
        ensure_state(&up(), &context, "web", &desired(false, Some(false))),
        ensure_state(&web(), &context, "web", &desired(false, None)),
        boot::state(&web(), &context, "web", true, ServiceOptions::default()),
        boot::state(&web(), &context, "web", false, ServiceOptions::default()),
        boot::state(&web(), &context, "nosuch", true, ServiceOptions::default()),
        boot::state(&web(), &context, "nosuch", false, ServiceOptions::default()),
        watched(&up(), &context, "web", &watch("running", false)),
        watched(&up(), &context, "web", &watch("running", true)),
        watched(&web(), &context, "web", &watch("running", false)),
        watched(&up(), &context, "web", &watch("dead", false)),
        watched(&web(), &context, "web", &watch("enabled", false)),
        masks::state(&web(), &context, "web", true, false),
        masks::state(&web(), &context, "web", false, true),
    ];
    let report = states.into_iter().map(|result| {
        let outcome = result.unwrap();
        format!(
            "{}: {} | {}",
            Value::from(outcome.result),
            outcome.comment,
            brine_value::json::to_json(&outcome.changes.into())
        )
    });
    report.collect::<Vec<_>>().join("\n")
}

#[test]
fn results_of_services_match_salt() {
    insta::assert_snapshot!(results(false, true), @r#"
    False: The named service nosuch is not available | {}
    True: The named service nosuch is not available | {}
    True: Started service web | {"web": true}
    True: Service web has been enabled, and is running | {"web": true}
    True: The service web is already running | {}
    True: Service web has been enabled, and is in the desired state | {"web": true}
    True: Service web was killed | {"web": false}
    True: Service web is already disabled, and is dead | {"web": false}
    True: The service web is already dead | {}
    True: Service web has been enabled, and is in the desired state | {"web": true}
    True: Service web is already disabled, and is in the desired state | {}
    False: The named service nosuch is not available | {}
    True: The named service nosuch is not available | {}
    True: Service restarted | {"web": true}
    True: Service reloaded | {"web": true}
    True: Service started | {"web": true}
    True: Service stopped | {"web": true}
    False: Unable to trigger watch for service.enabled | {}
    True: Service web was masked | {"masked": {"old": false, "new": true}}
    True: Service web was already runtime unmasked | {}
    "#);
}

#[test]
fn nothing_changes_in_test_mode() {
    insta::assert_snapshot!(results(true, true), @r#"
    None: Service nosuch not present; if created in this state run, it would have been started | {}
    None: Service nosuch not present; if created in this state run, it would have been stopped | {}
    None: Service web is set to start | {}
    None: Service web is set to start | {}
    True: The service web is already running | {}
    None: Service web set to be enabled | {}
    None: Service web is set to be killed | {}
    None: Service web is set to be killed | {}
    True: The service web is already dead | {}
    None: Service web set to be enabled | {}
    True: Service web is already disabled, and is in the desired state | {}
    None: Service nosuch not present; if created in this state run, it would have been enabled | {}
    True: The named service nosuch is not available | {}
    None: Service is set to be restarted | {}
    None: Service is set to be reloaded | {}
    None: Service is set to be started | {}
    None: Service is set to be stopped | {}
    False: Unable to trigger watch for service.enabled | {}
    None: Service web would be masked | {"masked": {"old": false, "new": true}}
    True: Service web was already runtime unmasked | {}
    "#);
}

#[test]
fn services_that_do_not_change_are_failures() {
    insta::assert_snapshot!(results(false, false), @r#"
    False: The named service nosuch is not available | {}
    True: The named service nosuch is not available | {}
    False: Service web failed to start | {}
    False: Failed when setting service web to start at boot, and the service is dead | {}
    True: The service web is already running | {}
    False: Failed when setting service web to start at boot, but the service was already running | {}
    False: Service web failed to die | {}
    False: Service web is already disabled, and is running | {}
    True: The service web is already dead | {}
    False: Failed when setting service web to start at boot, but the service was already running | {}
    True: Service web is already disabled, and is in the desired state | {}
    False: The named service nosuch is not available | {}
    True: The named service nosuch is not available | {}
    False: Failed to restart the service | {"web": false}
    False: Failed to reload the service | {"web": false}
    False: Failed to start the service | {"web": false}
    False: Failed to stop the service | {"web": false}
    False: Unable to trigger watch for service.enabled | {}
    True: Failed to mask service web | {}
    True: Service web was already runtime unmasked | {}
    "#);
}

//! Custom runner and wheel functions: they overlay the built-in ones, and can call the functions of the master.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use brine_function::{Args, Binder, CallResult, Function, Overlay};
use brine_master_custom::Kind;
use brine_master_custom::{self as custom, MasterCalls};
use brine_python::Functions;
use brine_value::{Map, map};

use super::{Caller, RunnerCalls, RunnerContext, WheelContext};

/// The functions of custom modules, which overlay those of a registry.
struct Custom<C: 'static> {
    calls: Weak<RunnerCalls>,
    functions: Functions<C>,
    /// The functions of the package `salt`.
    package: Functions<C>,
}

impl<C> Overlay<C> for Custom<C> {
    fn fallback(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        let calls = self.calls.upgrade();
        calls.map_or_else(Vec::new, |calls| calls.custom.package(&self.package, module))
    }

    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        let calls = self.calls.upgrade();
        calls.map_or_else(Vec::new, |calls| calls.custom.functions(&self.functions, module))
    }
}

/// Returns the overlay of custom runner functions.
pub fn runners(calls: &Weak<RunnerCalls>) -> impl Overlay<RunnerContext> + use<> {
    let call = |context: &RunnerContext, bound: &mut Binder| {
        let (calls, caller, args) = (&context.calls, &context.caller, args(bound));
        calls.custom.call(Kind::Runner, bound.function(), args, &CustomCaller { calls, caller })
    };
    let functions = || Functions::new(custom::directory(Kind::Runner), call);
    Custom { calls: Weak::clone(calls), functions: functions(), package: functions() }
}

/// Returns the overlay of custom wheel functions.
pub fn wheels(calls: &Weak<RunnerCalls>) -> impl Overlay<WheelContext> + use<> {
    let call = |context: &WheelContext, bound: &mut Binder| {
        let args = args(bound);
        context.host.custom(bound.function(), args)
    };
    let functions = || Functions::new(custom::directory(Kind::Wheel), call);
    Custom { calls: Weak::clone(calls), functions: functions(), package: functions() }
}

fn args(bound: &mut Binder) -> Args {
    Args { positional: bound.rest(), keyword: bound.keywords() }
}

/// The master's functions for one running function of a custom module.
pub struct CustomCaller<'a> {
    /// The functions.
    pub calls: &'a Arc<RunnerCalls>,
    /// The caller of the custom function.
    pub caller: &'a Caller,
}

impl MasterCalls for CustomCaller<'_> {
    fn call(&self, kind: Kind, function: &str, args: Args) -> CallResult {
        self.calls.call_function(kind, function, args, self.caller.clone())
    }

    fn load(&self, kind: Kind) -> Map {
        map! {"jid" => &self.caller.jid, "user" => self.caller.user.as_str(), "tag" => kind.tag(&self.caller.jid)}
    }

    fn set_retcode(&self, retcode: i64) {
        self.caller.retcode.store(retcode, Ordering::Relaxed);
    }
}

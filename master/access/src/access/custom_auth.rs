//! Custom authentication modules (`_auth`), called on the master's host.

use std::sync::Arc;

use brine_auth::CustomAuthModules;
use brine_config::MasterConfig;
use brine_function::{Args, CallError};
use brine_jinja::CustomCall;
use brine_master_custom as custom;
use brine_master_custom::HostFunctions;
use brine_value::{Map, Value};

/// The module type, as in `_auth`.
pub const KIND: &str = "auth";

/// The custom authentication modules of a master.
pub(super) struct CustomAuth {
    pub config: Arc<MasterConfig>,
    pub host: Arc<dyn HostFunctions>,
}

impl CustomAuthModules for CustomAuth {
    fn has_file(&self, module: &str) -> bool {
        custom::has_file(&self.config, KIND, module)
    }

    fn may_have(&self, module: &str) -> bool {
        custom::may_have(&self.config, KIND, module)
    }

    fn call(&self, function: &str, arguments: Map) -> Option<Result<Value, CallError>> {
        let args = || Args::keyword(arguments.clone());
        self.host.functions(None).custom(&CustomCall { kind: KIND, function, args: &args, opts: Map::new() })
    }
}

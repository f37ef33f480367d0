//! Custom runner and wheel modules in Python: their files, and calls of their functions with access to the master.
//!
//! They take precedence over built-in functions of the same names. Files are checked at most once per second, so that a
//! change in `runner_dirs` applies to the next call.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::SocketNames;
use brine_config::{MasterConfig, master_template_opts};
use brine_engines::Engine;
use brine_function::{Args, CallError, CallResult, Function};
use brine_python::{Call, Described, Functions, Library, PythonError, Services, Settings};
use brine_value::{Map, Value};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::host_functions::HostFunctions;
use crate::kind::Kind;

/// The module types whose functions are called by name.
const CALLED: &[&str] = &["runners", "wheel", "fileserver", "tokens", "cache"];

/// The functions of the master, for a running function of a custom module.
pub trait MasterCalls {
    /// Calls a runner or wheel function as the same caller.
    fn call(&self, kind: Kind, function: &str, args: Args) -> CallResult;

    /// Returns the load of the call: its jid, user and tag.
    fn load(&self, kind: Kind) -> Map;

    /// Sets the retcode of the call.
    fn set_retcode(&self, retcode: i64);
}

/// The full names of the master's own functions.
#[derive(Default)]
pub struct BuiltIn {
    /// Runner functions, such as `jobs.active`.
    pub runners: Vec<String>,
    /// Wheel functions, such as `key.accept`.
    pub wheels: Vec<String>,
}

/// The custom modules of a master.
pub struct CustomModules {
    library: Library,
    built_in: BuiltIn,
    opts: Arc<Map>,
    host: Option<Arc<dyn HostFunctions>>,
    /// Held while files of custom file server backends are copied.
    pub updating_files: Mutex<()>,
}

impl CustomModules {
    /// Creates the custom modules of a master. `built_in` are the functions that they can call. Reads nothing yet.
    pub fn new(config: &MasterConfig, host: Option<Arc<dyn HostFunctions>>, built_in: BuiltIn) -> Self {
        let settings = Settings::read(&config.python_host).unwrap_or_else(|error| {
            tracing::error!("{error}; using python3");
            Settings::default()
        });
        let settings = Settings { fallback: config.python_fallback, ..settings };
        let synced = config.extension_modules();
        let mut directories = Vec::new();
        let kinds = [
            ("runners", &config.runner_dirs[..]),
            ("wheel", &[]),
            ("engines", &config.engines_dirs),
            ("fileserver", &[]),
            ("tokens", &[]),
            ("cache", &[]),
            ("utils", &config.utils_dirs),
        ];
        for (kind, more) in kinds {
            directories.extend(Library::directories(kind, &config.module_dirs, more, &synced));
        }
        let opts = master_template_opts(config);
        let events = config.sock_dir.join(SocketNames::master().publish);
        let library = Library::new(settings, directories, CALLED).with_events(events);
        CustomModules { library, built_in, opts: Arc::new(opts), host, updating_files: Mutex::default() }
    }

    /// Reads the files again.
    pub fn refresh(&self) {
        self.library.refresh();
    }

    /// Whether a file may provide functions of a module. Reads files, but does not start Python.
    pub fn may_have(&self, kind: Kind, module: &str) -> bool {
        self.library.may_have(directory(kind), Some(module))
    }

    /// Returns the functions of custom modules of a type, or of one module.
    pub fn functions<C>(&self, functions: &Functions<C>, module: Option<&str>) -> Vec<&'static Function<C>> {
        self.library.refresh_if_changed();
        if !self.library.may_have(functions.kind(), module) {
            return Vec::new();
        }
        self.described().map_or_else(Vec::new, |described| functions.of(&described, module))
    }

    /// Returns the runner functions of the package `salt`, if `python_fallback` is set.
    pub fn package<C>(&self, functions: &Functions<C>, module: Option<&str>) -> Vec<&'static Function<C>> {
        let kind = functions.kind();
        let ask = |call: Call<'_>| self.ask(&Running { custom: self, caller: None, stopping: None }, call);
        let described = if kind == "runners" { self.library.fallback(kind, module, ask) } else { None };
        described.map_or_else(Vec::new, |described| functions.of(&described, module))
    }

    fn described(&self) -> Option<Arc<Described>> {
        self.library.described(|call| self.ask(&Running { custom: self, caller: None, stopping: None }, call))
    }

    /// Whether a custom module has the name of an engine. Does not start Python.
    pub fn has_engine(&self, module: &str) -> bool {
        self.library.refresh_if_changed();
        self.library.has_file("engines", module)
    }

    /// Calls the function `start` of an engine in a separate process, until `stopping`.
    ///
    /// # Errors
    /// The reason why the engine has ended.
    pub fn run_engine(
        &self,
        engine: &Engine,
        caller: &dyn MasterCalls,
        stopping: &CancellationToken,
    ) -> Result<Value, PythonError> {
        let function = format!("{}.start", engine.module);
        let args = Args { keyword: engine.kwargs.clone(), ..Args::default() };
        let call = Call { kind: "engines", function: &function, args, data: self.data(), ..Call::default() };
        let running = Running { custom: self, caller: Some(caller), stopping: Some(stopping) };
        self.library.call_alone(call, || self.names(), &running)
    }

    /// Calls a function of a custom module.
    pub fn call(&self, kind: Kind, function: &str, args: Args, caller: &dyn MasterCalls) -> CallResult {
        let data = vec![("load", Arc::new(caller.load(kind)))];
        let call = Call { kind: directory(kind), function, args, data, ..Call::default() };
        self.ask(&Running { custom: self, caller: Some(caller), stopping: None }, call)
            .map_err(|error| error.of_call(function))
    }

    /// Returns the options of the master, as modules see them.
    pub fn opts(&self) -> &Arc<Map> {
        &self.opts
    }

    /// Calls a function of another module type, such as `fileserver`, within `timeout`. Returns `None` if
    /// neither a file nor, with `python_fallback`, the package `salt` provides it. Blocks.
    pub fn call_other(&self, kind: &'static str, function: &str, args: Args, timeout: Duration) -> Option<CallResult> {
        let running = Running { custom: self, caller: None, stopping: None };
        self.library.refresh_if_changed();
        let describe = |call: Call<'_>| self.ask(&running, call);
        let has = self.library.has(kind, function, describe);
        if !has && !self.library.is_in_package(kind, function, describe) {
            let module = function.split('.').next().unwrap_or_default();
            let failure = self.library.failure(kind, module, describe);
            return failure.map(|failure| Err(CallError::Execution(failure)));
        }
        let deadline = Some(Instant::now() + timeout);
        let called = self.ask(&running, Call { kind, function, args, deadline, ..Call::default() });
        Some(called.map_err(|error| error.of_call(function)))
    }

    fn ask(&self, running: &Running<'_>, mut call: Call<'_>) -> Result<Value, PythonError> {
        call.data.extend(self.data());
        self.library.call(call, || self.names(), running)
    }

    fn data(&self) -> Vec<(&'static str, Arc<Map>)> {
        let grains = self.host.as_ref().map(|host| ("grains", host.grains()));
        [("opts", Arc::clone(&self.opts))].into_iter().chain(grains).collect()
    }

    /// Returns the full names of Brine's functions, by module type.
    fn names(&self) -> BTreeMap<&'static str, Vec<String>> {
        [
            ("runners", self.built_in.runners.clone()),
            ("wheel", self.built_in.wheels.clone()),
            ("modules", self.host.as_ref().map(|host| host.names()).unwrap_or_default()),
        ]
        .into()
    }
}

/// Whether custom modules of a type that templates use, such as `pillar`, may include this module.
pub fn may_have(config: &MasterConfig, kind: &'static str, name: &str) -> bool {
    let is_in_package =
        config.python_fallback && matches!(kind, "pillar" | "returners" | "auth" | "fileserver" | "tokens" | "cache");
    is_in_package
        || Library::new(
            Settings::default(),
            directories(config, kind),
            &["pillar", "renderers", "returners", "auth", "fileserver", "tokens", "cache"],
        )
        .may_have(kind, Some(name))
}

/// Whether a module type has a file of this name. Does not start Python.
pub fn has_file(config: &MasterConfig, kind: &'static str, name: &str) -> bool {
    Library::new(Settings::default(), directories(config, kind), &[]).has_file(kind, name)
}

fn directories(config: &MasterConfig, kind: &'static str) -> Vec<(&'static str, PathBuf)> {
    let more = match kind {
        "returners" => &config.returner_dirs[..],
        "engines" => &config.engines_dirs[..],
        _ => &[],
    };
    Library::directories(kind, &config.module_dirs, more, &config.extension_modules())
}

/// Returns the module type of a registry.
pub fn directory(kind: Kind) -> &'static str {
    match kind {
        Kind::Runner => "runners",
        Kind::Wheel => "wheel",
    }
}

/// The services of the master for a running function. While files are loaded, only those of the host.
struct Running<'a> {
    custom: &'a CustomModules,
    caller: Option<&'a dyn MasterCalls>,
    stopping: Option<&'a CancellationToken>,
}

impl Services for Running<'_> {
    fn call(&self, kind: &str, function: &str, args: Args) -> CallResult {
        let unavailable = || CallError::NotAvailable(function.to_owned());
        if kind == "modules" {
            let host = self.custom.host.as_ref().ok_or_else(unavailable)?;
            return host.functions(None).call(function, args);
        }
        let caller = self.caller.ok_or_else(unavailable)?;
        match kind {
            "runners" => caller.call(Kind::Runner, function, args),
            "wheel" => caller.call(Kind::Wheel, function, args),
            "events" => {
                // As in the execution function, the data comes first.
                let args = Args::positional(args.positional.into_iter().take(2).rev());
                caller.call(Kind::Runner, "event.send", args)
            }
            _ => Err(unavailable()),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.stopping.is_some_and(CancellationToken::is_cancelled)
    }

    fn set_retcode(&self, retcode: i64) {
        if let Some(caller) = self.caller {
            caller.set_retcode(retcode);
        }
    }
}

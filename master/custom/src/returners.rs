//! Custom returners in Python on the master: modules with the functions `event_return`, or `save_load` and `returner`,
//! for the options `event_return` and `ext_job_cache`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::SocketNames;
use brine_config::{MasterConfig, master_template_opts};
use brine_event::Event;
use brine_function::{Args, CallError, CallResult};
use brine_job::{Load, Return};
use brine_python::{Call, Library, PythonError, Services, Settings};
use brine_returners::{Options, Returner, ReturnerError};
use brine_runtime::executors::{ExecutorError, Executors};
use brine_value::{Map, Value, map};

use crate::host_functions::HostFunctions;

/// The module type.
const KIND: &str = "returners";
/// The timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The custom returners of a master.
pub struct CustomReturners {
    library: Library,
    opts: Arc<Map>,
    host: Option<Arc<dyn HostFunctions>>,
}

impl CustomReturners {
    /// Creates the custom returners of a master. Reads nothing yet.
    pub fn new(config: &MasterConfig, host: Option<Arc<dyn HostFunctions>>) -> Arc<Self> {
        // An invalid option is logged where runner modules are loaded.
        let settings = Settings::read(&config.python_host).unwrap_or_default();
        let settings = Settings { fallback: config.python_fallback, ..settings };
        let synced = config.extension_modules();
        let mut directories = Library::directories(KIND, &config.module_dirs, &config.returner_dirs, &synced);
        directories.extend(Library::directories("utils", &config.module_dirs, &config.utils_dirs, &synced));
        let events = config.sock_dir.join(SocketNames::master().publish);
        let opts = master_template_opts(config);
        let library = Library::new(settings, directories, &[KIND]).with_events(events);
        Arc::new(CustomReturners { library, opts: Arc::new(opts), host })
    }

    /// Opens the returner with this name: that of a file, or a built-in one, or with `python_fallback` one of the package
    /// `salt`.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub fn open(self: &Arc<Self>, name: &str, options: &Options) -> Result<Arc<dyn Returner>, ReturnerError> {
        let custom = || -> Arc<dyn Returner> {
            // Leaked, but bounded: the names come from the configuration.
            Arc::new(PythonReturner { name: Box::leak(name.to_owned().into_boxed_str()), modules: Arc::clone(self) })
        };
        let has = |function: &str| {
            let name = format!("{name}.{function}");
            self.library.has(KIND, &name, |call| self.ask(call))
        };
        if has("returner") || has("event_return") {
            return Ok(custom());
        }
        if let Some(failure) = self.library.failure(KIND, name, |call| self.ask(call)) {
            return Err(ReturnerError::Option { option: "returner".into(), reason: failure });
        }
        match brine_returners::open(name, options) {
            Ok(returner) => Ok(returner.into()),
            Err(error) => {
                let name = format!("{name}.returner");
                let is_in_package = self.library.is_in_package(KIND, &name, |call| self.ask(call));
                if is_in_package { Ok(custom()) } else { Err(error) }
            }
        }
    }

    /// Like [`CustomReturners::open`], for async code.
    pub async fn opened(
        self: &Arc<Self>,
        executors: &Executors,
        name: &str,
        options: &Options,
    ) -> Result<Arc<dyn Returner>, ReturnerError> {
        let (this, asked, options) = (Arc::clone(self), name.to_owned(), options.clone());
        let opened = executors.jobs.run(move |_| this.open(&asked, &options)).await;
        let lost = |error: ExecutorError| ReturnerError::Option { option: name.to_owned(), reason: error.to_string() };
        opened.map_err(lost)?
    }

    fn has(&self, name: &str) -> bool {
        self.library.has(KIND, name, |call| self.ask(call))
            || self.library.is_in_package(KIND, name, |call| self.ask(call))
    }

    fn ask(&self, mut call: Call<'_>) -> Result<Value, PythonError> {
        call.data.push(("opts", Arc::clone(&self.opts)));
        if let Some(host) = &self.host {
            call.data.push(("grains", host.grains()));
        }
        let modules = || self.host.as_ref().map(|host| host.names()).unwrap_or_default();
        self.library.call(call, || [("modules", modules())].into(), self)
    }
}

impl Services for CustomReturners {
    fn call(&self, kind: &str, function: &str, args: Args) -> CallResult {
        match &self.host {
            Some(host) if kind == "modules" => host.functions(None).call(function, args),
            _ => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A returner in Python.
struct PythonReturner {
    name: &'static str,
    modules: Arc<CustomReturners>,
}

impl PythonReturner {
    fn call(&self, function: &str, args: Vec<Value>) -> Result<(), ReturnerError> {
        let function = format!("{}.{function}", self.name);
        let (args, deadline) = (Args::positional(args), Some(Instant::now() + CALL_TIMEOUT));
        let result = self.modules.ask(Call { kind: KIND, function: &function, args, deadline, ..Call::default() });
        result.map(|_| ()).map_err(|error| ReturnerError::Refused { returner: self.name, reason: error.to_string() })
    }

    fn has(&self, function: &str) -> bool {
        self.modules.has(&format!("{}.{function}", self.name))
    }
}

impl Returner for PythonReturner {
    fn name(&self) -> &'static str {
        self.name
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let minions: Value = load.minions().iter().map(ToString::to_string).collect();
        self.call("save_load", vec![load.jid().to_string().into(), load.map().clone().into(), minions])
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| self.call("returner", vec![job_return.map().clone().into()]))
    }

    fn stores_jobs(&self) -> bool {
        self.has("save_load")
    }

    fn stores_events(&self) -> bool {
        self.has("event_return")
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let events = events.iter().map(|event| map! {"tag" => event.tag(), "data" => event.data()}.into());
        self.call("event_return", vec![Value::List(events.collect())])
    }
}

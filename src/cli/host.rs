//! The execution functions and grains of the master's host, for templates of the master.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use brine_config::opts::master;
use brine_config::{MasterConfig, MinionConfig, template_opts};
use brine_context::masterless::without_pillar;
use brine_context::{Context, Job, Minion, jobs, template_functions};
use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_jinja::{Behaviour, CustomCall, Functions, HostedFile, Role};
use brine_job::orchestration::MasterAccess;
use brine_master_access::admission::identity::own_id;
use brine_master_custom::{HostFunctions, Orchestrated, SshCall};
use brine_modules::{MODULES, is_success, sync_types};
use brine_value::{Map, Value, map};

/// The execution functions of the master's host.
pub struct MasterHost(Arc<TemplateMinion>);

/// A masterless minion, created when a template first needs it.
struct TemplateMinion {
    config: Map,
    /// The options of the master, for custom modules of pillar and `master_tops`.
    opts: Map,
    minion: OnceLock<Result<Arc<Minion>, String>>,
    /// The configuration of the master whose host this is.
    master: Option<Arc<MasterConfig>>,
    /// The `opts` of templates on a master, determined at the first call.
    template_opts: OnceLock<Arc<Map>>,
}

/// The functions of the minion, with its own grains or those of another minion.
struct TemplateMinionFunctions {
    template_minion: Arc<TemplateMinion>,
    grains: Option<Arc<Map>>,
    /// Whether there are files in `_matchers`; determined at the first target.
    has_matchers: OnceLock<bool>,
}

impl MasterHost {
    /// Creates the host functions of a master with this configuration.
    pub fn new(config: &MasterConfig) -> Self {
        let id = own_id(config).map(|id| id.to_string()).ok().or_else(|| config.id.clone());
        let mut options = map! {
            "id" => id.clone(),
            "root_dir" => config.root_dir.clone(),
            "cachedir" => config.cachedir.join("host"),
            "pki_dir" => config.pki_dir.clone(),
            "sock_dir" => config.sock_dir.clone(),
            "extension_modules" => config.extension_modules(),
            "file_client" => "local",
            "file_roots" => config.file_roots.clone(),
            "pillar_roots" => config.pillar_roots.clone(),
        };
        // The master's options about states and pillar apply to orchestrations, too.
        for name in [
            "failhard",
            "state_output",
            "state_verbose",
            "test",
            "saltenv",
            "pillarenv",
            "nodegroups",
            "state_top",
            "python_fallback",
            "python_host",
            "module_dirs",
            "utils_dirs",
            "extmod_whitelist",
            "extmod_blacklist",
            "clean_dynamic_modules",
            "template_fuel",
            "template_memory",
            "template_output",
            "http_connect_timeout",
            "http_request_timeout",
            "http_max_body",
            "nacl.config",
        ] {
            options.extend(config.opts.get(name).map(|value| (name.into(), value.clone())));
        }
        options.extend(profiles(&config.opts));
        let mut opts = config.opts.clone();
        opts.extend(map! {"__role" => "master", "id" => id});
        MasterHost(Arc::new(TemplateMinion {
            master: Some(Arc::new(config.clone())),
            ..TemplateMinion::new(options, opts)
        }))
    }

    /// Creates host functions with these options of a minion. Functions of other types receive `opts`.
    pub fn with_options(options: Map, opts: Map) -> Self {
        MasterHost(Arc::new(TemplateMinion::new(options, opts)))
    }

    /// Creates host functions for values of a minion's configuration, before the minion starts.
    pub fn of_minion(config: &MinionConfig) -> Self {
        let mut options = map! {
            "root_dir" => config.root_dir.clone(),
            "cachedir" => config.cachedir.join("sdb"),
            "pki_dir" => config.pki_dir.clone(),
            "sock_dir" => config.sock_dir.clone(),
            "file_client" => "local",
        };
        options.extend(profiles(&config.opts));
        MasterHost(Arc::new(TemplateMinion::new(options, Map::new())))
    }
}

/// Returns the options of a minion that runs custom modules with the `opts` of a master or minion.
pub fn custom_module_options(opts: &Map) -> Map {
    const SAME: [&str; 10] = [
        "id",
        "root_dir",
        "pki_dir",
        "sock_dir",
        "python_fallback",
        "python_host",
        "module_dirs",
        "utils_dirs",
        "outputter_dirs",
        "returner_dirs",
    ];
    let mut options: Map = SAME.iter().filter_map(|name| Some(((*name).into(), opts.get(*name)?.clone()))).collect();
    options.insert("file_client".into(), "local".into());
    options.insert("cachedir".into(), master::cachedir(opts).join("host").into());
    options
}

/// Returns the profiles of `sdb`: the options that contain a `driver`.
fn profiles(opts: &Map) -> impl Iterator<Item = (Value, Value)> {
    let profiles = opts.iter().filter(|(_, value)| value.get("driver").is_some());
    profiles.map(|(name, profile)| (name.clone(), profile.clone()))
}

impl TemplateMinion {
    fn new(config: Map, opts: Map) -> Self {
        TemplateMinion { config, opts, minion: OnceLock::new(), master: None, template_opts: OnceLock::new() }
    }

    /// Returns the `opts` of templates and of functions that they call: on a master, as in Salt, those of the master. The
    /// functions themselves go by the configuration of their minion.
    fn template_opts(&self) -> Option<Arc<Map>> {
        self.master.as_ref()?;
        let minion = self.minion().ok()?;
        let merged = || {
            let mut opts = template_opts(&minion.config);
            opts.extend(self.opts.iter().map(|(name, value)| (name.clone(), value.clone())));
            opts.insert("file_client".into(), "local".into());
            Arc::new(opts)
        };
        Some(Arc::clone(self.template_opts.get_or_init(merged)))
    }

    /// Returns whether a directory of custom modules of this type contains any file.
    fn has_files(&self, kind: &str) -> bool {
        let text = |name: &str| self.config.get(name).map(|value| PathBuf::from(value.to_string()));
        let synced = text("extension_modules").or_else(|| Some(text("cachedir")?.join("extmods")));
        let named = self.config.get("module_dirs").and_then(Value::as_list).unwrap_or_default();
        let named = named.iter().map(|directory| PathBuf::from(directory.to_string()));
        let mut below = named.chain(synced).flat_map(|path| [path.join(kind), path.join(format!("_{kind}"))]);
        below.any(|path| path.read_dir().is_ok_and(|mut files| files.next().is_some()))
    }

    fn minion(&self) -> Result<&Arc<Minion>, String> {
        let made = self.minion.get_or_init(|| {
            let nowhere = Path::new("/nonexistent");
            let loaded = MinionConfig::load(nowhere, &self.config).map_err(|error| error.to_string())?;
            // Templates on the master see no pillar, as in Salt: an orchestration renders one.
            without_pillar(loaded.config, MODULES).map_err(|error| error.to_string())
        });
        made.as_ref().map_err(Clone::clone)
    }
}

impl TemplateMinionFunctions {
    fn context(&self, function: &str, args: &Args) -> Result<Context, String> {
        let job = Job::local(&Jid::new(), function, args);
        let context = Context::new(Arc::clone(self.template_minion.minion()?), Arc::new(job)).for_template();
        let context = Context { run_opts: self.template_minion.template_opts(), ..context };
        Ok(match &self.grains {
            Some(grains) => {
                Context { own_grains: Some(Arc::clone(grains)), run_pillar: Some(Arc::default()), ..context }
            }
            None => context,
        })
    }
}

impl Functions for TemplateMinionFunctions {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.context(function, &args)?.call(function, args)
    }

    fn render(&self, file: &HostedFile) -> Option<Result<Value, CallError>> {
        match self.context(file.name, &Args::default()) {
            Ok(context) => context.minion.custom.render(&context, file),
            Err(error) => Some(Err(error.into())),
        }
    }

    fn has(&self, function: &str) -> bool {
        let is_custom = || self.template_minion.minion().is_ok_and(|minion| minion.custom.has("modules", function));
        MODULES.has(function) || is_custom()
    }

    fn has_module(&self, module: &str) -> bool {
        MODULES.has_module(module)
            || self.template_minion.minion().is_ok_and(|minion| minion.functions.has_module(module))
    }

    fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        // Called for each target of a pillar: without such files, no minion is created for it.
        if call.kind == "matchers" && !*self.has_matchers.get_or_init(|| self.template_minion.has_files("matchers")) {
            return None;
        }
        match self.context(call.function, &Args::default()) {
            Ok(context) => context.minion.custom.call_other(&context, &self.template_minion.opts, call),
            Err(error) => Some(Err(error.into())),
        }
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        template_functions::behaviour(function)
    }

    fn name_of(&self, role: Role) -> Option<&'static str> {
        Some(template_functions::name_of(role))
    }
}

impl HostFunctions for MasterHost {
    fn functions(&self, grains: Option<Arc<Map>>) -> Arc<dyn Functions> {
        Arc::new(TemplateMinionFunctions {
            template_minion: Arc::clone(&self.0),
            grains,
            has_matchers: OnceLock::new(),
        })
    }

    fn names(&self) -> Vec<String> {
        MODULES.names()
    }

    fn positional_parameters(&self, function: &str) -> Vec<&'static str> {
        MODULES.positional_parameters(function)
    }

    fn sync(&self, kinds: &[&'static str], args: Args) -> Result<Map, CallError> {
        let context =
            Context::new(Arc::clone(self.0.minion()?), Arc::new(Job::local(&Jid::new(), "saltutil.sync_all", &args)));
        sync_types(&context, kinds, args)
    }

    fn orchestrate(
        &self,
        function: &str,
        args: Args,
        jid: &Jid,
        master: Arc<dyn MasterAccess>,
    ) -> Result<Orchestrated, CallError> {
        let minion = Arc::clone(self.0.minion()?);
        let mut job = Job::local(jid, function, &args);
        // As in a published job, the pillar is rendered for this call.
        job.load = map! {"fun" => function, "jid" => jid};
        job.master = Some(master);
        let context = Context { run_opts: self.0.template_opts(), ..Context::new(minion, Arc::new(job)) };
        let outcome = jobs::call(&context, function, args);
        if !outcome.success {
            return Err(CallError::execution(outcome.value));
        }
        let failed = outcome.retcode == 0 && !is_success(&outcome.value);
        Ok(Orchestrated { retcode: if failed { 1 } else { outcome.retcode }, value: outcome.value })
    }

    fn call_by_ssh(&self, call: &SshCall) -> Result<Map, CallError> {
        let missing = || CallError::execution("this program has no configuration of a master");
        let config = self.0.master.as_ref().ok_or_else(missing)?;
        super::ssh::runner::call(config, Arc::new(MasterHost(Arc::clone(&self.0))), call)
            .map_err(|error| CallError::Execution(super::sentence(&error)))
    }

    fn grains(&self) -> Arc<Map> {
        match self.0.minion() {
            Ok(minion) => minion.grains.get(),
            Err(error) => {
                tracing::error!(error, "collecting the grains of the master's host failed");
                Arc::default()
            }
        }
    }
}

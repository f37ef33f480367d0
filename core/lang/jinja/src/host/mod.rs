//! The host of templates: the functions and files that they can access, in layers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_value::{Map, Value};

use super::behaviour::{Behaviour, Role};
use super::data::Tree;
use super::limits::hand_off;

/// A file for a renderer that is not part of Brine, such as `py`.
#[derive(Debug, Clone)]
pub struct HostedFile<'a> {
    /// The name of the renderer.
    pub renderer: &'a str,
    /// The options after its name in the pipe.
    pub args: &'a str,
    /// The name of the file in errors.
    pub name: &'a str,
    /// Its source, or the result of the renderer before.
    pub source: &'a Value,
    /// Its environment.
    pub saltenv: &'a str,
    /// Variables such as `sls`, without grains, pillar and options.
    pub variables: Map,
    /// The grains and the pillar, if they differ from those of the functions.
    pub data: Option<(Arc<Map>, Arc<Map>)>,
}

/// A layer of functions.
pub trait Functions: Send + Sync {
    /// Calls a function by its full name.
    ///
    /// # Errors
    /// The error of the function.
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError>;

    /// Returns whether a function exists.
    fn has(&self, function: &str) -> bool;

    /// Returns whether a module has functions here.
    fn has_module(&self, module: &str) -> bool;

    /// Returns the mapping in which a function looks up a path, if templates share it.
    fn tree(&self, _function: &str) -> Option<&Tree> {
        None
    }

    /// Returns the pillar, if templates share it.
    fn pillar(&self) -> Option<&Tree> {
        None
    }

    /// Returns the properties of a function that the engine depends on.
    fn behaviour(&self, _function: &str) -> Behaviour {
        Behaviour::default()
    }

    /// Returns the name of the function that the engine calls for a use of its own.
    fn name_of(&self, _role: Role) -> Option<&'static str> {
        None
    }

    /// Calls a function of a custom module that is neither an execution nor a state module; `None` if there is none.
    fn custom(&self, _call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        None
    }

    /// Renders a file to data; `None` if the renderer is not available here.
    fn render(&self, _file: &HostedFile) -> Option<Result<Value, CallError>> {
        None
    }
}

/// A call of a function of a custom module that is neither an execution nor a state module.
pub struct CustomCall<'a> {
    /// The type of its module: `pillar` or `tops`.
    pub kind: &'static str,
    /// Its full name, such as `hosts.ext_pillar`.
    pub function: &'a str,
    /// Creates its arguments; called only if the function exists.
    pub args: &'a (dyn Fn() -> Args + Sync),
    /// The options that replace those of the daemon: options of the minion for which the function is called.
    pub opts: Map,
}

/// A layer of files.
pub trait Files: Send + Sync {
    /// Returns the text of a template below `salt://`, if it exists.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError>;
}

/// Why a template that may exist cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// As [`FilesError::Disk`], or the path leads out of the directory of the files.
    #[error(transparent)]
    File(#[from] brine_system::files::FileError),
    /// The disk failed, at a path that the template does not name.
    #[error("{}: {source}", path.display())]
    DiskAt {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is a pipe, a device or a directory.
    #[error("it is not a regular file")]
    NotRegular,
    /// The file has more bytes than this.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The server of the files cannot be asked.
    #[error("{0}")]
    Server(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The layer panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// The error of a layer that panicked on its thread.
#[derive(Debug, thiserror::Error)]
#[error("the function panicked")]
pub struct Panicked;

impl From<Panicked> for CallError {
    fn from(panicked: Panicked) -> Self {
        CallError::execution(panicked)
    }
}

impl<L: Functions + ?Sized> Functions for Arc<L> {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        (**self).call(function, args)
    }

    fn has(&self, function: &str) -> bool {
        (**self).has(function)
    }

    fn has_module(&self, module: &str) -> bool {
        (**self).has_module(module)
    }

    fn tree(&self, function: &str) -> Option<&Tree> {
        (**self).tree(function)
    }

    fn pillar(&self) -> Option<&Tree> {
        (**self).pillar()
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        (**self).behaviour(function)
    }

    fn name_of(&self, role: Role) -> Option<&'static str> {
        (**self).name_of(role)
    }

    fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        (**self).custom(call)
    }

    fn render(&self, file: &HostedFile) -> Option<Result<Value, CallError>> {
        (**self).render(file)
    }
}

/// The functions and files that templates can access. A function is called in the topmost layer that has it, and a file
/// is read from the topmost layer that has it. Clones share their layers.
///
/// # Examples
/// ```
/// use brine_jinja::{Context, Files, FilesError, Host, Template};
///
/// struct Greeting;
///
/// impl Files for Greeting {
///     fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
///         Ok((path == "greeting").then(|| "hello".to_owned()))
///     }
/// }
///
/// let host = Host::new().with_files(Greeting);
/// let template = Template::compile("t", "{% include 'greeting' %}").unwrap();
/// assert_eq!(template.render(&Context::new("base"), &host).unwrap(), "hello");
/// ```
#[derive(Clone, Default)]
pub struct Host {
    /// The bottom layer first.
    functions: Vec<Arc<dyn Functions>>,
    files: Vec<Arc<dyn Files>>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    /// Creates a host without functions and files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the host with another layer of functions on top.
    #[must_use]
    pub fn with_functions(mut self, layer: impl Functions + 'static) -> Self {
        self.functions.push(Arc::new(layer));
        self
    }

    /// Returns the host with another layer of files on top.
    #[must_use]
    pub fn with_files(mut self, layer: impl Files + 'static) -> Self {
        self.files.push(Arc::new(layer));
        self
    }

    /// Returns the host with these functions in place of its own.
    pub(super) fn replacing(&self, functions: impl Functions + 'static) -> Self {
        Host { functions: vec![Arc::new(functions)], files: self.files.clone() }
    }

    fn layer(&self, function: &str) -> Option<&Arc<dyn Functions>> {
        self.functions.iter().rev().find(|layer| layer.has(function))
    }

    /// Calls a function by its full name.
    ///
    /// # Errors
    /// The error of the function, or [`CallError::NotAvailable`] if there is none of this name.
    pub fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        match self.layer(function) {
            Some(layer) => layer.call(function, args),
            None => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    /// Returns whether a function exists.
    pub fn has(&self, function: &str) -> bool {
        self.layer(function).is_some()
    }

    /// Returns whether a module has functions.
    pub fn has_module(&self, module: &str) -> bool {
        self.functions.iter().any(|layer| layer.has_module(module))
    }

    /// Returns the mapping in which a function looks up a path, if templates share it.
    pub fn tree(&self, function: &str) -> Option<&Tree> {
        self.layer(function)?.tree(function)
    }

    /// Returns the pillar, if templates share it.
    pub fn pillar(&self) -> Option<&Tree> {
        self.functions.iter().rev().find_map(|layer| layer.pillar())
    }

    /// Returns the properties of a function that the engine depends on.
    pub fn behaviour(&self, function: &str) -> Behaviour {
        self.layer(function).map(|layer| layer.behaviour(function)).unwrap_or_default()
    }

    /// Returns the name of the function that the engine calls for a use of its own.
    pub fn name_of(&self, role: Role) -> Option<&'static str> {
        self.functions.iter().rev().find_map(|layer| layer.name_of(role))
    }

    /// Calls a function of a custom module that is neither an execution nor a state module; `None` if there is none.
    pub fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        self.functions.iter().rev().find_map(|layer| layer.custom(call))
    }

    /// Renders a file to data; `None` if the renderer is not available.
    pub fn render(&self, file: &HostedFile) -> Option<Result<Value, CallError>> {
        self.functions.iter().rev().find_map(|layer| layer.render(file))
    }

    /// Returns the text of a template below `salt://`, if it exists.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError> {
        let mut templates = self.files.iter().rev().map(|layer| layer.template(path, saltenv));
        templates.find(|template| !matches!(template, Ok(None))).unwrap_or(Ok(None))
    }
}

/// A layer that is called on a separate thread, because it may block on the runtime of the calling thread. The limits
/// of the render apply there as well.
#[derive(Debug)]
pub struct InThread<L>(pub L);

impl<L> InThread<L> {
    fn run<T: Send, E: Send + From<Panicked>>(call: impl FnOnce() -> Result<T, E> + Send) -> Result<T, E> {
        let panicked = |_| Err(Panicked.into());
        let budget = hand_off();
        std::thread::scope(|scope| scope.spawn(|| budget.run(call)).join().unwrap_or_else(panicked))
    }
}

impl<L: Functions> Functions for InThread<L> {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        Self::run(|| self.0.call(function, args))
    }

    fn has(&self, function: &str) -> bool {
        self.0.has(function)
    }

    fn has_module(&self, module: &str) -> bool {
        self.0.has_module(module)
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        self.0.behaviour(function)
    }

    fn name_of(&self, role: Role) -> Option<&'static str> {
        self.0.name_of(role)
    }

    fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        Self::run(|| self.0.custom(call).transpose()).transpose()
    }

    fn render(&self, file: &HostedFile) -> Option<Result<Value, CallError>> {
        Self::run(|| self.0.render(file).transpose()).transpose()
    }
}

impl<L: Files> Files for InThread<L> {
    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError> {
        Self::run(|| self.0.template(path, saltenv))
    }
}

#[cfg(test)]
mod tests;

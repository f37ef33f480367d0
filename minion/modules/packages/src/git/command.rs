//! Arguments of git's command lines.

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_host::programs::argument;
use brine_value::{Map, Value};

use super::{Git, GitError, strings, with_login};
use brine_modules_files::cmd::split_options;

/// Options of a git command.
#[derive(Args)]
pub struct OptionArgs {
    /// Further options of the command.
    #[default]
    pub opts: Value,
    /// Options of git, before the command.
    #[default]
    pub git_opts: Value,
}

/// The layout of a new repository.
#[derive(Args)]
pub struct LayoutArgs {
    /// Directory of templates.
    pub template: Option<String>,
    /// Directory of the repository's data, if it is not in the work tree.
    pub separate_git_dir: Option<String>,
    /// Permissions for several users, as for `git init --shared`.
    #[default]
    pub shared: Value,
}

/// The login at a remote repository.
#[derive(Args)]
pub struct LoginArgs {
    /// User name for HTTPS.
    pub https_user: Option<String>,
    /// Password for HTTPS.
    pub https_pass: Option<String>,
}

/// Options of a command on a remote repository, and the login there.
#[derive(Args)]
pub struct RemoteCommandArgs {
    #[args]
    pub options: OptionArgs,
    #[args]
    pub login: LoginArgs,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    pub kwargs: Map,
}

impl RemoteCommandArgs {
    /// Returns a URL with the login.
    pub fn url(&self, url: &str) -> Result<String, GitError> {
        with_login(url, self.login.https_user.as_deref(), self.login.https_pass.as_deref())
    }
}

/// The arguments of commands on a checkout.
#[derive(Args)]
pub struct CheckoutArgs {
    /// Directory of the checkout.
    pub cwd: String,
    #[args]
    pub options: OptionArgs,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    pub kwargs: Map,
}

impl CheckoutArgs {
    /// Runs a command with the options.
    pub fn run(self, context: &Context, word: &str) -> Result<Value, CallError> {
        let command = command(&self.options.git_opts, &[word])?.words(options(&self.options.opts)?);
        command.run(context, &self.cwd, &self.kwargs)
    }
}

/// The arguments of commands on a file of a checkout.
#[derive(Args)]
pub struct FileArgs {
    /// Directory of the checkout.
    pub cwd: String,
    /// Path of the file.
    pub filename: String,
    #[args]
    pub options: OptionArgs,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    pub kwargs: Map,
}

/// The arguments of commands on a revision.
#[derive(Args)]
pub struct RevisionArgs {
    /// Directory of the checkout.
    pub cwd: String,
    /// Branch, tag or commit.
    pub rev: Option<String>,
    #[args]
    pub options: OptionArgs,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    pub kwargs: Map,
}

impl RevisionArgs {
    /// Runs a command with the options and the revision.
    pub fn run(self, context: &Context, word: &str) -> Result<Value, CallError> {
        let command = command(&self.options.git_opts, &[word])?.words(options(&self.options.opts)?);
        command.operands(self.rev)?.run(context, &self.cwd, &self.kwargs)
    }
}

/// The arguments of a command.
pub struct Command(pub Vec<String>);

/// Returns a command that begins with these arguments, after options of git itself.
pub fn command(git_opts: &Value, words: &[&str]) -> Result<Command, CallError> {
    Ok(Command(options(git_opts)?).words(strings(words)))
}

impl Command {
    /// Appends arguments.
    pub fn words(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.0.extend(words);
        self
    }

    /// Appends arguments from outside, which must not be options: what is meant as one is in `opts`.
    pub fn operands(mut self, words: impl IntoIterator<Item = String>) -> Result<Self, CallError> {
        for word in words {
            self.0.push(argument(&word)?);
        }
        Ok(self)
    }

    /// Runs the command and returns its output.
    pub fn run(self, context: &Context, cwd: &str, kwargs: &Map) -> Result<Value, CallError> {
        Ok(Git::new(context, Some(cwd), kwargs).stdout(&self.0)?.into())
    }

    /// Runs the command and returns its output, including errors and warnings.
    pub fn run_both(self, context: &Context, cwd: &str, kwargs: &Map) -> Result<Value, CallError> {
        Ok(Git::new(context, Some(cwd), kwargs).both(&self.0)?.into())
    }
}

/// Parses options given as a list, or as a string that is split as in a shell.
pub fn options(options: &Value) -> Result<Vec<String>, CallError> {
    match options {
        Value::Nil => Ok(Vec::new()),
        Value::List(words) => Ok(words.iter().map(ToString::to_string).collect()),
        text => {
            let mut words = split_options(&text.to_string())?;
            words.pop_if(|word| word == "--");
            Ok(words)
        }
    }
}

/// Returns whether a keyword argument is truthy.
pub fn flag(kwargs: &Map, key: &str) -> bool {
    kwargs.get(key).is_some_and(Value::is_truthy)
}

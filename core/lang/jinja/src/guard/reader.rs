//! Reads the facts of a template from its syntax tree. Constructs that are not understood depend on [`ANY`], which
//! counts as untrusted.

use minijinja::machinery::ast::{Call, CallArg, Expr, Filter, Macro, Stmt};

use super::Variables;
use super::facts::{ANY, Assigned, DataFlow, Direct, Emit, Encoder, INCLUDED, Names, bare};
use super::known::{CALLER, COMPARISONS, ENCODERS, FUNCTIONS, JSON_ENCODERS, OPERATORS, READ_ONLY};

/// Reads the facts of a template. `tags` are its printing tags and filter blocks in order, with their lines; `globals`
/// returns whether a name is a global of the engine.
pub(super) fn read(
    tree: &Stmt<'_>,
    tags: &[(usize, &str)],
    globals: &dyn Fn(&str) -> bool,
    variables: Variables,
) -> DataFlow {
    let mut reader = Reader {
        facts: DataFlow::default(),
        bodies: vec![Names::new()],
        modules: Names::new(),
        tags,
        globals,
        variables,
    };
    reader.statement(tree);
    let mut facts = reader.facts;
    facts.top = reader.bodies.pop().unwrap_or_default();
    let names = facts.mentioned().chain(facts.printed()).map(bare);
    facts.globals = names.filter(|name| globals(name)).map(str::to_owned).collect();
    facts
}

struct Reader<'r> {
    facts: DataFlow,
    /// The sources of each open capturing block.
    bodies: Vec<Names>,
    /// The names of imported modules.
    modules: Names,
    tags: &'r [(usize, &'r str)],
    globals: &'r dyn Fn(&str) -> bool,
    variables: Variables,
}

fn any() -> Names {
    Names::from([ANY.to_owned()])
}

fn single(name: &str) -> Names {
    Names::from([name.to_owned()])
}

/// Returns the name in the facts for an imported module's output.
fn beside(module: &str) -> String {
    format!("#{module}")
}

impl Reader<'_> {
    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    /// Returns the sources of the output of captured statements.
    fn body(&mut self, statements: &[Stmt<'_>]) -> Names {
        self.bodies.push(Names::new());
        self.statements(statements);
        self.bodies.pop().unwrap_or_default()
    }

    fn prints(&mut self, of: &Names) {
        if let Some(body) = self.bodies.last_mut() {
            body.extend(of.iter().cloned());
        }
    }

    fn emit(&mut self, of: Names, direct: Direct) -> usize {
        let (line, tag) = self.tags.get(self.facts.emits.len()).copied().unwrap_or_default();
        self.facts.emits.push(Emit { of, direct, line, tag: tag.into() });
        self.facts.emits.len() - 1
    }

    fn assign(&mut self, target: &Expr<'_>, of: &Names, how: Assigned) {
        match target {
            Expr::Var(var) => {
                self.facts.flows.push((var.id.to_owned(), of.clone()));
                self.facts.flows.push((beside(var.id), of.clone()));
                self.facts.assigned.push((var.id.to_owned(), how));
            }
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.assign(item, of, Assigned::Plain)),
            Expr::List(list) => list.items.iter().for_each(|item| self.assign(item, of, Assigned::Plain)),
            // An attribute of a namespace.
            Expr::GetAttr(attribute) => {
                let changed = self.expression(&attribute.expr);
                self.facts.changes.push((changed, of.clone()));
            }
            _ => self.refuse("an assignment to this"),
        }
    }

    fn refuse(&mut self, what: &str) {
        self.facts.refused.get_or_insert_with(|| what.to_owned());
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => {
                let direct = self.direct(&emit.expr);
                let of = match (&direct, &emit.expr) {
                    (Direct::Engine, Expr::Call(call)) => {
                        _ = self.arguments(&call.args);
                        any()
                    }
                    _ => self.expression(&emit.expr),
                };
                self.prints(&of);
                self.emit(of, direct);
            }
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
            Stmt::ForLoop(each) => {
                let of = self.expression(&each.iter);
                self.assign(&each.target, &of, Assigned::Plain);
                self.facts.flows.push(("loop".to_owned(), of));
                self.facts.assigned.push(("loop".to_owned(), Assigned::Plain));
                if let Some(filter) = &each.filter_expr {
                    _ = self.expression(filter);
                }
                self.statements(&each.body);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                _ = self.expression(&condition.expr);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                for (target, value) in &with.assignments {
                    let of = self.expression(value);
                    self.assign(target, &of, Assigned::Plain);
                }
                self.statements(&with.body);
            }
            Stmt::Set(set) => self.set(&set.target, &set.expr),
            Stmt::SetBlock(set) => {
                let mut of = self.body(&set.body);
                let how = match &set.filter {
                    None => Assigned::Captured,
                    Some(filter) => {
                        of.extend(self.expression(filter));
                        Assigned::Plain
                    }
                };
                self.assign(&set.target, &of, how);
            }
            Stmt::AutoEscape(escape) => {
                _ = self.expression(&escape.enabled);
                self.statements(&escape.body);
            }
            Stmt::FilterBlock(block) => {
                let mut of = self.expression(&block.filter);
                let direct = encoder(&block.filter).map_or(Direct::No, Direct::Encoded);
                // The tag of a filter block precedes the tags inside of the block.
                let emit = self.emit(Names::new(), direct);
                of.extend(self.body(&block.body));
                self.prints(&of);
                if let Some(emit) = self.facts.emits.get_mut(emit) {
                    emit.of = of;
                }
            }
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Import(import) => {
                self.import(&import.expr);
                match &import.name {
                    Expr::Var(name) => {
                        self.modules.insert(name.id.to_owned());
                        self.facts.flows.push((name.id.to_owned(), any()));
                        self.facts.assigned.push((name.id.to_owned(), Assigned::Plain));
                        self.facts.assigned.push((beside(name.id), Assigned::Plain));
                    }
                    other => self.assign(other, &any(), Assigned::Plain),
                }
            }
            Stmt::FromImport(import) => {
                self.import(&import.expr);
                for (name, alias) in &import.names {
                    let Expr::Var(name) = name else { return self.refuse("an import of this") };
                    if let Some(alias) = alias {
                        self.facts.referenced.insert(name.id.to_owned());
                        self.assign(alias, &single(name.id), Assigned::Plain);
                    }
                }
            }
            Stmt::Extends(extends) => self.import(&extends.name),
            Stmt::Include(include) => {
                self.import(&include.name);
                self.prints(&single(INCLUDED));
            }
            Stmt::Macro(declared) => self.declare(declared.name, declared),
            Stmt::CallBlock(block) => {
                self.declare(CALLER, &block.macro_decl);
                let mut of = self.call(&block.call);
                of.insert(CALLER.to_owned());
                self.prints(&of);
            }
            Stmt::Do(statement) => _ = self.call(&statement.call),
        }
    }

    fn set(&mut self, target: &Expr<'_>, value: &Expr<'_>) {
        let inside = match value {
            Expr::Call(call) if is_var(&call.expr, "__macro__") => return,
            Expr::Call(call) if is_var(&call.expr, "__own__") => match &call.args[..] {
                [CallArg::Pos(inside)] => inside,
                _ => value,
            },
            value => value,
        };
        let how = encoder(inside).map_or(Assigned::Plain, Assigned::Encoded);
        let of = self.expression(value);
        self.assign(target, &of, how);
    }

    fn import(&mut self, name: &Expr<'_>) {
        let of = self.expression(name);
        self.facts.imports.push(of);
    }

    fn declare(&mut self, name: &str, declared: &Macro<'_>) {
        let mut defaults = Names::new();
        for default in &declared.defaults {
            defaults.extend(self.expression(default));
        }
        let mut parameters = Vec::new();
        for parameter in &declared.args {
            self.assign(parameter, &defaults, Assigned::Plain);
            if let Expr::Var(var) = parameter {
                parameters.push(var.id.to_owned());
            }
        }
        self.facts.macros.push((name.to_owned(), parameters));
        self.facts.assigned.push((name.to_owned(), Assigned::Macro));
        let of = self.body(&declared.body);
        self.facts.flows.push((name.to_owned(), of));
    }

    /// Returns the value of a tag that prints it directly.
    fn direct(&self, printed: &Expr<'_>) -> Direct {
        match printed {
            Expr::Var(var) => Direct::Name(var.id.to_owned()),
            Expr::Filter(_) => encoder(printed).map_or(Direct::No, Direct::Encoded),
            Expr::Call(call) => match &call.expr {
                Expr::Var(var) if (var.id, call.args.len()) == ("super", 0) => Direct::Engine,
                Expr::Var(var) if (var.id, call.args.len()) == ("loop", 1) => Direct::Engine,
                Expr::Var(var) => Direct::Macro(var.id.to_owned()),
                Expr::GetAttr(attribute) => match &attribute.expr {
                    Expr::Var(var) if var.id == "self" => Direct::Engine,
                    Expr::Var(var) if self.modules.contains(var.id) => Direct::Macro(attribute.name.to_owned()),
                    _ => Direct::No,
                },
                _ => Direct::No,
            },
            _ => Direct::No,
        }
    }

    fn all<'e, 'a: 'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr<'a>>) -> Names {
        expressions.into_iter().flat_map(|expression| self.expression(expression)).collect()
    }

    /// Returns the names whose text may be part of an expression's value.
    fn expression(&mut self, expression: &Expr<'_>) -> Names {
        match expression {
            Expr::Const(_) => Names::new(),
            Expr::Var(var) => {
                self.facts.referenced.insert(var.id.to_owned());
                match var.id {
                    "self" | "super" => any(),
                    name => single(name),
                }
            }
            Expr::Slice(slice) => {
                _ = self.all(slice.start.iter().chain(&slice.stop).chain(&slice.step));
                self.expression(&slice.expr)
            }
            Expr::UnaryOp(operator) => self.expression(&operator.expr),
            Expr::BinOp(operator) => self.all([&operator.left, &operator.right]),
            Expr::Compare(compared) => {
                _ = self.all(std::iter::once(&compared.expr).chain(compared.ops.iter().map(|op| &op.expr)));
                Names::new()
            }
            Expr::IfExpr(choice) => {
                _ = self.expression(&choice.test_expr);
                self.all(std::iter::once(&choice.true_expr).chain(&choice.false_expr))
            }
            Expr::Filter(filter) => self.filter(filter),
            Expr::Test(test) => {
                _ = self.expression(&test.expr);
                _ = self.arguments(&test.args);
                Names::new()
            }
            Expr::GetAttr(attribute) => self.attribute(&attribute.expr, attribute.name),
            Expr::GetItem(item) => match (&item.expr, &item.subscript_expr) {
                (Expr::Var(var), Expr::Const(name))
                    if self.modules.contains(var.id) && name.value.as_str().is_some() =>
                {
                    let name = name.value.as_str().unwrap_or_default();
                    self.attribute(&item.expr, name)
                }
                (of, subscript) => {
                    let subscript = self.expression(subscript);
                    let mut names = self.expression(of);
                    // An item has the sources of its container, but not of the called function.
                    if is_var(of, "salt") {
                        names.extend(subscript);
                    }
                    names
                }
            },
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.all(&list.items),
            Expr::Tuple(tuple) => self.all(&tuple.items),
            Expr::Map(map) => self.all(map.keys.iter().chain(&map.values)),
        }
    }

    fn attribute(&mut self, of: &Expr<'_>, name: &str) -> Names {
        match of {
            Expr::Var(var) if self.modules.contains(var.id) => {
                self.facts.referenced.insert(name.to_owned());
                Names::from([name.to_owned(), beside(var.id)])
            }
            of => self.expression(of),
        }
    }

    fn filter(&mut self, filter: &Filter<'_>) -> Names {
        let mut of = self.all(&filter.expr);
        let changed = of.clone();
        for argument in self.arguments(&filter.args) {
            of.extend(argument);
        }
        match filter.name {
            // Returns a method, which may later add anything to its object.
            "attr" => self.facts.changes.push((changed, any())),
            "method_call" => self.facts.changes.push((changed, of.clone())),
            _ => {}
        }
        // `http_query` and similar functions have external, untrusted results.
        if matches!(filter.name, "http_query") {
            of.extend(any());
        }
        of
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Vec<Names> {
        let mut all = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = argument;
            all.push(self.expression(value));
        }
        all
    }

    fn call(&mut self, call: &Call<'_>) -> Names {
        if call.args.iter().any(|argument| matches!(argument, CallArg::Kwarg(CALLER, _))) {
            self.refuse("the argument 'caller' of a call: use a call block");
        }
        let each = self.arguments(&call.args);
        let all: Names = each.iter().flatten().cloned().collect();
        let first = each.first().cloned().unwrap_or_default();
        if let Some(function) = salt_function(&call.expr) {
            let mut of = self.expression(&call.expr);
            of.extend(all.iter().cloned());
            let module = function.split_once('.').map(|(module, _)| module);
            if module.is_some_and(|module| self.variables.from_minions.contains(&module)) {
                of.extend(any());
            }
            if function.is_empty() || self.variables.change_first.contains(&function.as_str()) {
                self.facts.changes.push((first, all));
            }
            return of;
        }
        match &call.expr {
            Expr::Var(var) => match var.id {
                name if COMPARISONS.contains(&name) => Names::new(),
                "__slice__" | "__template__" => first,
                name if OPERATORS.contains(&name) => all,
                "loop" | "super" => {
                    self.refuse("a call of `loop` or `super` that is not printed directly");
                    any()
                }
                name => {
                    self.facts.calls.push((Some(name.to_owned()), all.clone()));
                    let mut of = all;
                    of.insert(name.to_owned());
                    // Other globals, such as `show_full_context`, read more than their arguments.
                    if (self.globals)(name) && !FUNCTIONS.contains(&name) {
                        of.extend(any());
                    }
                    of
                }
            },
            Expr::GetAttr(attribute) => self.method(&attribute.expr, attribute.name, &each, all),
            other => {
                let mut of = self.expression(other);
                self.facts.calls.push((None, all.clone()));
                of.extend(all);
                of
            }
        }
    }

    fn method(&mut self, of: &Expr<'_>, name: &str, each: &[Names], all: Names) -> Names {
        if is_var(of, "self") {
            self.refuse("a call of a block that is not printed directly");
            return any();
        }
        self.facts.calls.push((Some(name.to_owned()), all.clone()));
        if let Expr::Var(var) = of
            && self.modules.contains(var.id)
        {
            return all.into_iter().chain([name.to_owned(), beside(var.id)]).collect();
        }
        let mut names = self.expression(of);
        if !READ_ONLY.contains(&name) {
            self.facts.changes.push((names.clone(), all.clone()));
        }
        match name {
            // The key only selects; the default may be the result.
            "get" => names.extend(each.iter().skip(1).flatten().cloned()),
            _ => names.extend(all),
        }
        names
    }
}

fn is_var(expression: &Expr<'_>, name: &str) -> bool {
    matches!(expression, Expr::Var(var) if var.id == name)
}

/// Returns the last applied encoder.
fn encoder(expression: &Expr<'_>) -> Option<Encoder> {
    match expression {
        Expr::Filter(filter) if ENCODERS.contains(&filter.name) => Some(Encoder::Yaml),
        Expr::Filter(filter) if JSON_ENCODERS.contains(&filter.name) => Some(Encoder::Json),
        _ => None,
    }
}

/// Returns the function of `salt['mod.fun']` or `salt.mod.fun`; empty if it is computed.
fn salt_function(called: &Expr<'_>) -> Option<String> {
    match called {
        Expr::GetItem(item) if is_var(&item.expr, "salt") => match &item.subscript_expr {
            Expr::Const(name) => Some(name.value.as_str().unwrap_or_default().to_owned()),
            _ => Some(String::new()),
        },
        Expr::GetAttr(function) => match &function.expr {
            Expr::GetAttr(module) if is_var(&module.expr, "salt") => Some(format!("{}.{}", module.name, function.name)),
            _ => None,
        },
        _ => None,
    }
}

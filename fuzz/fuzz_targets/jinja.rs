//! Any template, rewritten and compiled, renders or is refused.
#![no_main]

use std::sync::Arc;

use brine_core::map;
use brine_core::sls::jinja::{Context, Host, NoHost, Template};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: brine_fuzz::let_the_yaml_parser_panic(), |source: &str| {
    let Ok(template) = Template::compile("fuzz", source) else { return };
    let host: Arc<dyn Host> = Arc::new(NoHost);
    let mut context = Context::new("base");
    context.set("grains", &map! {"os" => "Debian", "ip" => map! {"lo" => "127.0.0.1"}}.into());
    let _ = template.render(&context, &host);
});

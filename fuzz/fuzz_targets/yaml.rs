//! Any text is read as YAML or refused, and what was read is written so that it reads the same.
#![no_main]

use brine_core::sls::yaml::{Style, dump, load};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: brine_fuzz::let_the_yaml_parser_panic(), |text: &str| {
    let Ok(value) = load(text) else { return };
    for style in [Style::BLOCK, Style::FLOW, Style::LEAVES] {
        assert_eq!(load(&dump(&value, style)).as_ref(), Ok(&value));
    }
});

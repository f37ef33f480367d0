#![no_main]

libfuzzer_sys::fuzz_target!(init: brine_fuzz::silence_the_yaml_parser(), |bytes: &[u8]| {
    _ = brine_fuzz::targets::files::x509(bytes);
});

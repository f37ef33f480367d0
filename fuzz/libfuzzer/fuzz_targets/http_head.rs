#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    _ = brine_fuzz::targets::http::head(bytes);
});

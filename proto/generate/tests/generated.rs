//! The generated code is that of the definitions.

use std::path::Path;

use sha2::{Digest, Sha256};

/// With `WANLAT_GENERATE=1` it is written where it belongs; compared with what is there otherwise.
#[test]
fn the_generated_code_is_that_of_the_definitions() {
    let crate_ = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let there = crate_.join("bob_storage.rs");
    let write = std::env::var_os("WANLAT_GENERATE").is_some();
    let out = match write {
        true => crate_,
        false => Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let definitions = protox::compile(["bob.proto"], [crate_]).unwrap();
    tonic_prost_build::configure()
        .build_transport(false)
        .bytes(".") // blobs are large: shared, not copied
        .out_dir(out)
        .compile_fds(definitions)
        .unwrap();
    let hash = Sha256::digest(std::fs::read(crate_.join("bob.proto")).unwrap());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let code = std::fs::read_to_string(out.join("bob_storage.rs")).unwrap();
    let made = format!("// Of bob.proto with the SHA-256 {hex}.\n{code}");
    if write {
        std::fs::write(&there, &made).unwrap();
    }
    assert!(
        made == std::fs::read_to_string(there).unwrap(),
        "bob.proto was changed: WANLAT_GENERATE=1 cargo test -p generate makes the code anew"
    );
}

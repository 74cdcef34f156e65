use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(["bob.proto"], ["."])?;
    println!("cargo::rerun-if-changed=bob.proto");
    let out = std::env::var("OUT_DIR")?;
    tonic_prost_build::configure()
        .bytes(".") // blobs are large: shared, not copied
        .file_descriptor_set_path(Path::new(&out).join("bob.bin"))
        .compile_fds(files)?;
    Ok(())
}

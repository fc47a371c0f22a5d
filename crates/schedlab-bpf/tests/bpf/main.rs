//! Objects of schedulers, read, checked and executed; the objects are built from `schedulers`.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod check;
mod fuzz;

use schedlab_bpf::{kernel_btf, Btf, Object};

/// The file of an object in `schedulers`.
fn file(name: &str) -> Vec<u8> {
    let path = format!("{}/schedulers/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn object(name: &str) -> Object {
    Object::read(&file(name)).unwrap()
}

fn kernel(name: &str) -> Btf {
    Btf::parse(&kernel_btf(&file(name)).unwrap()).unwrap()
}

//! Damaged schedulers end with an error or run, and never cause a panic.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};
use schedlab_bpf::{kernel_btf, Btf, Object};
use schedlab_scx::{stress, Stress};

fn file(name: &str) -> Vec<u8> {
    let path = format!("{}/../schedlab-bpf/schedulers/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn runs(object: &Object, seed: u64) {
    let kernel = Btf::parse(&kernel_btf(&file("lab_kernel_ext")).unwrap()).unwrap();
    let load = Stress { cpus: 2, tasks: 4, duration: 40_000_000, seed, variables: Vec::new() };
    let _ = stress(object, &kernel, &load);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Fields of instructions are changed: operations, registers, offsets, immediates.
    #[test]
    fn damaged_instructions(
        name in select(vec!["lab_vtime", "lab_errors"]),
        changes in vec((any::<Index>(), 0..5_u8, any::<i32>()), 1..6),
        seed in 0..3_u64,
    ) {
        let mut object = Object::read(&file(name)).unwrap();
        for (at, field, value) in changes {
            let at = at.index(object.insns.len());
            let insn = &mut object.insns[at];
            match field {
                0 => insn.code = value as u8,
                1 => insn.dst = value as u8 & 15,
                2 => insn.src = value as u8 & 15,
                3 => insn.off = value as i16,
                _ => insn.imm = value,
            }
        }
        runs(&object, seed);
    }

    #[test]
    fn damaged_files(changes in vec((any::<Index>(), any::<u8>()), 1..8)) {
        let mut bytes = file("lab_vtime");
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(object) = Object::read(&bytes) {
            runs(&object, 1);
        }
    }
}

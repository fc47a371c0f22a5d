//! Damaged objects and kernels are errors or are read, and never cause a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use schedlab_bpf::{check, kernel_btf, Btf, Object};

use crate::{file, kernel};

/// The file with some bytes changed: by a bit, to an extreme, or to anything.
fn damaged(mut file: Vec<u8>, changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    for (at, kind, value) in changes {
        let place = at.index(file.len());
        file[place] = match kind % 4 {
            0 => file[place] ^ 1 << (value % 8),
            1 => 0xff,
            2 => 0,
            _ => *value,
        };
    }
    file
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn damaged_objects_are_errors(name in prop::sample::select(vec!["lab_newest", "lab_vtime"]), changes in changes()) {
        if let Ok(object) = Object::read(&damaged(file(name), &changes)) {
            let _ = object.scheduler();
            let _ = check(&object, &kernel("lab_kernel_new"));
        }
    }

    #[test]
    fn damaged_kernels_are_errors(changes in changes()) {
        let object = Object::read(&file("lab_newest")).unwrap();
        if let Ok(btf) = kernel_btf(&damaged(file("lab_kernel_new"), &changes)).and_then(|btf| Btf::parse(&btf)) {
            let _ = check(&object, &btf);
        }
    }

    #[test]
    fn anything_else_is_an_error(bytes in vec(any::<u8>(), 0..2_000), keep in 0..700_usize) {
        let mut image = file("lab_vtime");
        image.truncate(keep);
        image.extend(bytes);
        let _ = Object::read(&image);
        let _ = kernel_btf(&image);
    }
}

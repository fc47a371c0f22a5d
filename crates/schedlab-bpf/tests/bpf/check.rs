//! What a kernel lacks for an object.

use schedlab_bpf::{check, needs, Lack, Needs, Object};

use crate::{file, kernel, object};

/// Asserts what a kernel lacks for an object: `needed`, and what the object has an alternative for.
#[track_caller]
fn lacks(name: &str, of: &str, needed: &[&str], optional: &[&str]) {
    let found = check(&object(name), &kernel(of)).unwrap();
    let of_kind = |needed: bool| -> Vec<String> {
        let of_kind = found.iter().filter(|lack| lack.needed == needed);
        of_kind.map(|lack| format!("{} {} at {}", lack.what, lack.name, lack.place)).collect()
    };
    assert_eq!(of_kind(true), needed, "{name} needs of {of}");
    assert_eq!(of_kind(false), optional, "{name} can do without in {of}");
}

#[test]
fn everything_that_an_old_kernel_lacks_is_named_with_its_place() {
    lacks(
        "lab_newest",
        "lab_kernel_old",
        &[
            "constant enum lab_flags.LAB_NEW_FLAG at newest_enqueue, instruction 16 (lab_newest.bpf.c:43)",
            "field struct task_struct.lab_new_field at newest_enqueue, instruction 2 (lab_newest.bpf.c:36)",
            "kfunc lab_bpf_new_function at newest_enqueue, instruction 15 (lab_newest.bpf.c:43)",
            "map BPF_MAP_TYPE_33 at map arena",
            "operation sched_ext_ops.lab_new_operation at newest_ops",
        ],
        &[
            "field struct task_struct.lab_optional_field at newest_enqueue, instruction 5 (lab_newest.bpf.c:40)",
            "kfunc lab_bpf_changed_function at newest_enqueue, instruction 13 (lab_newest.bpf.c:42)",
            "kfunc scx_bpf_dispatch at newest_enqueue, instruction 31 (lab.h:105)",
        ],
    );
}

#[test]
fn a_kernel_that_has_everything_lacks_only_alternatives() {
    let old_name = "kfunc scx_bpf_dispatch at newest_enqueue, instruction 31 (lab.h:105)";
    lacks("lab_newest", "lab_kernel_new", &[], &[old_name]);
}

#[test]
fn a_function_with_other_parameters_is_absent_and_the_reason_is_given() {
    let found = check(&object("lab_newest"), &kernel("lab_kernel_old")).unwrap();
    let changed: Vec<&Lack> = found.iter().filter(|lack| lack.name == "lab_bpf_changed_function").collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].why, Some("its parameters or result differ"));
}

/// The types of an object of a scheduler are a kernel whose `sched_ext_ops` has a flavour: it has no such struct.
#[test]
fn a_kernel_without_sched_ext_gets_one_answer() {
    let needed = ["option CONFIG_SCHED_CLASS_EXT at "];
    lacks("lab_fifo", "lab_newest", &needed, &[]);
}

#[test]
fn needs_are_counted() {
    let expected = Needs { kfuncs: 9, relocations: 8, maps: 1, operations: 7 };
    assert_eq!(needs(&object("lab_vtime")), expected);
}

#[test]
fn an_object_is_found_in_a_program_that_embeds_it() {
    let mut program = b"\x7fELF\x02\x01\x01 a program, then its object:".to_vec();
    program.extend(file("lab_fifo"));
    program.extend(b"and more of the program");
    let names = |object: &Object| object.functions.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&Object::read(&program).unwrap()), names(&object("lab_fifo")));
}

#[test]
fn what_is_no_scheduler_is_refused_with_a_reason() {
    let refused = |file: &[u8]| Object::read(file).and_then(|object| object.scheduler().map(|_| ())).unwrap_err();
    for (file, message) in [
        (b"not an object".to_vec(), "this is not a BPF object, and none is embedded in it"),
        (file("lab_kernel_old"), "the BPF object is no scheduler: it has no `struct sched_ext_ops`"),
    ] {
        let error = refused(&file);
        assert_eq!(error.message, message);
        assert!(error.hint.is_some(), "{message}");
    }
}

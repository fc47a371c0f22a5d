//! Schedulers under random loads: which of them end, and how.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use schedlab_bpf::{kernel_btf, Btf, Object};
use schedlab_scx::{stress, ExitKind, Outcome, Stress};

fn file(name: &str) -> Vec<u8> {
    let path = format!("{}/../schedlab-bpf/schedulers/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn types(kernel: &str) -> Btf {
    Btf::parse(&kernel_btf(&file(kernel)).unwrap()).unwrap()
}

fn kernel() -> Btf {
    types("lab_kernel_ext")
}

fn load(seed: u64, variables: &[(&str, i64)]) -> Stress {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Stress { cpus: 2, tasks: 6, duration: 8_000_000_000, seed, variables }
}

fn run(name: &str, load: &Stress) -> Outcome {
    stress(&Object::read(&file(name)).unwrap(), &kernel(), load).unwrap()
}

#[test]
fn sound_schedulers_run_every_task() {
    for name in ["lab_fifo", "lab_vtime"] {
        for seed in 1..6 {
            let outcome = run(name, &load(seed, &[]));
            assert_eq!(outcome.exit, None, "{name}, seed {seed}");
            assert!(outcome.wakeups > 100 && outcome.instructions > 10_000, "{name}, seed {seed}: {outcome:?}");
        }
    }
}

/// The scheduler's `init` fails with the number of the first thing that is wrong.
#[test]
fn maps_masks_iterators_and_atomics_do_what_the_kernel_does() {
    let outcome = run("lab_surface", &load(1, &[]));
    assert_eq!(outcome.exit, None);
    assert!(outcome.instructions > 300, "{outcome:?}");
}

#[test]
fn a_run_follows_from_its_seed() {
    assert_eq!(run("lab_vtime", &load(3, &[])), run("lab_vtime", &load(3, &[])));
    assert_ne!(run("lab_vtime", &load(3, &[])), run("lab_vtime", &load(4, &[])));
}

/// Asserts how a scheduler ends.
#[track_caller]
fn ends(name: &str, variables: &[(&str, i64)], kind: ExitKind, message: &str, place: &str) {
    let exit = run(name, &load(1, variables)).exit.unwrap_or_else(|| panic!("{name} {variables:?} does not end"));
    assert_eq!(exit.kind, kind, "{name}: {exit:?}");
    assert!(exit.message.contains(message), "{name}: {exit:?}");
    assert!(exit.place.contains(place), "{name}: {exit:?}");
}

#[test]
fn a_forgotten_task_is_a_stall() {
    ends("lab_stall", &[], ExitKind::ErrorStall, "it is on no queue: the scheduler has inserted it nowhere", "");
}

/// With another value of its read-only variable the scheduler forgets no task in this time.
#[test]
fn variables_are_set_before_the_start() {
    assert_eq!(run("lab_stall", &load(1, &[("every", 1_000_000_000)])).exit, None);
}

#[test]
fn a_bad_pointer_ends_the_scheduler_with_its_place() {
    let place = "ops.enqueue() in note, instruction 7 (lab_bad_pointer.bpf.c:16)";
    ends("lab_bad_pointer", &[], ExitKind::Error, "bad write of 8 bytes at NULL + 0", place);
}

#[test]
fn an_endless_loop_ends_the_scheduler() {
    ends(
        "lab_loop",
        &[],
        ExitKind::Error,
        "has not returned after 1000000 instructions",
        "ops.dispatch() in loop_dispat",
    );
}

#[test]
fn errors_have_the_messages_of_the_kernel() {
    let table = [
        (1, "cannot use vtime ordering for built-in DSQs"),
        (2, "non-existent DSQ 0x63 for task-"),
        (3, "already direct-dispatched"),
        (4, "invalid CPU 1000 from ops.select_cpu()"),
        (5, "scx_bpf_create_dsq may not be called from this operation"),
        (6, "bad write of 4 bytes at byte"),
        (7, "bad write of 8 bytes at byte"),
        (8, "not allowed for task-"),
        (9, "-enqueued tasks"),
        (10, "invalid DSQ ID 0x0000000000000004"),
        (11, "the CPUs reschedule without end"),
    ];
    for (error, message) in table {
        ends("lab_errors", &[("error", error)], ExitKind::Error, message, "");
    }
    assert_eq!(run("lab_errors", &load(1, &[])).exit, None);
}

/// A scheduler, a kernel, variables, the message.
type Refusal = (&'static str, &'static str, &'static [(&'static str, i64)], &'static str);

#[test]
fn what_cannot_be_loaded_is_an_error() {
    let refused = |name: &str, on: &str, variables: &[(&str, i64)]| {
        stress(&Object::read(&file(name)).unwrap(), &types(on), &load(1, variables)).unwrap_err().message
    };
    let table: [Refusal; 5] = [
        ("lab_newest", "lab_kernel_new", &[], "map arena: its kind 33 is not modelled"),
        (
            "lab_newest",
            "lab_kernel_old",
            &[],
            "the kernel refuses the scheduler: it lacks constant enum lab_flags.LAB_NEW_FLAG, which newest_enqueue, \
             instruction 16 (lab_newest.bpf.c:43) uses",
        ),
        ("lab_fifo", "lab_newest", &[], "the kernel refuses the scheduler: it lacks option CONFIG_SCHED_CLASS_EXT"),
        ("lab_fifo", "lab_kernel_ext", &[("slice", 3)], "the object has no variable `slice`"),
        (
            "lab_stall",
            "lab_kernel_ext",
            &[("every", 1 << 40)],
            "1099511627776 does not fit the variable `every` of 4 bytes",
        ),
    ];
    for (name, on, variables, message) in table {
        assert_eq!(refused(name, on, variables), message);
    }
}

//! Functions that follow a kernel function carry its name: `grep -rn "fn place_entity"` finds it. Core code names no
//! class.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that follow functions of the kernel, from this one.
const CRATES: [&str; 2] = ["src", "../schedlab-sim/src"];

/// Functions that a newcomer looks for; the test would find nothing wrong in an empty directory.
const LANDMARKS: [&str; 32] = [
    "select_idle_sibling",
    "select_idle_cpu",
    "select_idle_core",
    "select_idle_smt",
    "sched_balance_find_dst_cpu",
    "wake_affine",
    "wake_wide",
    "sched_balance_newidle",
    "sched_balance_rq",
    "update_sd_lb_stats",
    "sched_balance_find_src_group",
    "detach_tasks",
    "attach_tasks",
    "active_load_balance_cpu_stop",
    "update_blocked_averages",
    "update_cfs_group",
    "calc_group_shares",
    "place_entity",
    "pick_eevdf",
    "update_deadline",
    "update_entity_lag",
    "avg_vruntime",
    "entity_eligible",
    "propagate_entity_load_avg",
    "set_next_entity",
    "put_prev_entity",
    "update_curr",
    "enqueue_entity",
    "dequeue_entity",
    "enqueue_task_fair",
    "reweight_entity",
    "throttle_cfs_rq",
];

#[test]
fn functions_carry_the_name_that_their_documentation_begins_with() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (function, line, doc) in documented(&text) {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
            if let Some(kernel) = follows(doc).filter(|kernel| !carries(function, kernel, stem)) {
                wrong.push(format!("{}:{line}: fn {function} follows `{kernel}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "rename, or begin the comment with a sentence of its own:\n{}", wrong.join("\n"));
}

#[test]
fn landmarks_are_found_by_name() {
    let all: String = sources().into_iter().map(|(_, text)| text).collect();
    let missing: Vec<&str> = LANDMARKS.into_iter().filter(|name| !all.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "no function of this name: {missing:?}");
}

/// A method may leave out what its class or its file says already: `enqueue_task` of the fair class is
/// `enqueue_task_fair`, `set` in `cpudl.rs` is `cpudl_set`, `__setparam_dl` is `setparam`.
fn carries(function: &str, kernel: &str, stem: &str) -> bool {
    let of_class = ["_fair", "_rt", "_dl"].iter().find_map(|class| kernel.strip_suffix(class)).unwrap_or(kernel);
    let of_file = kernel.strip_prefix(stem).and_then(|rest| rest.strip_prefix('_'));
    [Some(kernel), Some(of_class), Some(of_class.trim_start_matches('_')), of_file].contains(&Some(function))
}

/// The kernel function that a comment of the form "`name`: ...", "`name`." or "`name` (...)" says is followed.
fn follows(doc: &str) -> Option<&str> {
    let (name, rest) = doc.strip_prefix('`')?.split_once('`')?;
    let is_function =
        name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (is_function && [":", ".", ",", " ("].iter().any(|end| rest.starts_with(end))).then_some(name)
}

/// Every documented function with its line and the first line of its comment.
fn documented(text: &str) -> Vec<(&str, usize, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(function) = function_of(line) else { continue };
        let above = lines[..at].iter().rev().skip_while(|line| line.starts_with("#["));
        let comment = above.take_while(|line| line.starts_with("///")).last();
        found.extend(comment.map(|doc| (function, at + 1, doc.trim_start_matches('/').trim())));
    }
    found
}

fn function_of(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        None => line,
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
    };
    let name = rest.strip_prefix("const ").unwrap_or(rest).strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = CRATES.iter().map(|part| root.join(part)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Core code calls classes through their list: a class is named there once, where the list is declared.
#[test]
fn core_code_names_no_class() {
    let core = |path: &Path| {
        path.components().any(|part| ["sched", "sched.rs", "procedure"].iter().any(|name| part.as_os_str() == *name))
    };
    let mut wrong = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| core(path)) {
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (at, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let owners = ["self", "sched", "classes", "sched()"];
            let named = owners
                .iter()
                .any(|owner| ["fair", "rt", "dl"].iter().any(|class| line.contains(&format!("{owner}.{class}."))));
            if named {
                wrong.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "call the classes through `ClassList`:\n{}", wrong.join("\n"));
}

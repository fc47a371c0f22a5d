//! Traces written in tests, read into operations.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Reader;
use crate::header::kernel;
use crate::operation::Operation;
use crate::trace::Window;

/// The operations of a trace with two CPUs: the kernel's release and lines of ftrace text, whose indentation does not
/// matter.
pub fn operations(release: &str, text: &str) -> Vec<Operation> {
    static NTH: AtomicUsize = AtomicUsize::new(0);
    let nth = NTH.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("schedlab-reader-{}-{nth}.ftrace", std::process::id()));
    let header = format!("# kernel {release} cpus 2\n# hz 250\n# sched_autogroup_enabled 0\n#\n");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    std::fs::write(&path, header + &lines.join("\n") + "\n").unwrap();
    let mut trace = schedlab_trace::open(&path).unwrap();
    let mut header = trace.header().clone();
    let mut window = Window::new(&mut *trace);
    let mut next = window.next().unwrap();
    header.nr_cpus = Some(window.fix_cpus(header.nr_cpus));
    let mut reader = Reader::new(kernel(&header));
    let mut operations = Vec::new();
    while let Some(entry) = next {
        operations.extend(reader.read(&entry, &window));
        next = window.next().unwrap();
    }
    std::fs::remove_file(&path).unwrap();
    operations
}

/// Those of them that tests use, in short.
pub fn words(operations: &[Operation]) -> Vec<String> {
    operations.iter().filter_map(word).collect()
}

fn word(operation: &Operation) -> Option<String> {
    Some(match operation {
        Operation::Repick { cpu, .. } => format!("repick cpu{}", cpu.0),
        Operation::Switch(switch) => format!("switch {} to {}", switch.prev, switch.next),
        Operation::Fork { child, .. } => format!("fork {child}"),
        Operation::Wakeup(wakeup) => format!("wake {}", wakeup.pid),
        Operation::Attach { pid, .. } => format!("attach {pid}"),
        Operation::Block { .. } => "block".to_owned(),
        Operation::UpdateBlockedAverages { cpu, .. } => format!("update loads of cpu{}", cpu.0),
        Operation::Yield { cpu } => format!("yield cpu{}", cpu.0),
        Operation::Tick { .. } => "tick".to_owned(),
        Operation::SetAffinity { pid } => format!("affinity of {pid}"),
        Operation::FinishDelayed { pid } => format!("delay of {pid} ends"),
        Operation::SetNice { pid, nice } => format!("nice of {pid} is {nice}"),
        Operation::Reweight { pid, weight } => format!("weight of {pid} is {weight:?}"),
        Operation::UpdateCurr(charge) => format!("charge {}", charge.pid),
        _ => return None,
    })
}

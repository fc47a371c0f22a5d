//! The scenario that an extraction writes.

use std::fmt::Write;

use schedlab_model::Nanos;

use crate::cycles::Part;
use crate::load::{Extracted, Load};
use crate::program::Program;
use crate::steps::StepKind;

/// Values of a recorded sequence on one line.
const ON_A_LINE: usize = 12;

/// The costs that a machine must state. The recorded work contains those of the recorded kernel.
const COSTS: [&str; 28] = [
    "syscall",
    "switch-thread",
    "switch-process",
    "irq",
    "tick",
    "timer-program",
    "pipe-read",
    "pipe-write",
    "socket-receive",
    "socket-send",
    "copy-kib",
    "futex-wake",
    "fork-process",
    "fork-thread",
    "exec",
    "exit-process",
    "exit-thread",
    "balance-pass",
    "balance-cpu",
    "fault",
    "clear-kib",
    "read-kib",
    "unmap-page",
    "copy-page-table",
    "user-op",
    "irq-entry",
    "wakeup-clock",
    "timer-resume",
];
/// Those that depend on the distance of two CPUs.
const COSTS_BY_DISTANCE: [&str; 2] = ["scan-cpu", "ipi"];

/// Writes the scenario, with the recorded kernel as its only variant.
#[must_use]
pub fn scenario(load: &Load) -> String {
    let mut out = String::new();
    head(&mut out, load);
    machine(&mut out, load);
    for group in &load.groups {
        let _ = write!(out, "\n[[cgroup]]\nname = \"{}\"\n{}", group.path, group.weight);
    }
    out.push_str("\n[[workload]]\nname = \"recorded\"\n");
    for (queue, times) in &load.queues {
        let _ = write!(out, "\n[[workload.remote]]\nname = \"{queue}\"\nsend = \"{queue}\"\nsoftirq = \"0s\"\n");
        let before = std::iter::once(&0).chain(times);
        let between: Vec<Nanos> = times.iter().zip(before).map(|(time, before)| time - before).collect();
        let _ = writeln!(out, "every = {}", lengths(&between));
    }
    for task in &load.tasks {
        self::task(&mut out, load, task);
    }
    variant(&mut out, load);
    out
}

fn head(out: &mut String, load: &Load) {
    let _ = writeln!(out, "# Extracted from a recording by schedlab whatif. What the recording lacks:");
    for note in &load.notes {
        let _ = writeln!(out, "# - {note}");
    }
    let _ = write!(out, "\nname = \"{}\"\nduration = \"{}\"\nseeds = 3\n", load.name, show(load.span));
}

fn machine(out: &mut String, load: &Load) {
    let _ = write!(out, "\n[machine]\nname = \"recorded\"\nhz = {}\ntopology = {}\n", load.kernel.hz, load.topology);
    out.push_str("\n# Of the costs, only those of a wakeup and of a switch were separated from the recorded work.\n[machine.costs]\n");
    let _ = writeln!(out, "wakeup.constant = \"{}\"", show(load.costs.wakeup));
    let _ = writeln!(out, "schedule.constant = \"{}\"", show(load.costs.switch));
    for cost in COSTS {
        let _ = writeln!(out, "{cost}.constant = \"0s\"");
    }
    for cost in COSTS_BY_DISTANCE {
        let at =
            ["same", "smt", "llc", "node", "remote"].map(|distance| format!("{distance} = {{ constant = \"0s\" }}"));
        let _ = writeln!(out, "{cost} = {{ {} }}", at.join(", "));
    }
    out.push_str("\n[[machine.idle]]\nname = \"idle\"\nexit = { constant = \"0s\" }\n");
}

fn task(out: &mut String, load: &Load, task: &Extracted) {
    let Extracted { name, forked, attributes, program, .. } = task;
    let _ = write!(out, "\n[[workload.task]]\nname = \"{name}\"\ntimer-slack = \"1ns\"\n{attributes}");
    if *forked {
        out.push_str("count = 0\n");
    }
    out.push_str("program = [\n");
    let writer = Writer { load, name, program, queue: &task.queue };
    writer.parts(out, &program.first, "    ");
    if !program.then.is_empty() {
        out.push_str("    { loop = \"forever\", do = [\n");
        // A single cycle takes its sequences from their start again.
        match &program.then[..] {
            [cycle] => writer.body(out, cycle, "        "),
            parts => writer.parts(out, parts, "        "),
        }
        out.push_str("    ] },\n");
    } else if !program.exits {
        out.push_str("    { sleep = \"24h\" },\n");
    }
    out.push_str("]\n");
}

struct Writer<'a> {
    load: &'a Load,
    name: &'a str,
    program: &'a Program,
    queue: &'a str,
}

impl Writer<'_> {
    fn parts(&self, out: &mut String, parts: &[Part], indent: &str) {
        for part in parts {
            if part.times == 1 {
                self.body(out, part, indent);
            } else {
                let _ = writeln!(out, "{indent}{{ loop = {}, do = [", part.times);
                self.body(out, part, &format!("{indent}    "));
                let _ = writeln!(out, "{indent}] }},");
            }
        }
    }

    fn body(&self, out: &mut String, part: &Part, indent: &str) {
        let mut written = false;
        for (kind, of) in &part.steps {
            if let Some(step) = self.step(*kind, of) {
                let _ = writeln!(out, "{indent}{{ {step} }},");
                written = true;
            }
        }
        if !written {
            let _ = writeln!(out, "{indent}{{ run = \"1ns\" }},");
        }
    }

    fn step(&self, kind: StepKind, of: &[Nanos]) -> Option<String> {
        let name = self.name;
        let of_task = |task: usize| self.load.names.get(task).map_or("", String::as_str);
        Some(match kind {
            StepKind::Run if of.iter().all(|ns| *ns == 0) => return None,
            StepKind::Run => format!("run = {}", lengths(of)),
            StepKind::Sleep => format!("sleep = {}", lengths(of)),
            StepKind::Timer => {
                let Program { period, mode, .. } = self.program;
                format!("timer = \"t-{name}\", period = \"{}\", mode = \"{mode}\"", show(*period))
            }
            StepKind::Wait => format!("sem-wait = \"w-{name}\""),
            StepKind::Post(task) if !self.load.waits(task) => return None,
            StepKind::Post(task) => format!("sem-post = \"w-{}\"", of_task(task)),
            StepKind::Receive => format!("receive = \"{}\"", self.queue),
            StepKind::Fork(task) => format!("fork = \"{}\"", of_task(task)),
            StepKind::Prio(prio) => match prio {
                100.. => format!("nice = {}", (prio - 120).clamp(-20, 19)),
                _ => format!("policy = \"{}\"", real_time(prio)),
            },
            StepKind::Forever => "sleep = \"24h\"".to_owned(),
        })
    }
}

/// The policy of a task with this priority below 100. `sched_switch` does not tell FIFO from RR.
#[must_use]
pub fn real_time(prio: i32) -> String {
    format!("fifo:{}", (99 - prio).clamp(1, 99))
}

fn variant(out: &mut String, load: &Load) {
    let kernel = &load.kernel;
    let _ = write!(out, "\n[[variant]]\nname = \"recorded\"\nkernel = \"{}\"\n", kernel.row.name);
    for line in &kernel.lines {
        let _ = writeln!(out, "{line}");
    }
}

/// One length, or a recorded sequence.
fn lengths(of: &[Nanos]) -> String {
    match of {
        [] => "\"0s\"".to_owned(),
        [first, rest @ ..] if rest.iter().all(|ns| ns == first) => format!("\"{}\"", show(*first)),
        _ => {
            let lines: Vec<String> = of
                .chunks(ON_A_LINE)
                .map(|line| line.iter().map(|ns| show(*ns)).collect::<Vec<_>>().join(" "))
                .collect();
            match &lines[..] {
                [line] => format!("{{ recorded = \"{line}\" }}"),
                _ => format!("{{ recorded = \"\"\"\n{}\"\"\" }}", lines.join("\n")),
            }
        }
    }
}

/// A duration in the largest unit in which it is exact, with decimals of microseconds.
pub fn show(ns: Nanos) -> String {
    match ns {
        0 => "0s".to_owned(),
        _ if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        _ if ns % 1000 == 0 => format!("{}us", ns / 1000),
        _ if ns < 1000 => format!("{ns}ns"),
        _ => {
            let part = format!("{:03}", ns % 1000);
            format!("{}.{}us", ns / 1000, part.trim_end_matches('0'))
        }
    }
}

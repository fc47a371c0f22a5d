//! The ends of wakeups that are added to recordings without `sched_wakeup`, against those of recordings that have them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;

use schedlab_model::{CpuId, Pid};
use schedlab_trace::{Flags, Header, Kind, TaskState};

use super::entry::{Entry, What};
use super::select::SelectFlags;
use super::wakeups::Wakeups;

/// The events of a recording of the corpus.
fn recorded(name: &str) -> (Header, Vec<Entry>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.ftrace.gz"));
    let mut reader = schedlab_trace::open(&path).unwrap();
    let header = reader.header().clone();
    let (selects, mut entries) = (SelectFlags::of(&header), Vec::new());
    while let Some(record) = reader.next_record().unwrap() {
        entries.extend(Entry::of(&record, selects).into_iter().flatten().filter(|entry| entry.kind().is_some()));
    }
    (header, entries)
}

/// The same events without `sched_wakeup`, and with the ends of wakeups that are added.
fn completed(header: &Header, entries: &[Entry]) -> Vec<Entry> {
    let mut wakeups = Wakeups::new(header);
    entries.iter().filter(|entry| !is_wakeup(entry)).for_each(|entry| wakeups.push(*entry));
    wakeups.end();
    std::iter::from_fn(|| wakeups.pop()).collect()
}

fn is_wakeup(entry: &Entry) -> bool {
    matches!(entry.what, What::Event(Kind::Wakeup { .. }))
}

/// The wakeups, each as the task, its CPU, and the number of other events of that CPU before it.
fn places(entries: &[Entry]) -> Vec<(Pid, CpuId, usize)> {
    let mut others: std::collections::BTreeMap<CpuId, usize> = std::collections::BTreeMap::new();
    let mut places = Vec::new();
    for entry in entries {
        match entry.kind() {
            Some(Kind::Wakeup { pid, target_cpu, .. }) => {
                places.push((pid, target_cpu, others.get(&target_cpu).copied().unwrap_or(0)));
            }
            _ => *others.entry(entry.cpu).or_default() += 1,
        }
    }
    places
}

/// Recordings of one CPU, of CFS and of EEVDF, with and without groups: the order of their events is exact.
const ONE_CPU: &[&str] = &[
    "5.2.1-1cpu-batch-wake",
    "5.10.262-1cpu-hackbench",
    "6.1.192-1cpu-futex",
    "6.1.192-1cpu-hackbench-autogroup",
    "6.12.107-1cpu-hack",
    "6.18.12-1cpu-sleep-fork",
    "7.2.13-1cpu-switch",
    "7.3.4-1cpu-niced",
];

#[test]
fn on_one_cpu_every_wakeup_ends_where_the_recording_has_it() {
    for name in ONE_CPU {
        let (header, entries) = recorded(name);
        let (wanted, found) = (places(&entries), places(&completed(&header, &entries)));
        let missed: Vec<_> = wanted.iter().filter(|place| !found.contains(place)).collect();
        assert!(wanted.len() > 50 && missed.is_empty(), "{name}: {} of {}: {missed:?}", missed.len(), wanted.len());
    }
}

/// Recordings of several CPUs: where code of two CPUs runs at the same time, the order of its records is not that of
/// what it does.
const SEVERAL_CPUS: &[&str] = &["6.1.192-2cpu-hack", "6.1.192-4cpu-balance", "6.16.12-4cpu-mix", "7.2.13-8cpu-mix"];

#[test]
fn on_several_cpus_nine_in_ten_do_at_least() {
    for name in SEVERAL_CPUS {
        let (header, entries) = recorded(name);
        let (wanted, found) = (places(&entries), places(&completed(&header, &entries)));
        let missed = wanted.iter().filter(|place| !found.contains(place)).count();
        assert!(missed * 10 < wanted.len(), "{name}: {missed} of {}", wanted.len());
    }
}

#[test]
fn a_recording_with_wakeups_stays_as_it_is() {
    let (header, entries) = recorded("6.1.192-2cpu-futex");
    let mut wakeups = Wakeups::new(&header);
    entries.iter().for_each(|entry| wakeups.push(*entry));
    wakeups.end();
    let kept: Vec<_> = std::iter::from_fn(|| wakeups.pop()).collect();
    assert!(kept.len() == entries.len() && kept.iter().all(|entry| !entry.inferred));
}

/// A rule, the records of a trace without `sched_wakeup`, and behind how many of them each task's wakeup ends.
type Rule = (&'static str, &'static str, &'static [(Pid, usize)]);

/// Each rule by itself.
const RULES: &[Rule] = &[
    (
        "behind the charge of the running task",
        "0 1 waking 9 0
         0 1 runtime 1
         0 1 2 runtime 1
         0 1 2 switch 1 R 9",
        &[(9, 2)],
    ),
    (
        "behind the migration to a CPU that is idle, before its switch",
        "1 5 switch 5 S 0
         0 1 waking 9 0
         0 1 migrate 9 0 1
         0 1 runtime 1
         1 0 switch 0 R 9",
        &[(9, 4)],
    ),
    (
        "an idle CPU finds the tasks on its wakelist in the order in which they woke",
        "1 5 switch 5 S 0
         0 1 waking 9 1
         0 1 waking 8 1
         0 1 2 runtime 1
         1 0 switch 0 R 9
         1 9 switch 9 S 8",
        &[(9, 4), (8, 4)],
    ),
    (
        "a real-time task charges nothing: the charge is that of schedule()",
        "0 1 rt-waking 9 0
         0 1 runtime 1
         0 1 switch 1 R 9",
        &[(9, 1)],
    ),
    (
        "a task that is on its way to sleep is waited for",
        "1 0 switch 0 R 9
         0 1 waking 9 1
         1 9 runtime 9
         1 9 switch 9 S 4
         0 1 runtime 4
         1 4 switch 4 S 9",
        &[(9, 5)],
    ),
    (
        "a task that wakes itself goes on",
        "0 0 switch 0 R 9
         0 9 waking 9 0
         0 9 runtime 9
         0 9 switch 9 S 9",
        &[(9, 2)],
    ),
    (
        "schedule() charges without the locks of a wakeup: a task of another group was woken",
        "0 1 waking 9 0
         0 1 2 runtime 1
         0 1 2 switch 1 R 9",
        &[(9, 1)],
    ),
];

#[test]
fn wakeups_that_stay_open_hold_no_more_than_the_records_behind_them() {
    let idles = [entry(0, "1 5 switch 5 S 0"), entry(1, "2 6 switch 6 S 0")];
    let mut wakeups = Wakeups::new(&Header::default());
    idles.into_iter().for_each(|entry| wakeups.push(entry));
    let (mut pushed, mut popped) = (2, 0);
    for round in 0..40_000 {
        // Of two idle CPUs one always has a task on its wakelist.
        let (woken, other) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        let (next, running) = (10 + woken, 10 + other);
        let lines = [
            format!("0 4 waking {next} {woken}"),
            "0 4 2 runtime 4".to_owned(),
            format!("{other} 0 switch 0 R {running}"),
            format!("{other} {running} switch {running} S 0"),
        ];
        for line in lines {
            wakeups.push(entry(round, &line));
            pushed += 1;
        }
        while wakeups.pop().is_some() {
            popped += 1;
        }
        assert!(round < 10_000 || pushed + wakeups.added() as usize - popped < 100, "{pushed} {popped}");
    }
    assert!(wakeups.added() > 30_000);
}

#[test]
fn nothing_is_added_from_the_first_recorded_wakeup_on() {
    let (header, entries) = recorded("6.1.192-2cpu-futex");
    let mut wakeups = Wakeups::new(&header);
    let without: Vec<_> = entries.iter().filter(|entry| !is_wakeup(entry)).collect();
    let rounds = (1 << 15) / without.len() + 1;
    (0..rounds).flat_map(|_| without.iter()).for_each(|entry| wakeups.push(**entry));
    entries.iter().for_each(|entry| wakeups.push(*entry));
    wakeups.end();
    let all: Vec<_> = std::iter::from_fn(|| wakeups.pop()).collect();
    let recorded = all.iter().position(|entry| is_wakeup(entry) && !entry.inferred).unwrap();
    assert!(all[..recorded].iter().any(|entry| entry.inferred));
    assert!(!all[recorded..].iter().any(|entry| entry.inferred));
}

#[test]
fn each_rule() {
    for (name, text, wanted) in RULES {
        let entries: Vec<_> = text.lines().enumerate().map(|(at, line)| entry(at, line)).collect();
        let mut before = 0;
        let mut found = Vec::new();
        for entry in completed(&Header::default(), &entries) {
            match entry.kind() {
                Some(Kind::Wakeup { pid, .. }) => found.push((pid, before)),
                _ => before += 1,
            }
        }
        assert_eq!(found, *wanted, "{name}");
    }
}

/// An event: its CPU, the task that runs there, the preempt count if it is not that of a wakeup, its name and fields.
fn entry(at: usize, line: &str) -> Entry {
    let words: Vec<_> = line.split_whitespace().collect();
    let depth = words[2].parse::<u8>().ok();
    let event = if depth.is_some() { &words[3..] } else { &words[2..] };
    let number = |word: &str| word.parse::<i32>().unwrap();
    let cpu = |word: &str| CpuId(word.parse().unwrap());
    let kind = match *event {
        ["waking", pid, on] => Kind::Waking { pid: number(pid), prio: 120, target_cpu: cpu(on) },
        ["rt-waking", pid, on] => Kind::Waking { pid: number(pid), prio: 50, target_cpu: cpu(on) },
        ["runtime", pid] => Kind::Runtime { pid: number(pid), runtime: 1000, vruntime: None },
        ["migrate", pid, from, to] => {
            Kind::Migrate { pid: number(pid), prio: 120, orig_cpu: cpu(from), dest_cpu: cpu(to) }
        }
        ["switch", prev, state, next] => Kind::Switch {
            prev: number(prev),
            prev_prio: 120,
            prev_state: if state == "R" { TaskState::Running } else { TaskState::Sleeping },
            next: number(next),
            next_prio: 120,
        },
        _ => panic!("{line}"),
    };
    let is_charge = matches!(kind, Kind::Runtime { .. });
    Entry {
        time: 1_000_000 + at as u64,
        cpu: cpu(words[0]),
        pid: number(words[1]),
        flags: Flags::parse(&format!("d..{}.", depth.unwrap_or(if is_charge { 4 } else { 3 }))).unwrap(),
        what: What::Event(kind),
        preempts: false,
        inferred: false,
    }
}

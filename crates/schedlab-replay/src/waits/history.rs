//! What each CPU did lately, as far back as some task waits.

use std::collections::{BTreeMap, VecDeque};

use schedlab_model::{CpuId, Nanos, Pid};

/// Runs of all CPUs beyond which those that no wait needs are forgotten.
const LONG: usize = 20_000;
/// Runs of all CPUs beyond which the oldest are forgotten, needed or not.
const LONGEST: usize = 1_000_000;

/// What each CPU has run.
#[derive(Default)]
pub struct History {
    cpus: BTreeMap<CpuId, Cpu>,
    runs: usize,
    /// Nothing before this time is known.
    known_from: Nanos,
    /// How many runs there may be before old ones are looked for again.
    limit: usize,
}

#[derive(Default)]
struct Cpu {
    /// The task that runs, its priority, and since when.
    current: Option<(Pid, i32, Nanos)>,
    runs: VecDeque<Run>,
}

/// A time in which a CPU ran one task.
#[derive(Clone, Copy)]
struct Run {
    pid: Pid,
    prio: i32,
    start: Nanos,
    end: Nanos,
}

/// How long a task ran during a wait, and its priority.
#[derive(Clone, Copy)]
pub struct Turn {
    pub pid: Pid,
    pub prio: i32,
    pub ns: Nanos,
}

/// What happened during a wait.
pub struct Meanwhile {
    pub ran: Vec<Turn>,
    pub idle: Nanos,
    /// The other CPU that was idle for longest.
    pub elsewhere: Option<(CpuId, Nanos)>,
    pub cut: bool,
}

impl History {
    /// A CPU switches. `complete`: no records are missing since its last switch, so that its task ran until now.
    pub fn switch(&mut self, cpu: CpuId, now: Nanos, complete: bool, next: (Pid, i32)) {
        let own = self.cpus.entry(cpu).or_default();
        if let Some((pid, prio, start)) = own.current.filter(|_| complete) {
            own.runs.push_back(Run { pid, prio, start, end: now });
            self.runs += 1;
        }
        own.current = Some((next.0, next.1, now));
    }

    /// The task that runs on a CPU.
    pub fn current(&self, cpu: CpuId) -> Option<Pid> {
        self.cpus.get(&cpu)?.current.map(|(pid, ..)| pid)
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Records are missing: nothing is known any more.
    pub fn forget(&mut self) {
        self.cpus.values_mut().for_each(|cpu| *cpu = Cpu::default());
        self.runs = 0;
    }

    /// Whether it has grown so long that old runs should be forgotten.
    pub fn is_long(&self) -> bool {
        self.runs > self.limit.max(LONG)
    }

    /// Forgets the runs that ended before a time.
    pub fn forget_before(&mut self, from: Nanos) {
        for cpu in self.cpus.values_mut() {
            while cpu.runs.front().is_some_and(|run| run.end <= from) {
                cpu.runs.pop_front();
            }
        }
        self.runs = self.cpus.values().map(|cpu| cpu.runs.len()).sum();
        while self.runs > LONGEST / 2 && self.limit >= LONGEST / 2 {
            self.forget_half();
        }
        self.limit = (2 * self.runs).clamp(LONG, LONGEST);
    }

    fn forget_half(&mut self) {
        for cpu in self.cpus.values_mut() {
            let half = cpu.runs.len().div_ceil(2);
            if let Some(last) = cpu.runs.drain(..half).next_back() {
                self.known_from = self.known_from.max(last.end);
            }
        }
        self.runs = self.cpus.values().map(|cpu| cpu.runs.len()).sum();
    }

    /// What happened while `waiter` was on these queues, each from its time on, until now.
    pub fn meanwhile(&self, queues: &[(CpuId, Nanos)], now: Nanos, waiter: Pid) -> Meanwhile {
        let mut ran: BTreeMap<Pid, Turn> = BTreeMap::new();
        let (mut idle, mut elsewhere) = (0, BTreeMap::<CpuId, Nanos>::new());
        let ends = queues.iter().skip(1).map(|(_, until)| *until).chain([now]);
        for ((queue, from), to) in queues.iter().zip(ends) {
            for (cpu, run) in self.cpus.iter().flat_map(|(cpu, own)| own.within(*from, to).map(|run| (*cpu, run))) {
                let ns = run.end - run.start;
                match (cpu == *queue, run.pid) {
                    (true, 0) => idle += ns,
                    (false, 0) => *elsewhere.entry(cpu).or_default() += ns,
                    (true, pid) if pid != waiter => {
                        ran.entry(pid).or_insert(Turn { pid, prio: run.prio, ns: 0 }).ns += ns;
                    }
                    _ => {}
                }
            }
        }
        let from = queues.first().map_or(now, |(_, from)| *from);
        let elsewhere = elsewhere.into_iter().max_by_key(|(_, ns)| *ns);
        Meanwhile { ran: ran.into_values().collect(), idle, elsewhere, cut: from < self.known_from }
    }
}

impl Cpu {
    /// The runs between two times, the running one included, cut to them.
    fn within(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = Run> + '_ {
        let first = self.runs.partition_point(|run| run.end <= from);
        let running = self.current.map(|(pid, prio, start)| Run { pid, prio, start, end: to });
        let cut = move |run: Run| Run { start: run.start.max(from), end: run.end.min(to), ..run };
        self.runs.range(first..).copied().chain(running).map(cut).filter(|run| run.start < run.end)
    }
}

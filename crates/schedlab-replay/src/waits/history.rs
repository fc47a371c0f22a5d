//! What each CPU did lately, as far back as some task waits.

use std::collections::{BTreeMap, VecDeque};

use schedlab_model::{CpuId, Nanos, Pid};

/// Slices of all CPUs beyond which those that no wait needs are forgotten.
const LONG: usize = 20_000;
/// Slices of all CPUs beyond which the oldest are forgotten, needed or not.
const LONGEST: usize = 1_000_000;
/// The slices of all CPUs.
#[derive(Default)]
pub struct History {
    cpus: BTreeMap<CpuId, Cpu>,
    slices: usize,
    /// Nothing before this time is known.
    known_from: Nanos,
    /// How many slices there may be before old ones are looked for again.
    limit: usize,
}

#[derive(Default)]
struct Cpu {
    /// The task that runs, its priority, and since when.
    current: Option<(Pid, i32, Nanos)>,
    slices: VecDeque<Slice>,
}

#[derive(Clone, Copy)]
struct Slice {
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
    /// A switch; false if the CPU ran another task than `prev`, so that records are missing.
    pub fn switch(&mut self, cpu: CpuId, now: Nanos, prev: (Pid, i32), next: (Pid, i32)) -> bool {
        let own = self.cpus.entry(cpu).or_default();
        let known = own.current.is_none_or(|(pid, ..)| pid == prev.0);
        if let Some((pid, prio, start)) = own.current.filter(|_| known) {
            own.slices.push_back(Slice { pid, prio, start, end: now });
            self.slices += 1;
        }
        own.current = Some((next.0, next.1, now));
        known
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
        self.slices = 0;
    }

    /// Whether it has grown so long that old slices should be forgotten.
    pub fn is_long(&self) -> bool {
        self.slices > self.limit.max(LONG)
    }

    /// Forgets the slices that ended before a time.
    pub fn forget_before(&mut self, from: Nanos) {
        for cpu in self.cpus.values_mut() {
            while cpu.slices.front().is_some_and(|slice| slice.end <= from) {
                cpu.slices.pop_front();
            }
        }
        self.slices = self.cpus.values().map(|cpu| cpu.slices.len()).sum();
        while self.slices > LONGEST / 2 && self.limit >= LONGEST / 2 {
            self.forget_half();
        }
        self.limit = (2 * self.slices).clamp(LONG, LONGEST);
    }

    fn forget_half(&mut self) {
        for cpu in self.cpus.values_mut() {
            let half = cpu.slices.len().div_ceil(2);
            if let Some(last) = cpu.slices.drain(..half).next_back() {
                self.known_from = self.known_from.max(last.end);
            }
        }
        self.slices = self.cpus.values().map(|cpu| cpu.slices.len()).sum();
    }

    /// What happened while `waiter` was on these queues, each from its time on, until now.
    pub fn meanwhile(&self, queues: &[(CpuId, Nanos)], now: Nanos, waiter: Pid) -> Meanwhile {
        let mut ran: BTreeMap<Pid, Turn> = BTreeMap::new();
        let (mut idle, mut elsewhere) = (0, BTreeMap::<CpuId, Nanos>::new());
        let ends = queues.iter().skip(1).map(|(_, until)| *until).chain([now]);
        for ((queue, from), to) in queues.iter().zip(ends) {
            for (cpu, slice) in self.cpus.iter().flat_map(|(cpu, own)| own.within(*from, to).map(|slice| (*cpu, slice)))
            {
                let ns = slice.end - slice.start;
                match (cpu == *queue, slice.pid) {
                    (true, 0) => idle += ns,
                    (false, 0) => *elsewhere.entry(cpu).or_default() += ns,
                    (true, pid) if pid != waiter => {
                        ran.entry(pid).or_insert(Turn { pid, prio: slice.prio, ns: 0 }).ns += ns;
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
    /// The slices between two times, the running one included, cut to them.
    fn within(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = Slice> + '_ {
        let first = self.slices.partition_point(|slice| slice.end <= from);
        let running = self.current.map(|(pid, prio, start)| Slice { pid, prio, start, end: to });
        let cut = move |slice: Slice| Slice { start: slice.start.max(from), end: slice.end.min(to), ..slice };
        self.slices.range(first..).copied().chain(running).map(cut).filter(|slice| slice.start < slice.end)
    }
}

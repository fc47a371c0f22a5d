//! How the CPUs of one kernel are used after the warm-up: busy time, tasks that wait, and when more tasks are runnable
//! than there are CPUs.

use schedlab_model::Nanos;
use serde_json::json;

/// One CPU. Integrals are ns, those of tasks ns times tasks.
#[derive(Clone, Default)]
struct Cpu {
    busy: bool,
    waiting: u32,
    since: Nanos,
    busy_ns: Nanos,
    waiting_ns: Nanos,
    queued_ns: Nanos,
}

/// All CPUs of a kernel.
pub struct Load {
    from: Nanos,
    last: Nanos,
    cpus: Vec<Cpu>,
    running: u32,
    waiting: u32,
    free: u32,
    most: u32,
    runnable_ns: Nanos,
    over_ns: Nanos,
    full_ns: Nanos,
    lost_ns: Nanos,
}

impl Load {
    pub fn new(cpus: usize, from: Nanos) -> Self {
        let cpu = Cpu { since: from, ..Cpu::default() };
        Load {
            from,
            last: from,
            cpus: vec![cpu; cpus],
            running: 0,
            waiting: 0,
            free: cpus as u32,
            most: 0,
            runnable_ns: 0,
            over_ns: 0,
            full_ns: 0,
            lost_ns: 0,
        }
    }

    /// Whether some CPU is idle and nothing waits on its runqueue.
    pub fn some_free(&self) -> bool {
        self.free > 0
    }

    /// A CPU begins or ceases to execute a task.
    pub fn busy(&mut self, now: Nanos, cpu: usize, busy: bool) {
        self.change(now, cpu, |cpu| cpu.busy = busy);
    }

    /// A task joins a runqueue on which it waits, or leaves it.
    pub fn waits(&mut self, now: Nanos, cpu: usize, joins: bool) {
        self.change(now, cpu, |cpu| {
            cpu.waiting = if joins { cpu.waiting + 1 } else { cpu.waiting.saturating_sub(1) };
        });
    }

    fn change(&mut self, now: Nanos, cpu: usize, change: impl FnOnce(&mut Cpu)) {
        self.advance(now);
        let Some(cpu) = self.cpus.get_mut(cpu) else { return };
        cpu.advance(now);
        let old = (u32::from(cpu.busy), cpu.waiting, u32::from(cpu.is_free()));
        change(cpu);
        self.running = self.running + u32::from(cpu.busy) - old.0;
        self.waiting = self.waiting + cpu.waiting - old.1;
        self.free = self.free + u32::from(cpu.is_free()) - old.2;
    }

    fn advance(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        let (runnable, cpus) = (self.running + self.waiting, self.cpus.len() as u32);
        self.runnable_ns += elapsed * u64::from(runnable);
        self.most = self.most.max(if elapsed > 0 { runnable } else { 0 });
        self.over_ns += if runnable > cpus { elapsed } else { 0 };
        self.full_ns += if self.running == cpus { elapsed } else { 0 };
        // A task that waits on an idle CPU is about to run there, so it is not one that another CPU could take.
        let about_to_run = cpus - self.running - self.free;
        self.lost_ns += if self.free > 0 && self.waiting > about_to_run { elapsed } else { 0 };
    }

    /// `time` (ns after the warm-up), `cpus` (busy, waiting, queued), `runnable` (ns times tasks), `over`, `full`,
    /// `lost` (ns) and the largest number of runnable tasks.
    pub fn finish(mut self, kernel: &str, end: Nanos) -> serde_json::Value {
        self.advance(end);
        self.cpus.iter_mut().for_each(|cpu| cpu.advance(end));
        let cpus: Vec<_> = self.cpus.iter().map(|cpu| [cpu.busy_ns, cpu.waiting_ns, cpu.queued_ns]).collect();
        json!({
            "kernel": kernel, "time": end.saturating_sub(self.from), "cpus": cpus, "runnable": self.runnable_ns,
            "over": self.over_ns, "full": self.full_ns, "lost": self.lost_ns, "most": self.most,
        })
    }
}

impl Cpu {
    fn is_free(&self) -> bool {
        !self.busy && self.waiting == 0
    }

    fn advance(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.since);
        self.since = self.since.max(now);
        self.busy_ns += if self.busy { elapsed } else { 0 };
        self.waiting_ns += elapsed * u64::from(self.waiting);
        self.queued_ns += if self.waiting > 0 { elapsed } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs, a warm-up of 10. CPU 0 runs from 5, two tasks wait there from 20 to 40, CPU 1 runs from 30 to 60.
    #[test]
    fn integrals_begin_after_the_warm_up() {
        let mut load = Load::new(2, 10);
        load.busy(5, 0, true);
        load.waits(20, 0, true);
        load.waits(20, 0, true);
        load.busy(30, 1, true);
        load.waits(40, 0, false);
        load.waits(40, 0, false);
        load.busy(60, 1, false);
        let found = load.finish("", 110);
        assert_eq!(found["time"], 100);
        assert_eq!(found["cpus"], json!([[100, 40, 20], [30, 0, 0]]));
        assert_eq!(found["runnable"], 100 + 30 + 40);
        assert_eq!((&found["over"], &found["full"], &found["most"]), (&json!(20), &json!(30), &json!(4)));
        assert_eq!(found["lost"], 10, "from 20 to 30 CPU 1 could have taken a task");
    }

    /// What was there before the warm-up ended counts, though nothing changes after it.
    #[test]
    fn tasks_of_before_the_warm_up_are_among_the_most() {
        let mut load = Load::new(1, 10);
        load.busy(5, 0, true);
        assert_eq!(load.finish("", 110)["most"], 1);
    }
}

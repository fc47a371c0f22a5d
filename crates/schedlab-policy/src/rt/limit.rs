//! The limits of the real-time class: RT throttling (up to 6.11), or the fair server (6.12 and later).
//!
//! Throttling (`sched_rt_runtime_exceeded`, `do_sched_rt_period_timer`): if the class has run on a CPU for more than
//! `sched_rt_runtime_us`, it is throttled there until the end of the period, even if no other task is runnable. With
//! RT_RUNTIME_SHARE it borrows unused runtime of other CPUs.
//!
//! Fair server (`dl_server_start`, `update_curr_dl_se`, `dl_server_timer`, kernel/sched/deadline.c 6.12.0): 50 ms of
//! every second for waiting tasks of the fair class. It is deferred: at deadline - runtime it takes precedence over
//! this class, unless the fair class has used up the runtime by then, which begins a new period. Left out: time before
//! any task of the machine is of this class or the deadline class, which is not accounted; competition with deadline
//! tasks; debugfs knobs.

use super::{Rt, RtLimit};
use crate::Resched;
use schedlab_model::{CpuId, Nanos, MSEC};

/// `struct rt_bandwidth`: one period for all CPUs, counted from the first enqueue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub length: Nanos,
    pub runtime: Nanos,
    pub expires: Option<Nanos>,
}

const SERVER_RUNTIME: i64 = 50 * MSEC as i64;
const SERVER_PERIOD: Nanos = 1000 * MSEC;
/// `dl_server_min_res`: not worth arming the timer again for less.
const SERVER_MIN_RES: Nanos = MSEC;

/// The server of one CPU.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct FairServer {
    /// The fair class has tasks queued.
    started: bool,
    /// It runs, or would if picked: above the real-time class.
    active: bool,
    /// It waits for its zero-laxity time.
    armed: bool,
    /// It had to step in last time; then it does not wait at the next period.
    running: bool,
    runtime: i64,
    deadline: Nanos,
    timer: Option<Nanos>,
    /// Since when the fair class's running task is not charged.
    since: Option<Nanos>,
}

impl FairServer {
    /// It is above the real-time class.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Up to when the fair class's running task was charged; 0: none runs.
    #[inline]
    pub fn charged_to(&self) -> Nanos {
        self.since.unwrap_or(0)
    }

    /// `replenish_dl_new_period`.
    fn replenish_dl_new_period(&mut self, now: Nanos) {
        self.deadline = now + SERVER_PERIOD;
        self.runtime = SERVER_RUNTIME;
        if self.running {
            (self.active, self.armed, self.timer) = (true, false, None);
        } else {
            self.defer(now);
        }
    }

    /// Waits until zero laxity.
    fn defer(&mut self, now: Nanos) {
        let at = self.deadline.saturating_sub(self.runtime.max(0) as Nanos);
        (self.active, self.armed) = (at <= now, at > now);
        self.timer = self.armed.then_some(at);
    }

    /// `dl_server_start`.
    fn dl_server_start(&mut self, now: Nanos) {
        self.started = true;
        // dl_entity_overflow: what is left would be more than its share of the time to the deadline.
        let left = self.deadline.saturating_sub(now);
        let over = i128::from(self.runtime) * i128::from(SERVER_PERIOD) > i128::from(left) * i128::from(SERVER_RUNTIME);
        // At time 0 of a run the machine has been up for long: the deadline of a server that never ran has passed.
        let never = self.deadline == 0;
        if never || self.deadline < now || over {
            self.replenish_dl_new_period(now);
        } else if self.running {
            (self.active, self.armed, self.timer) = (true, false, None);
        } else {
            self.defer(now);
        }
    }

    /// `dl_server_stop`.
    fn dl_server_stop(&mut self) {
        (self.started, self.active, self.armed, self.timer) = (false, false, false, None);
    }

    /// `update_curr_dl_se`. Whether the server has to give up the CPU.
    fn update_curr_dl_se(&mut self, delta: Nanos, now: Nanos) -> bool {
        if !self.started {
            return false;
        }
        self.runtime -= delta as i64;
        if self.runtime > 0 {
            return false;
        }
        if !self.active {
            self.running = false;
            self.replenish_dl_new_period(now);
            return false;
        }
        self.active = false;
        self.timer = Some(self.deadline);
        if self.deadline <= now {
            self.dl_server_timer(now);
        }
        !self.active
    }

    /// `dl_server_timer`. Whether the server now precedes all other classes.
    fn dl_server_timer(&mut self, now: Nanos) -> bool {
        self.timer = None;
        if self.armed {
            let laxity = self.deadline.saturating_sub(self.runtime.max(0) as Nanos);
            if now + SERVER_MIN_RES < laxity {
                self.timer = Some(laxity);
                return false;
            }
            self.running = true;
            self.armed = false;
            (self.deadline, self.runtime) = (now + SERVER_PERIOD, SERVER_RUNTIME);
        }
        while self.runtime <= 0 {
            self.deadline += SERVER_PERIOD;
            self.runtime += SERVER_RUNTIME;
        }
        if self.deadline < now {
            self.deadline = now + SERVER_PERIOD;
        }
        self.active = true;
        true
    }
}

impl Rt {
    /// The period timer starts with the first task (`start_rt_bandwidth`).
    pub(super) fn start_period(&mut self, now: Nanos) {
        let bounded = self.limit == RtLimit::Throttling && self.period.runtime < self.period.length;
        if bounded && self.period.expires.is_none() {
            self.period.expires = Some(now + self.period.length);
        }
    }

    /// `update_curr_rt`'s second half. Whether the class has now used up its time.
    pub(super) fn charge(&mut self, cpu: CpuId, delta: Nanos) -> bool {
        if self.limit != RtLimit::Throttling || self.period.runtime >= self.period.length {
            return false;
        }
        self.rqs[cpu.index()].rt_time += delta;
        let rq = &self.rqs[cpu.index()];
        if rq.throttled || rq.rt_time <= rq.rt_runtime && rq.rt_runtime < self.period.length {
            return rq.throttled;
        }
        if self.share {
            self.do_balance_runtime(cpu);
        }
        let rq = &mut self.rqs[cpu.index()];
        rq.throttled = rq.rt_time > rq.rt_runtime && rq.rt_runtime < self.period.length;
        rq.throttled
    }

    /// `do_balance_runtime`: takes each other CPU's spare time by one n-th.
    fn do_balance_runtime(&mut self, cpu: CpuId) {
        let (n, period) = (self.rqs.len() as u64, self.period.length);
        for other in (0..self.rqs.len()).filter(|other| *other != cpu.index()) {
            let spare = self.rqs[other].rt_runtime.saturating_sub(self.rqs[other].rt_time) / n;
            let spare = spare.min(period - self.rqs[cpu.index()].rt_runtime);
            self.rqs[other].rt_runtime -= spare;
            self.rqs[cpu.index()].rt_runtime += spare;
            if self.rqs[cpu.index()].rt_runtime == period {
                break;
            }
        }
    }

    /// Whether the classes below have tasks queued on the CPU (`dl_server_start`, `dl_server_stop`).
    pub(super) fn start_server(&mut self, cpu: CpuId, any: bool, now: Nanos) {
        let server = &mut self.rqs[cpu.index()].server;
        if self.limit == RtLimit::FairServer && any != server.started {
            match any {
                true => server.dl_server_start(now),
                false => server.dl_server_stop(),
            }
        }
    }

    /// Whether a task of a class below runs on the CPU from now on; the time up to now is charged (`dl_server_update`).
    pub(super) fn update_server(&mut self, cpu: CpuId, runs: bool, now: Nanos) -> Resched {
        let server = &mut self.rqs[cpu.index()].server;
        let since = std::mem::replace(&mut server.since, runs.then_some(now));
        let over = since.is_some_and(|since| server.update_curr_dl_se(now - since, now));
        if over {
            Resched::Full
        } else {
            Resched::No
        }
    }

    /// Whether the class has to leave the CPU to others: throttled, or outranked by the server.
    pub(super) fn is_limited(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu.index()];
        rq.throttled || rq.server.is_active()
    }

    /// Why it is or is no longer, with the numbers.
    pub(super) fn limit_state(&self, cpu: CpuId, now: Nanos) -> (&'static str, [(&'static str, i64); 2]) {
        let rq = &self.rqs[cpu.index()];
        let until = |at: Nanos| at.saturating_sub(now) as i64;
        match self.limit {
            RtLimit::Throttling => {
                let rule = if rq.throttled { "sched_rt_runtime_us is used up" } else { "a new period has begun" };
                let end = self.period.expires.map_or(0, until);
                (rule, [("ran this period", rq.rt_time as i64), ("next period in", end)])
            }
            RtLimit::FairServer => {
                let server = &rq.server;
                let rule = if server.active { "the fair server's turn" } else { "the fair server's turn is over" };
                (rule, [("server runtime", server.runtime), ("server deadline in", until(server.deadline))])
            }
        }
    }

    /// When the next timer of a period or a server fires.
    pub(super) fn next_limit_timer(&self) -> Option<Nanos> {
        let servers = self.rqs.iter().filter_map(|rq| rq.server.timer).min();
        servers.into_iter().chain(self.period.expires).min()
    }

    /// `sched_rt_period_timer` and `dl_server_timer`: the CPUs to be rescheduled are added to `resched`.
    pub(super) fn limit_timer_expired(&mut self, now: Nanos, resched: &mut Vec<(CpuId, Resched)>) {
        if self.period.expires.is_some_and(|at| at <= now) {
            self.do_sched_rt_period_timer(now, resched);
        }
        for (index, rq) in self.rqs.iter_mut().enumerate() {
            if rq.server.timer.is_some_and(|at| at <= now) && rq.server.dl_server_timer(now) {
                resched.push((CpuId(index as u32), Resched::Full));
            }
        }
    }

    /// `do_sched_rt_period_timer`.
    fn do_sched_rt_period_timer(&mut self, now: Nanos, resched: &mut Vec<(CpuId, Resched)>) {
        for cpu in (0..self.rqs.len() as u32).map(CpuId) {
            self.update_curr_rt(cpu, now);
        }
        let Period { length, runtime, expires } = self.period;
        let overrun = expires.map_or(1, |at| (now - at) / length + 1);
        let mut idle = true;
        for index in 0..self.rqs.len() {
            if self.share && self.rqs[index].throttled {
                self.do_balance_runtime(CpuId(index as u32));
            }
            let rq = &mut self.rqs[index];
            if !self.share {
                rq.rt_runtime = runtime;
            }
            rq.rt_time -= rq.rt_time.min(overrun * rq.rt_runtime);
            if rq.throttled && rq.rt_time < rq.rt_runtime {
                rq.throttled = false;
                if rq.nr_running > 0 {
                    resched.push((CpuId(index as u32), Resched::Full));
                }
            }
            idle &= rq.rt_time == 0 && rq.nr_running == 0;
        }
        self.period.expires = expires.filter(|_| !idle).map(|at| at + overrun * length);
    }
}

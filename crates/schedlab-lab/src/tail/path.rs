//! The critical path of a sample: the intervals of its task and, while that slept until another task woke it, those of
//! the waker, and so on. Every moment of the sample is in one interval.
//!
//! Left out: wakers that have ended, and sleeps more than [`DEEPEST`] wakers away. Both stay sleeps that name the
//! waker.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, Pid};

use super::account::Account;
use super::history::{Stay, Waker, Wakeup, What};
use super::kernel::Kernel;

/// How many wakers are followed, one from another.
const DEEPEST: u32 = 16;

/// One interval of a path: what its task did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub pid: Pid,
    pub stay: Stay,
}

impl Step {
    fn ns(&self) -> Nanos {
        self.stay.until - self.stay.from
    }
}

/// A sample that has just ended.
#[derive(Clone, Copy)]
pub struct Ended {
    pub at: Nanos,
    pub pid: Pid,
    pub ns: Nanos,
    /// For how long it was in a queue of the workload, from its beginning on.
    pub queued: Nanos,
}

impl Kernel {
    /// The path of a task between two moments, the last interval first; what is not known is left out.
    pub fn path(&self, pid: Pid, low: Nanos, high: Nanos, now: Nanos) -> Vec<Step> {
        let mut path = Vec::new();
        self.follow(&mut path, pid, (low, high), now, 0);
        path
    }

    fn follow(&self, path: &mut Vec<Step>, pid: Pid, within: (Nanos, Nanos), now: Nanos, depth: u32) {
        for stay in self.stays(pid, within.0, within.1, now) {
            match stay.what {
                What::Slept(wakeup) if depth < DEEPEST && self.is_known(wakeup.pid) => {
                    let before = path.len();
                    self.follow(path, wakeup.pid, (stay.from, stay.until), now, depth + 1);
                    // The waker did not exist, or nothing is known of it, in the first part of the sleep.
                    let known: Nanos = path[before..].iter().map(Step::ns).sum();
                    let until = stay.until.saturating_sub(known);
                    if until > stay.from {
                        path.push(Step { pid, stay: Stay { until, ..stay } });
                    }
                }
                _ => path.push(Step { pid, stay }),
            }
        }
    }

    /// Divides a sample that has just ended.
    pub fn divide(&self, sample: Ended, host: Option<&Host<'_>>) -> Account {
        let Ended { at: now, pid, ns, queued } = sample;
        let begin = now.saturating_sub(ns);
        let taken = begin + queued;
        let mut account = Account { in_queue: queued, ..Account::default() };
        if queued > 0 {
            account.threads = self.threads(pid, begin, taken);
        }
        let mut known = 0;
        for step in self.path(pid, begin, now, now) {
            known += step.ns();
            match step.stay.what {
                What::Ran(cpu) => {
                    let stolen = host.map_or(0, |host| host.steal(&mut account, step.stay, cpu, now));
                    self.ran(&mut account, step, stolen, (pid, taken));
                }
                What::Waited(cpu) => self.waited(&mut account, step, cpu, now, host),
                What::Throttled(by) => {
                    account.throttled += step.ns();
                    *account.pools.entry(by).or_default() += step.ns();
                    *account.waiters.entry(self.program(step.pid)).or_default() += step.ns();
                }
                What::Slept(wakeup) => slept(&mut account, step.stay, wakeup, now, host),
            }
        }
        account.unknown += ns.saturating_sub(known);
        account
    }

    /// The task of the sample ran, before it took it or after; or one that it waited for did.
    fn ran(&self, account: &mut Account, step: Step, stolen: Nanos, (own, taken): (Pid, Nanos)) {
        let ns = step.ns() - stolen;
        if step.pid != own {
            account.served += ns;
            *account.servers.entry(self.program(step.pid)).or_default() += ns;
            return;
        }
        let before = step.stay.until.min(taken).saturating_sub(step.stay.from).min(ns);
        account.queued += before;
        account.ran += ns - before;
    }

    fn waited(&self, account: &mut Account, step: Step, cpu: usize, now: Nanos, host: Option<&Host<'_>>) {
        let (low, high) = (step.stay.from, step.stay.until);
        let Some(executed) = self.executed(cpu) else {
            account.unknown += high - low;
            return;
        };
        let from = executed.known_from().clamp(low, high);
        account.unknown += from - low;
        let stolen = host.map_or(0, |host| host.steal(account, Stay { from, ..step.stay }, cpu, now));
        let mut behind = 0;
        for slice in executed.between(from, high) {
            let on = host.map_or(slice.until - slice.from, |host| host.on(slice.from, slice.until, cpu, now));
            behind += on;
            *account.before.entry(slice.program).or_default() += on;
            account.elsewhere += self.free(slice.from, slice.until).min(on);
        }
        account.behind += behind;
        account.waking += (high - from).saturating_sub(behind + stolen);
        *account.waiters.entry(self.program(step.pid)).or_default() += (high - from).saturating_sub(stolen);
    }
}

/// A timer of a guest expires late if its vCPU has no CPU of the host when it is due: that part of the sleep is stolen.
fn slept(account: &mut Account, stay: Stay, wakeup: Wakeup, now: Nanos, host: Option<&Host<'_>>) {
    let host = host.filter(|_| wakeup.by == Waker::Interrupt);
    let stolen = host.map_or(0, |host| host.steal(account, stay, wakeup.cpu, now));
    let left = stay.until - stay.from - stolen;
    account.slept += left;
    if left > 0 {
        *account.wakers.entry(wakeup.by).or_default() += left;
    }
}

/// The host below a guest.
pub struct Host<'a> {
    pub kernel: &'a Kernel,
    /// The task of the host that each vCPU is.
    pub threads: BTreeMap<usize, Pid>,
}

impl Host<'_> {
    /// For how long the vCPU was on a CPU of the host.
    fn on(&self, low: Nanos, high: Nanos, vcpu: usize, now: Nanos) -> Nanos {
        let Some(pid) = self.threads.get(&vcpu) else { return high - low };
        let stays = self.kernel.stays(*pid, low, high, now);
        stays.iter().filter(|stay| matches!(stay.what, What::Ran(_))).map(|stay| stay.until - stay.from).sum()
    }

    /// Adds the time for which the vCPU was runnable and not on a CPU, and what ran there instead. Returns it.
    fn steal(&self, account: &mut Account, within: Stay, vcpu: usize, now: Nanos) -> Nanos {
        let Some(pid) = self.threads.get(&vcpu) else { return 0 };
        let mut stolen = 0;
        for stay in self.kernel.stays(*pid, within.from, within.until, now) {
            let (What::Waited(_) | What::Throttled(_)) = stay.what else { continue };
            stolen += stay.until - stay.from;
            let What::Waited(cpu) = stay.what else { continue };
            for slice in self.kernel.executed(cpu).into_iter().flat_map(|cpu| cpu.between(stay.from, stay.until)) {
                *account.thieves.entry(slice.program).or_default() += slice.until - slice.from;
            }
        }
        account.stolen += stolen;
        stolen
    }
}

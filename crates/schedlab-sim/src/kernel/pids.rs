//! The numbers of tasks: counted from 1, so that a program's tasks have the same numbers whichever kernel runs them and
//! however many threads that kernel has of its own.

use schedlab_model::Pid;

/// The next numbers. As many as there are tasks that no other task forks come before those kept for the kernel's
/// threads.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pids {
    last: Pid,
    /// The number before those kept for the kernel's threads.
    threads_after: Pid,
    /// How many are kept.
    kept: Pid,
    /// How many threads have theirs.
    threads: Pid,
}

impl Pids {
    /// Keeps numbers for the kernel's threads, after those of `tasks` tasks. `nr_cpus` is the machine's number of CPUs,
    /// each of which has two threads and is at most one node; two more are the machine's.
    pub fn keep(&mut self, tasks: u32, nr_cpus: usize) {
        self.threads_after = tasks as Pid;
        self.kept = 3 * nr_cpus as Pid + 2;
    }

    /// A task of a program.
    pub fn next(&mut self) -> Pid {
        self.last += 1;
        if self.kept > 0 && self.last == self.threads_after + 1 {
            self.last += self.kept;
        }
        self.last
    }

    /// Where in the order of creation the task of this number probably is: the kernel's threads come first.
    pub fn order(&self, pid: Pid) -> Option<usize> {
        let behind = self.threads_after + self.kept;
        let place = match pid {
            _ if pid <= self.threads_after || self.kept == 0 => pid - 1 + self.threads,
            _ if pid <= behind => pid - 1 - self.threads_after,
            _ => pid - 1 - self.kept + self.threads,
        };
        usize::try_from(place).ok()
    }

    /// A thread of the kernel.
    pub fn next_thread(&mut self) -> Pid {
        self.threads += 1;
        self.threads_after + self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::Pids;

    #[test]
    fn threads_take_no_number_of_a_program() {
        let mut pids = Pids::default();
        assert_eq!((pids.next(), pids.next(), pids.next()), (1, 2, 3));
        let mut pids = Pids::default();
        pids.keep(2, 2);
        let threads = [pids.next_thread(), pids.next_thread()];
        assert_eq!((threads, pids.next(), pids.next(), pids.next()), ([3, 4], 1, 2, 11));
        let places = [3, 4, 1, 2, 11].map(|pid| pids.order(pid));
        assert_eq!(places, [0, 1, 2, 3, 4].map(Some));
    }
}

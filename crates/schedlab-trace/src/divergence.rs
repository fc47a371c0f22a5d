//! Two runs that should give the same trace, side by side, up to the first event in which they differ.

use std::fmt;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

use crate::{Event, Sink};

/// Events that travel together.
const BLOCK: usize = 4096;
/// Blocks one run may be ahead of the comparison.
const AHEAD: usize = 4;
/// Common events kept to show what led to the difference.
const CONTEXT: usize = 5;

/// The first difference of two event streams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// Position of the differing event, from 0.
    pub index: u64,
    /// The first run's event there; `None` if that run had ended.
    pub first: Option<Event>,
    /// The second run's.
    pub second: Option<Event>,
    /// The last common events, oldest first.
    pub before: Vec<Event>,
}

/// Passes the events of one run to the comparison. Once the runs differ, it drops them.
#[derive(Debug)]
pub struct Recorder {
    block: Vec<Event>,
    to: Option<SyncSender<Vec<Event>>>,
}

/// Runs both closures at the same time on two threads, compares what they record, and returns both results and the
/// first difference. Nothing is stored beyond a few blocks of events, however long the runs are.
pub fn lockstep<R: Send, F, G>(first: F, second: G) -> (R, R, Option<Divergence>)
where
    F: FnOnce(&mut Recorder) -> R + Send,
    G: FnOnce(&mut Recorder) -> R + Send,
{
    let (to_first, from_first) = sync_channel(AHEAD);
    let (to_second, from_second) = sync_channel(AHEAD);
    thread::scope(|scope| {
        let other = scope.spawn(move || record(second, to_second));
        let compared = scope.spawn(move || compare(&from_first, &from_second));
        let a = record(first, to_first);
        let b = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let divergence = compared.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (a, b, divergence)
    })
}

impl Sink for Recorder {
    #[inline]
    fn event(&mut self, event: &Event) {
        self.block.push(*event);
        if self.block.len() == BLOCK {
            self.send();
        }
    }
}

impl Recorder {
    fn send(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
        // The comparison hangs up when it has found a difference.
        if self.to.as_ref().is_some_and(|to| to.send(block).is_err()) {
            self.to = None;
        }
    }
}

fn record<R>(run: impl FnOnce(&mut Recorder) -> R, to: SyncSender<Vec<Event>>) -> R {
    let mut recorder = Recorder { block: Vec::with_capacity(BLOCK), to: Some(to) };
    let result = run(&mut recorder);
    recorder.send();
    result
}

/// Blocks of both runs have equal sizes up to a run's last one, so they are compared pairwise.
fn compare(first: &Receiver<Vec<Event>>, second: &Receiver<Vec<Event>>) -> Option<Divergence> {
    let (mut start, mut before) = (0, Vec::new());
    loop {
        let (a, b) = (first.recv().unwrap_or_default(), second.recv().unwrap_or_default());
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        before.extend_from_slice(&a[common.saturating_sub(CONTEXT)..common]);
        before.drain(..before.len().saturating_sub(CONTEXT));
        if common < a.len().max(b.len()) {
            let (first, second) = (a.get(common).copied(), b.get(common).copied());
            return Some(Divergence { index: start + common as u64, first, second, before });
        }
        if common < BLOCK {
            return None;
        }
        start += common as u64;
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the runs part at event {}", self.index)?;
        for event in &self.before {
            writeln!(f, "  both    {event}")?;
        }
        for (run, event) in [("first", &self.first), ("second", &self.second)] {
            match event {
                Some(event) => writeln!(f, "  {run:<7} {event}")?,
                None => writeln!(f, "  {run:<7} (ended)")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use schedlab_model::CpuId;

    fn event(time: u64) -> Event {
        Event::new(time, CpuId(1), Kind::Fork { parent: 1, child: 2 })
    }

    fn first_difference(a: &[u64], b: &[u64]) -> Option<Divergence> {
        let play = |times: Vec<u64>| move |to: &mut Recorder| times.iter().for_each(|t| to.event(&event(*t)));
        lockstep(play(a.to_vec()), play(b.to_vec())).2
    }

    #[test]
    fn equal_runs_do_not_part() {
        for len in [0, 1, BLOCK as u64 - 1, BLOCK as u64, 10 * BLOCK as u64 + 3] {
            let times: Vec<u64> = (0..len).collect();
            assert_eq!(first_difference(&times, &times), None, "{len} events");
        }
    }

    #[test]
    fn the_first_difference_is_found_wherever_it_is() {
        let times: Vec<u64> = (0..3 * BLOCK as u64).collect();
        for at in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK - 1] {
            let mut other = times.clone();
            other[at] = 77_777_777;
            let divergence = first_difference(&times, &other).unwrap();
            assert_eq!(divergence.index, at as u64);
            assert_eq!(divergence.first, Some(event(at as u64)));
            assert_eq!(divergence.second, Some(event(77_777_777)));
            assert_eq!(divergence.before.len(), at.min(CONTEXT));
            assert!(divergence.before.iter().rev().zip((0..at as u64).rev()).all(|(e, t)| e.time == t));
        }
    }

    #[test]
    fn a_run_that_ends_early_parts_at_its_end() {
        for len in [0, 5, BLOCK, BLOCK + 1] {
            let times: Vec<u64> = (0..len as u64).collect();
            let longer: Vec<u64> = (0..len as u64 + 2 * BLOCK as u64).collect();
            let divergence = first_difference(&times, &longer).unwrap();
            assert_eq!((divergence.index, divergence.first), (len as u64, None));
            assert_eq!(divergence.second, Some(event(len as u64)));
        }
        let text = first_difference(&[1, 2], &[1]).unwrap().to_string();
        let want = "the runs part at event 1\n  both    0.000000001 [001] sched_process_fork: pid=1 child_pid=2\n  \
                    first   0.000000002 [001] sched_process_fork: pid=1 child_pid=2\n  second  (ended)\n";
        assert_eq!(text, want);
    }
}

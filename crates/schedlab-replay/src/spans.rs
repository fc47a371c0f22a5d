//! Where decisions cannot be judged: on which CPU, from when to when.
//!
//! A span is a series of decisions of one CPU that cannot be judged for the same reason, with none between them that is
//! judged.

use std::collections::BTreeMap;

use schedlab_model::Nanos;
use serde::Serialize;

use crate::unjudged::Unjudged;

/// How many spans are kept: those with most decisions.
const KEPT: usize = 100;

/// Decisions of a CPU in a row that cannot be judged for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct UnjudgedSpan {
    /// The CPU.
    pub cpu: u32,
    /// The first of them.
    pub from_ns: Nanos,
    /// The last of them.
    pub to_ns: Nanos,
    /// How many.
    pub count: u64,
    /// The reason.
    pub reason: &'static str,
}

/// The spans of a trace.
#[derive(Clone, Default, Debug)]
pub struct Spans {
    /// The present one of each CPU.
    open: BTreeMap<u32, (Unjudged, UnjudgedSpan)>,
    closed: Vec<UnjudgedSpan>,
}

impl Spans {
    /// A decision; `why` it cannot be judged.
    pub fn note(&mut self, cpu: u32, time: Nanos, why: Option<Unjudged>) {
        if let (Some((open, span)), Some(why)) = (self.open.get_mut(&cpu), why) {
            // A decision that no lag explains and those that follow it are one span.
            if *open == why || open.is_unexplained() && why.is_unexplained() {
                (span.to_ns, span.count) = (time, span.count + 1);
                return;
            }
        }
        self.closed.extend(self.open.remove(&cpu).map(|(_, span)| span));
        if self.closed.len() >= 2 * KEPT {
            keep(&mut self.closed);
        }
        if let Some(why) = why {
            let span = UnjudgedSpan { cpu, from_ns: time, to_ns: time, count: 1, reason: why.reason() };
            self.open.insert(cpu, (why, span));
        }
    }

    /// The largest spans, those with most decisions first.
    pub fn largest(&self) -> Vec<UnjudgedSpan> {
        let mut all = self.closed.clone();
        all.extend(self.open.values().map(|(_, span)| *span));
        keep(&mut all);
        all
    }
}

fn keep(spans: &mut Vec<UnjudgedSpan>) {
    spans.sort_by_key(|span| (std::cmp::Reverse(span.count), span.from_ns, span.cpu));
    spans.truncate(KEPT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_with_a_judged_decision_or_another_reason_on_its_cpu() {
        let (state, lag, after) = (Some(Unjudged::State), Some(Unjudged::NoLag), Some(Unjudged::AfterNoLag));
        let mut spans = Spans::default();
        let notes = [
            (0, 1, state),
            (0, 2, state),
            (1, 3, state),
            (0, 4, None),
            (0, 5, state),
            (0, 6, lag),
            (0, 7, after),
            (1, 8, None),
            (0, 9, after),
        ];
        notes.into_iter().for_each(|(cpu, time, why)| spans.note(cpu, time, why));
        let found: Vec<_> =
            spans.largest().iter().map(|span| (span.cpu, span.from_ns, span.to_ns, span.count)).collect();
        assert_eq!(found, [(0, 6, 9, 3), (0, 1, 2, 2), (1, 3, 3, 1), (0, 5, 5, 1)]);
    }

    #[test]
    fn the_spans_with_most_decisions_are_kept() {
        let mut spans = Spans::default();
        for nth in 0..1000 {
            spans.note(0, 10 * nth, Some(Unjudged::State));
            if nth == 500 {
                spans.note(0, 10 * nth + 1, Some(Unjudged::State));
            }
            spans.note(0, 10 * nth + 2, None);
        }
        let found = spans.largest();
        assert_eq!((found.len(), found[0].from_ns, found[0].count), (KEPT, 5000, 2));
    }
}

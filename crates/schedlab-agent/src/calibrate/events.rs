//! The tracepoints that were recorded during a measurement.

use std::path::Path;

use schedlab_model::{Nanos, Pid};
use schedlab_trace::{Event, Kind, TraceError, TraceReader};

use crate::error::{AgentError, Result};
use crate::tracing::Recording;

/// All events, by time.
#[derive(Clone, Debug, Default)]
pub struct Events {
    events: Vec<Event>,
}

impl Events {
    /// Reads the events of a recording.
    pub fn of(recording: &mut Recording) -> Result<Events> {
        recording.reader()?.map_or(Ok(Events::default()), from)
    }

    /// Reads the events of a trace file.
    pub fn read(path: &Path) -> Result<Events> {
        from(schedlab_trace::open(path).map_err(failed)?)
    }

    /// All events.
    pub fn all(&self) -> &[Event] {
        &self.events
    }

    /// The events between two times.
    pub fn within(&self, begin: Nanos, end: Nanos) -> EventRange<'_> {
        let at = |time| self.events.partition_point(|event| event.time < time);
        let (from, to) = (at(begin), at(end));
        EventRange { events: self.events.get(from..to).unwrap_or_default() }
    }
}

fn from(mut reader: Box<dyn TraceReader>) -> Result<Events> {
    let mut events = Vec::new();
    while let Some(record) = reader.next_record().map_err(failed)? {
        events.extend(record.event());
    }
    Ok(Events { events })
}

fn failed(error: TraceError) -> AgentError {
    AgentError::failed(format!("the recorded trace: {error}"), "")
}

/// The events between two times.
#[derive(Clone, Copy, Debug)]
pub struct EventRange<'a> {
    events: &'a [Event],
}

impl EventRange<'_> {
    fn first(&self, wanted: impl Fn(&Kind) -> bool) -> Option<Nanos> {
        self.events.iter().find(|event| wanted(&event.kind)).map(|event| event.time)
    }

    fn only(&self, wanted: impl Fn(&Kind) -> bool) -> Option<Nanos> {
        let mut times = self.events.iter().filter(|event| wanted(&event.kind)).map(|event| event.time);
        times.next().filter(|_| times.next().is_none())
    }

    /// `sched_waking` of the task.
    pub fn waking(&self, task: Pid) -> Option<Nanos> {
        self.first(|kind| matches!(kind, Kind::Waking { pid, .. } if *pid == task))
    }

    /// `sched_stat_runtime` of the task.
    pub fn runtime(&self, task: Pid) -> Option<Nanos> {
        self.first(|kind| matches!(kind, Kind::Runtime { pid, .. } if *pid == task))
    }

    /// `sched_wakeup` of the task.
    pub fn wakeup(&self, task: Pid) -> Option<Nanos> {
        self.first(|kind| matches!(kind, Kind::Wakeup { pid, .. } if *pid == task))
    }

    /// `sched_switch` from one task to another.
    pub fn switch(&self, from: Pid, to: Pid) -> Option<Nanos> {
        self.first(|kind| matches!(kind, Kind::Switch { prev, next, .. } if (*prev, *next) == (from, to)))
    }

    /// The switch from the task, if it is the only one.
    pub fn only_from(&self, task: Pid) -> Option<Nanos> {
        self.only(|kind| matches!(kind, Kind::Switch { prev, .. } if *prev == task))
    }

    /// The switch to the task, if it is the only one.
    pub fn only_to(&self, task: Pid) -> Option<Nanos> {
        self.only(|kind| matches!(kind, Kind::Switch { next, .. } if *next == task))
    }

    /// The first switch to the task.
    pub fn first_to(&self, task: Pid) -> Option<Nanos> {
        self.first(|kind| matches!(kind, Kind::Switch { next, .. } if *next == task))
    }

    /// The last switch from the task.
    pub fn last_from(&self, task: Pid) -> Option<Nanos> {
        let last = self.events.iter().rev().find(|e| matches!(e.kind, Kind::Switch { prev, .. } if prev == task));
        last.map(|event| event.time)
    }

    /// The total time during which the task was switched out.
    pub fn away(&self, task: Pid) -> Nanos {
        let (mut left, mut away) = (None, 0);
        for event in self.events {
            match event.kind {
                Kind::Switch { prev, .. } if prev == task => left = Some(event.time),
                Kind::Switch { next, .. } if next == task => away += left.take().map_or(0, |left| event.time - left),
                _ => {}
            }
        }
        away
    }

    /// The number of context switches.
    pub fn switches(&self) -> usize {
        self.events.iter().filter(|event| matches!(event.kind, Kind::Switch { .. })).count()
    }
}

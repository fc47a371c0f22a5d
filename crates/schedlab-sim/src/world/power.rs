//! Whether a guest runs, and which of its pause, resume and kill events are pending.

use schedlab_model::{CpuId, KernelId, Nanos};
use schedlab_spec::GuestAction;
use schedlab_trace::Sink;

use crate::run::{Run, Source};

/// Whether a guest runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    /// It does.
    On,
    /// It has been paused.
    Paused,
    /// It has been killed.
    Off,
}

/// What is done to a guest.
#[derive(Clone, Debug)]
pub struct Actions {
    pub power: Power,
    /// What is still to come, the next one last.
    coming: Vec<(Nanos, GuestAction)>,
}

impl Actions {
    /// Those of a guest that runs.
    pub fn new(events: &[(Nanos, GuestAction)]) -> Self {
        Actions { power: Power::On, coming: events.iter().rev().copied().collect() }
    }

    /// The next action, if it is due.
    pub fn take_due(&mut self, now: Nanos) -> Option<GuestAction> {
        let (_, action) = *self.coming.last().filter(|(at, _)| *at <= now)?;
        self.coming.pop();
        Some(action)
    }

    /// Schedules the next one.
    pub fn plan<S: Sink>(&self, run: &mut Run<S>, vm: usize) {
        if let Some((at, _)) = self.coming.last() {
            run.set_event(KernelId(vm as u16 + 1), Source::Action, CpuId(0), (*at).max(run.now));
        }
    }
}

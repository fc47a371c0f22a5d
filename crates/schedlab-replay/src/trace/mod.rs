//! The trace: records reduced to what replay needs, and a bounded read-ahead over them.

mod bounds;
mod call;
mod change;
mod entry;
mod forks;
mod lookahead;
mod needs;
mod pass;
mod probe;
mod release;
mod reread;
mod select;
mod shown;
mod wakeups;
#[cfg(test)]
mod wakeups_tests;
mod window;
mod within;

pub use change::{fair_policy, SchedChange, UNNAMED};
pub use entry::{Entry, What};
pub use lookahead::LookAhead;
pub use pass::{Marks, MarksAbove, PassProbe, PassRecord, TaskAverages};
pub use probe::{Address, CfsRqLoad, GroupEntity, Point, Probe, QueueLoad, Sums};
pub use release::release;
pub use select::{SelectProbe, SelectState};
pub use shown::{OthersLoad, Start};
pub use window::Window;

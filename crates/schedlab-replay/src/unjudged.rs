//! Why decisions cannot be judged.

/// Why a decision cannot be judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unjudged {
    /// The state of a task that matters is not known yet.
    State,
    /// It depends on a lag that the trace does not show, and narrows that lag.
    Solved,
    /// It depends on unknown lags, and none was found that explains it.
    NoLag,
    /// No lag explains an earlier decision on the CPU, whose queue has not been empty since.
    AfterNoLag,
    /// No record shows need-resched after it.
    Hidden,
    /// A later decision precedes the record that shows the flag, which may be due to either.
    Shared,
    /// The hrtick may have fired, for this task or for an earlier one.
    Timer,
    /// The pick fell between two records, and the queue changed there.
    Time,
}

impl Unjudged {
    /// Whether no lag explains the decision or an earlier one on its CPU.
    pub fn is_unexplained(self) -> bool {
        matches!(self, Unjudged::NoLag | Unjudged::AfterNoLag)
    }

    pub fn reason(self) -> &'static str {
        match self {
            Unjudged::State => "a task's state was not known yet",
            Unjudged::Solved => "it depends on an unknown lag and was used to solve for it",
            Unjudged::NoLag => "no lag was found that explains it",
            Unjudged::AfterNoLag => "no lag was found that explains an earlier decision on the CPU",
            Unjudged::Hidden => "no record shows the outcome",
            Unjudged::Timer => "the hrtick may have fired",
            Unjudged::Time => "the queue changed around the time of the pick",
            Unjudged::Shared => "a later decision may have set the flag",
        }
    }
}

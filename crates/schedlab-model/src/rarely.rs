//! A hint about code that most runs never execute.

/// The condition, which is nearly always false. What depends on it is placed apart from the code around it, so that the
/// instructions which every context switch executes stay close together in the processor's caches. It decides nothing
/// else.
#[inline(always)]
#[must_use]
pub fn rarely(condition: bool) -> bool {
    if condition {
        apart();
    }
    condition
}

/// A branch that calls a cold function is laid out as an unlikely one; the call itself vanishes.
#[cold]
#[inline]
fn apart() {}

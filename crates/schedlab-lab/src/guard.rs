//! Turns a panic of the engine, which is always a bug, into an error with its source location, so that a comparison
//! loses one run instead of all.

use std::cell::RefCell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

/// A panic of the engine: its message and source location.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the engine panicked: {0}")]
pub struct Panicked(pub String);

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the result of `work`, or where it panicked. Nothing is printed unless `RUST_BACKTRACE` is set.
pub fn guard<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    remember_panics();
    // Unwind safety: everything that `work` may have left half changed is dropped with it.
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| Panicked(LAST.take().unwrap_or_else(|| "at an unknown location".to_owned())))
}

/// Installs a panic hook that stores a panic's message and location for its thread instead of printing them.
pub fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            let message = info.payload().downcast_ref::<&str>().copied();
            let message = message.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
            let location = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
            LAST.set(Some(message.unwrap_or("panic").replace('\n', " ") + &location));
            if std::env::var_os("RUST_BACKTRACE").is_some() {
                usual(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::guard;

    #[test]
    fn a_panic_becomes_an_error_with_its_location() {
        assert_eq!(guard(|| 5), Ok(5));
        let seed = 7;
        let error = guard(|| -> u32 { panic!("no task\nfor seed {seed}") }).unwrap_err().to_string();
        assert!(error.starts_with("the engine panicked: no task for seed 7 at "), "{error}");
        assert!(error.contains("guard.rs:"), "{error}");
        assert_eq!(guard(|| 6), Ok(6));
    }
}

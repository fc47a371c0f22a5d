//! A panic of the engine, a bug by definition, becomes an error that says where: a comparison loses one run by it.

use std::cell::RefCell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

/// A bug: what the engine said when it broke off, and where in its source.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the engine broke off: {0}")]
pub struct Broken(pub String);

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `work` returns, or where it panicked. Nothing is printed unless `RUST_BACKTRACE` asks for it.
pub fn guard<T>(work: impl FnOnce() -> T) -> Result<T, Broken> {
    remember_panics();
    // What the work had changed is dropped with it.
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| Broken(LAST.take().unwrap_or_else(|| "no place is known".to_owned())))
}

/// From now on a panic leaves its words and place with its thread instead of on stderr.
pub fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            let words = info.payload().downcast_ref::<&str>().copied();
            let words = words.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
            let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
            LAST.set(Some(words.unwrap_or("panic").replace('\n', " ") + &place));
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
    fn a_panic_is_an_error_with_its_place() {
        assert_eq!(guard(|| 5), Ok(5));
        let seed = 7;
        let error = guard(|| -> u32 { panic!("no task\nfor seed {seed}") }).unwrap_err().to_string();
        assert!(error.starts_with("the engine broke off: no task for seed 7 at "), "{error}");
        assert!(error.contains("guard.rs:"), "{error}");
        assert_eq!(guard(|| 6), Ok(6));
    }
}

//! Errors of the loader.

/// Why an object or a kernel's types cannot be read or loaded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct BpfError {
    /// What is wrong, and where.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl BpfError {
    /// An error without a hint.
    #[must_use]
    pub fn new(message: impl Into<String>) -> BpfError {
        BpfError { message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> BpfError {
        self.hint = Some(hint.into());
        self
    }
}

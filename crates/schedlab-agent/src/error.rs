//! Why there is no result, with the exit code that says it to other programs.

use schedlab_scenario::ScenarioError;

/// Any failure of the agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The scenario or the command line.
    #[error("{message}")]
    Input {
        /// What is wrong, with its place.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The run broke off.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
        /// What to do.
        hint: String,
    },
    /// This machine, or this user, cannot run it.
    #[error("{message}")]
    Cannot {
        /// What is missing.
        message: String,
        /// The command that would help.
        hint: String,
    },
    /// Somebody asked it to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Shorthand of this crate.
pub type Result<T> = std::result::Result<T, AgentError>;

impl AgentError {
    /// A failed run.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        AgentError::Failed { message: message.into(), hint: hint.into() }
    }

    /// Something this machine lacks.
    pub fn cannot(message: impl Into<String>, hint: impl Into<String>) -> Self {
        AgentError::Cannot { message: message.into(), hint: hint.into() }
    }

    /// Bad input.
    pub fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        AgentError::Input { message: message.into(), hint: hint.into() }
    }

    /// The exit code: 2 bad input, 3 the run failed, 4 it cannot run here, 130 interrupted.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            AgentError::Input { .. } => 2,
            AgentError::Failed { .. } => 3,
            AgentError::Cannot { .. } => 4,
            AgentError::Interrupted => 130,
        }
    }

    /// What to do about it, empty if nothing can be said.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            AgentError::Input { hint, .. } | AgentError::Failed { hint, .. } | AgentError::Cannot { hint, .. } => hint,
            AgentError::Interrupted => "",
        }
    }
}

impl From<Box<ScenarioError>> for AgentError {
    fn from(error: Box<ScenarioError>) -> Self {
        AgentError::Input { message: error.to_string(), hint: error.hint.clone().unwrap_or_default() }
    }
}

/// A system call that failed, as a failed run.
pub fn os(what: &str) -> impl FnOnce(std::io::Error) -> AgentError + '_ {
    move |error| AgentError::failed(format!("{what}: {error}"), "")
}

/// The same for rustix' errors.
pub fn errno(what: &str) -> impl FnOnce(rustix::io::Errno) -> AgentError + '_ {
    move |error| AgentError::failed(format!("{what}: {error}"), "")
}

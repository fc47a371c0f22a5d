//! The errors of the agent and their exit codes.

use schedlab_scenario::ScenarioError;

/// Any failure of the agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// An error in the scenario or on the command line.
    #[error("{message}")]
    Input {
        /// What is wrong, and where.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The run failed.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
        /// What to do.
        hint: String,
    },
    /// This machine, or this user, cannot run the scenario.
    #[error("{message}")]
    Cannot {
        /// What is missing.
        message: String,
        /// The command that would provide it.
        hint: String,
    },
    /// The run was stopped by a signal.
    #[error("interrupted")]
    Interrupted,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, AgentError>;

impl AgentError {
    /// An error of a run.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        AgentError::Failed { message: message.into(), hint: hint.into() }
    }

    /// An error for something that this machine or user lacks.
    pub fn cannot(message: impl Into<String>, hint: impl Into<String>) -> Self {
        AgentError::Cannot { message: message.into(), hint: hint.into() }
    }

    /// An error in the input.
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

    /// What to do about the error; may be empty.
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

/// Maps the error of a system call to a failed run.
pub fn os(what: &str) -> impl FnOnce(std::io::Error) -> AgentError + '_ {
    move |error| AgentError::failed(format!("{what}: {error}"), "")
}

/// Maps an error of a file in the directory for temporary files to a failed run.
pub fn temporary(error: std::io::Error) -> AgentError {
    let dir = std::env::temp_dir();
    let hint = "set TMPDIR to a directory that can be written and has room";
    AgentError::failed(format!("a temporary file in {}: {error}", dir.display()), hint)
}

/// Maps a rustix error to a failed run.
pub fn errno(what: &str) -> impl FnOnce(rustix::io::Errno) -> AgentError + '_ {
    move |error| AgentError::failed(format!("{what}: {error}"), "")
}

//! One exception per kind of error, all with the attributes message, hint, file, line, column, key, exit_code.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use schedlab_lab::LabError;
use schedlab_trace::{Fault, Place, TraceError};

use crate::traces::TraceFailure;

create_exception!(schedlab, EngineError, PyException, "An error of the engine.");
create_exception!(schedlab, ScenarioError, EngineError, "A scenario that cannot be read.");
create_exception!(schedlab, TraceFileError, EngineError, "A trace that cannot be read or replayed.");
create_exception!(schedlab, RunError, EngineError, "A run that could not finish.");
create_exception!(schedlab, Cancelled, EngineError, "A run that was cancelled.");

/// The attributes of every exception.
#[derive(Default)]
pub struct Details {
    pub message: String,
    pub hint: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub key: Option<String>,
    pub exit_code: u8,
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("EngineError", py.get_type::<EngineError>())?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("TraceFileError", py.get_type::<TraceFileError>())?;
    module.add("RunError", py.get_type::<RunError>())?;
    module.add("Cancelled", py.get_type::<Cancelled>())
}

/// An exception of type `E` with the details as attributes.
pub fn raise<E: pyo3::PyTypeInfo>(py: Python<'_>, details: Details) -> PyErr {
    let made = py.get_type::<E>().call1((details.message.clone(),)).and_then(|value| {
        value.setattr("message", details.message)?;
        value.setattr("hint", details.hint)?;
        value.setattr("file", details.file)?;
        value.setattr("line", details.line)?;
        value.setattr("column", details.column)?;
        value.setattr("key", details.key)?;
        value.setattr("exit_code", details.exit_code)?;
        Ok(PyErr::from_value(value))
    });
    made.unwrap_or_else(|error| error)
}

pub fn scenario(py: Python<'_>, error: schedlab_scenario::ScenarioError) -> PyErr {
    let details = Details {
        message: error.bare(),
        hint: error.hint,
        file: error.file,
        line: error.line,
        column: error.column,
        key: error.key,
        exit_code: 2,
    };
    raise::<ScenarioError>(py, details)
}

pub fn lab(py: Python<'_>, error: &LabError) -> PyErr {
    let message = error.to_string();
    match error {
        LabError::Sim(sim @ schedlab_lab::SimError::Cancelled { .. }) => raise::<Cancelled>(
            py,
            Details { message, hint: Some(sim.hint().into()), exit_code: 130, ..Details::default() },
        ),
        LabError::Sim(sim) => raise::<RunError>(
            py,
            Details { message, hint: Some(sim.hint().into()), exit_code: 3, ..Details::default() },
        ),
        // A suffix without a format is an error in the arguments and is found before the run.
        LabError::Trace(error @ TraceError { fault: Fault::UnknownFormat(_), .. }) => {
            raise::<TraceFileError>(py, place("write", error, 2))
        }
        LabError::Trace(error) => raise::<RunError>(py, place("write", error, 3)),
    }
}

/// The exception for a question that cannot be answered.
pub fn why(py: Python<'_>, error: schedlab_lab::explain::WhyError) -> PyErr {
    use schedlab_lab::explain::WhyError;
    let message = error.to_string();
    let hint = match error {
        WhyError::Sim(sim) => return lab(py, &LabError::Sim(sim)),
        WhyError::NoTask { tasks, .. } if tasks.is_empty() => "no task has started by then".into(),
        WhyError::NoTask { tasks, name, .. } => {
            let workloads = tasks.iter().filter_map(|task| task.split_once('/')).map(|(workload, _)| workload);
            let mut names: Vec<&str> = workloads.chain(tasks.iter().map(String::as_str)).collect();
            names.dedup();
            schedlab_model::suggest(name.trim_matches('"'), names)
        }
        WhyError::Several { pids, .. } => {
            let shown: Vec<String> = pids.iter().take(16).map(ToString::to_string).collect();
            let more = if pids.len() > shown.len() { ", ..." } else { "" };
            format!("name one by its pid (runnable tasks first): {}{more}", shown.join(", "))
        }
        WhyError::Over { .. } => "ask about an earlier time".into(),
    };
    raise::<EngineError>(py, Details { message, hint: Some(hint), exit_code: 2, ..Details::default() })
}

/// The exception for a bug in schedlab, with what is needed to reproduce it.
/// The exit code of a failure of schedlab itself: EX_SOFTWARE of sysexits.h.
const BUG: u8 = 70;

pub fn panicked(py: Python<'_>, panicked: &schedlab_lab::Panicked, context: &str) -> PyErr {
    let hint = format!("this is a bug in schedlab; please report it with the scenario file ({context})");
    let details = Details { message: panicked.to_string(), hint: Some(hint), exit_code: BUG, ..Details::default() };
    raise::<RunError>(py, details)
}

pub fn trace(py: Python<'_>, failure: &TraceFailure) -> PyErr {
    match failure {
        TraceFailure::Input(error) if TraceFailure::is_cancelled(error) => raise::<Cancelled>(
            py,
            Details { message: "stopped before the end of the trace".into(), exit_code: 130, ..Details::default() },
        ),
        TraceFailure::Input(error) => raise::<TraceFileError>(py, place("read", error, 2)),
        TraceFailure::Output(error) => raise::<RunError>(py, place("write", error, 3)),
        TraceFailure::Same(file) => raise::<TraceFileError>(
            py,
            Details {
                message: "the trace would be written over itself".into(),
                hint: Some("name another file".into()),
                file: Some(file.display().to_string()),
                exit_code: 2,
                ..Details::default()
            },
        ),
        TraceFailure::Kernel { message, hint } => raise::<TraceFileError>(
            py,
            Details { message: message.clone(), hint: Some(hint.clone()), exit_code: 2, ..Details::default() },
        ),
    }
}

/// The details of a trace error. A line number has an attribute of its own; a byte offset becomes part of the message.
fn place(doing: &str, error: &TraceError, exit_code: u8) -> Details {
    let (line, offset) = match error.at {
        Place::File => (None, None),
        Place::Line(line) => (u32::try_from(line).ok(), None),
        Place::Byte(offset) => (None, Some(offset)),
    };
    let fault = match &error.fault {
        Fault::Io(io) => format!("cannot {doing} the trace: {}", reason(io)),
        fault => fault.to_string(),
    };
    Details {
        message: offset.map_or(String::new(), |offset| format!("at byte {offset}: ")) + &fault,
        hint: error.hint().map(str::to_owned),
        file: Some(error.file.display().to_string()),
        line,
        exit_code,
        ..Details::default()
    }
}

/// The operating system's message without the error number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

//! `rt-app = "file"`: one rt-app file, or a list of fragments that are merged.

use std::path::Path;

use schedlab_model::Nanos;
use schedlab_workload::rtapp::{self, Source, TaskSet};
use schedlab_workload::{Amount, Op, Program, TaskSpec, Workload};

use crate::error::{Result, ScenarioError};
use crate::naming::{name_of, repeat_of};
use crate::source::{read as read_file, FileText};
use crate::value::{Table, Value};

/// The workload of one or more rt-app files.
#[derive(Debug)]
pub(crate) struct RtApp {
    /// The names of the files in the scenario.
    pub uses: String,
    /// The file to which the line numbers of the programs refer, if there is only one.
    pub file: Option<String>,
    /// The workload.
    pub workload: Workload,
    /// The same for the program rt-app.
    pub task_set: TaskSet,
}

/// Reads the files of a workload's `rt-app` key, relative to `dir`.
pub(crate) fn read(table: &Table, value: &Value, dir: &Path, nr_cpus: usize) -> Result<RtApp> {
    const FORM: &str = "the path of an rt-app file, or a list of the paths of its fragments";
    let paths = value.as_array().unwrap_or_else(|| vec![value.clone()]);
    let names = paths.iter().map(|path| path.string(FORM)).collect::<Result<Vec<&str>>>()?;
    let Some(first) = names.first() else { return Err(value.error("the list is empty").expected(FORM)) };
    if let Some(repeat) = table.get("repeat").filter(|_| repeat_of(table).unwrap_or(true)) {
        repeat.boolean()?;
        return Err(repeat
            .error("repeat is not supported for rt-app files")
            .hint("set \"loop\" : -1 in the tasks of the file"));
    }
    let mut files: Vec<FileText> = Vec::new();
    for (name, path) in names.iter().zip(&paths) {
        files.push(
            read_file(&path.dir(dir).join(name))
                .map_err(|reason| path.error(format!("rt-app file {name}: {reason}")))?,
        );
    }
    let sources: Vec<Source> = files.iter().map(|file| Source { name: &file.name, bytes: &file.bytes }).collect();
    let name = name_of(table, &stem(first))?;
    let app = rtapp::read(&name, &sources, nr_cpus).map_err(|error| {
        let located = ScenarioError::new(error.file, &error.key, error.what).at(error.line, error.column);
        located.hint(error.hint.unwrap_or_default())
    })?;
    let mut workload = app.workload;
    if let Some(duration) = app.duration {
        end_after(&mut workload, duration);
    }
    let file = (sources.len() == 1).then(|| sources[0].name.to_owned());
    Ok(RtApp { uses: names.join(" "), file, workload, task_set: app.task_set })
}

/// `global.duration`: as in rt-app, the workload ends at this time even if its tasks still run.
fn end_after(workload: &mut Workload, duration: Nanos) {
    let program = workload.programs.len() as u32;
    let ops = vec![Op::Sleep(Amount::Fixed(duration)), Op::Finish];
    workload.programs.push(Program { name: "rt-app".into(), ops, ..Program::default() });
    workload.tasks.push(TaskSpec { name: "rt-app".into(), program, jitter: false, ..TaskSpec::default() });
    workload.ends = true;
}

/// The name of a workload from that of a file.
fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().map_or_else(|| "rt-app".into(), |stem| stem.to_string_lossy());
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    stem.chars().take(64).map(plain).collect()
}

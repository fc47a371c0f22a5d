//! sched_ext schedulers: what kernels lack for them, and random loads.

use std::path::Path;

use pyo3::prelude::*;
use schedlab_bpf::{check, kernel_btf as types_of, needs, BpfError, Btf, Lack, Object};
use schedlab_scx::Stress;
use serde_json::{json, Value};

use crate::errors::{self, Details, EngineError};

/// Which file is at fault, and how.
struct Failure {
    file: String,
    error: BpfError,
}

/// The BTF of a kernel: of an image, of `vmlinux`, or of a file of BTF.
#[pyfunction]
pub fn kernel_btf(py: Python<'_>, path: &str) -> PyResult<Vec<u8>> {
    guarded(py, path, || types_of(&read(path)?).map_err(|error| Failure { file: path.to_owned(), error }))
}

/// What each kernel lacks for a scheduler, as a JSON document; `kernels` are files that [`kernel_btf`] reads.
#[pyfunction]
pub fn scx_check(py: Python<'_>, object: &str, kernels: Vec<String>) -> PyResult<String> {
    guarded(py, object, || {
        let at = |file: &str| {
            let file = file.to_owned();
            move |error| Failure { file, error }
        };
        let scheduler = Object::read(&read(object)?).map_err(at(object))?;
        let name = scheduler.scheduler().map_err(at(object))?.name.clone();
        let needs = needs(&scheduler);
        let mut found = Vec::new();
        for kernel in &kernels {
            let btf = types_of(&read(kernel)?).and_then(|btf| Btf::parse(&btf)).map_err(at(kernel))?;
            let lacks = check(&scheduler, &btf).map_err(at(object))?;
            found.push(lacks.iter().map(lack).collect::<Vec<Value>>());
        }
        let needs = json!({
            "operations": needs.operations,
            "kfuncs": needs.kfuncs,
            "relocations": needs.relocations,
            "maps": needs.maps,
        });
        Ok(json!({ "scheduler": name, "needs": needs, "lacks": found }).to_string())
    })
}

/// Runs a scheduler under one random load per seed; the JSON document has how each ended.
#[pyfunction]
#[pyo3(signature = (object, kernel, seeds, *, cpus, tasks, duration_ns, variables))]
#[allow(clippy::too_many_arguments)] // they are keywords in Python
pub fn scx_stress(
    py: Python<'_>,
    object: &str,
    kernel: &str,
    seeds: Vec<u64>,
    cpus: usize,
    tasks: usize,
    duration_ns: u64,
    variables: Vec<(String, i64)>,
) -> PyResult<String> {
    guarded(py, object, || {
        let at = |file: &str| {
            let file = file.to_owned();
            move |error| Failure { file, error }
        };
        let btf = types_of(&read(kernel)?).and_then(|btf| Btf::parse(&btf)).map_err(at(kernel))?;
        let scheduler = Object::read(&read(object)?).map_err(at(object))?;
        let name = scheduler.scheduler().map_err(at(object))?.name.clone();
        let mut runs = Vec::new();
        for seed in seeds {
            let load = Stress { cpus, tasks, duration: duration_ns, seed, variables: variables.clone() };
            let outcome = schedlab_scx::stress(&scheduler, &btf, &load).map_err(at(object))?;
            let exit = outcome.exit.map(|exit| {
                json!({ "kind": exit.kind.name(), "message": exit.message, "place": exit.place, "at_ns": exit.at })
            });
            runs.push(json!({
                "seed": seed,
                "exit": exit,
                "wakeups": outcome.wakeups,
                "instructions": outcome.instructions,
            }));
        }
        Ok(json!({ "scheduler": name, "runs": runs }).to_string())
    })
}

fn lack(lack: &Lack) -> Value {
    json!({
        "needed": lack.needed,
        "what": lack.what,
        "name": lack.name,
        "why": lack.why,
        "place": lack.place,
        "uses": lack.uses,
    })
}

fn read(path: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(Path::new(path)).map_err(|e| {
        let text = e.to_string();
        let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
        Failure { file: path.to_owned(), error: BpfError::new(format!("cannot read the file: {reason}")) }
    })
}

fn guarded<T: Send>(py: Python<'_>, object: &str, call: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    match py.detach(|| schedlab_lab::guard(call)) {
        Ok(done) => done.map_err(|Failure { file, error }| {
            let (message, hint) = (error.message, error.hint);
            let details = Details { message, hint, file: Some(file), exit_code: 2, ..Details::default() };
            errors::raise::<EngineError>(py, details)
        }),
        Err(panicked) => Err(errors::panicked(py, &panicked, object)),
    }
}

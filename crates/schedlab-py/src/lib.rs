//! The Python module `schedlab._engine`. It contains glue only: the GIL is released while the engine runs, and every
//! error becomes an exception with the same attributes.

mod ablate;
mod convert;
mod errors;
mod explain;
mod kept;
mod replay;
mod run;
mod scenario;
mod scx;
mod study;
mod traces;
mod whatif;

use pyo3::prelude::*;

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    schedlab_lab::remember_panics();
    module.add("ENGINE", schedlab_lab::ENGINE)?;
    errors::register(module)?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<run::Cancel>()?;
    module.add_class::<kept::Kept>()?;
    module.add_class::<replay::TraceSample>()?;
    module.add_function(wrap_pyfunction!(scenario::load, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::loads, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::listing, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::changes, module)?)?;
    module.add_class::<study::Study>()?;
    module.add_function(wrap_pyfunction!(study::load_study, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(kept::run_keeping, module)?)?;
    module.add_function(wrap_pyfunction!(run::tail, module)?)?;
    module.add_function(wrap_pyfunction!(run::timeline, module)?)?;
    module.add_function(wrap_pyfunction!(ablate::ablation, module)?)?;
    module.add_function(wrap_pyfunction!(ablate::run_hybrid, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain_metric, module)?)?;
    module.add_function(wrap_pyfunction!(explain::why, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(replay::waits, module)?)?;
    module.add_function(wrap_pyfunction!(replay::row_name, module)?)?;
    module.add_function(wrap_pyfunction!(whatif::whatif, module)?)?;
    module.add_function(wrap_pyfunction!(whatif::whatif_run, module)?)?;
    module.add_function(wrap_pyfunction!(scx::kernel_btf, module)?)?;
    module.add_function(wrap_pyfunction!(scx::scx_check, module)?)?;
    module.add_function(wrap_pyfunction!(scx::scx_stress, module)?)?;
    Ok(())
}

//! Where a kernel's types have the fields that the core reads and writes.

use schedlab_bpf::{BpfError, Btf};

/// Offset and size of a field in bytes.
pub(crate) type Field = (usize, usize);

/// The fields, by name; those that a kernel lacks are left out.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub task_size: usize,
    pub slice: Field,
    pub vtime: Field,
    pub weight: Option<Field>,
    pub pid: Field,
    pub allowed_count: Option<Field>,
    pub allowed: Option<Field>,
    pub comm: Option<Field>,
    pub exit_size: usize,
    pub exit_kind: Option<Field>,
    pub exit_code: Option<Field>,
    pub init_args_size: usize,
}

impl Layout {
    /// # Errors
    /// The kernel has no sched_ext.
    pub fn new(kernel: &Btf) -> Result<Layout, BpfError> {
        let task = |path: &str| kernel.offset_of("task_struct", path);
        let needed = |path: &str| {
            task(path).ok_or_else(|| {
                BpfError::new(format!("the kernel has no field task_struct.{path}: it was built without sched_ext"))
                    .with_hint("name a kernel with CONFIG_SCHED_CLASS_EXT")
            })
        };
        let size = |name: &str| kernel.structure(name).and_then(|id| kernel.size(id)).unwrap_or(0) as usize;
        Ok(Layout {
            task_size: size("task_struct"),
            slice: needed("scx.slice")?,
            vtime: needed("scx.dsq_vtime")?,
            weight: task("scx.weight"),
            pid: needed("pid")?,
            allowed_count: task("nr_cpus_allowed"),
            allowed: task("cpus_ptr"),
            comm: task("comm"),
            exit_size: size("scx_exit_info"),
            exit_kind: kernel.offset_of("scx_exit_info", "kind"),
            exit_code: kernel.offset_of("scx_exit_info", "exit_code"),
            init_args_size: size("scx_init_task_args").max(8),
        })
    }
}

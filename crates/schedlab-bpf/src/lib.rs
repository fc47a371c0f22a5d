//! sched_ext schedulers as BPF objects: what they need of a kernel, and a machine that executes them.
//!
//! An object is loaded as libbpf loads it: its types are matched with those of a kernel (CO-RE), its external symbols
//! with the kernel's functions. The machine checks every access to memory. Whatever is wrong with an object or its
//! execution is an error value; nothing in this crate panics on input.

mod alu;
mod btf;
mod calls;
mod check;
mod core_relo;
mod elf;
mod error;
mod ext;
mod helper;
mod insn;
mod kernel;
mod link;
mod machine;
mod map;
mod memory;
mod program;
mod reach;

pub use btf::{Btf, Kind, Member};
pub use calls::Kernel;
pub use check::{check, needs, Lack, Needs};
pub use elf::Elf;
pub use error::BpfError;
pub use kernel::kernel_btf;
pub use machine::{Machine, Stop, MOST_INSTRUCTIONS};
pub use memory::{Memory, RegionId, Write};
pub use program::Object;

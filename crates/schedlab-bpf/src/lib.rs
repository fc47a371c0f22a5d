//! sched_ext schedulers as BPF objects: what they need of a kernel.
//!
//! An object is loaded as libbpf loads it: its types are matched with those of a kernel (CO-RE), its external symbols
//! with the kernel's functions. Whatever is wrong with an object is an error value; nothing in this crate panics on
//! input.

mod alu;
mod btf;
mod check;
mod core_relo;
mod elf;
mod error;
mod ext;
mod insn;
mod kernel;
mod link;
mod program;
mod reach;

pub use btf::{Btf, Kind, Member};
pub use check::{check, needs, Lack, Needs};
pub use elf::Elf;
pub use error::BpfError;
pub use kernel::kernel_btf;
pub use program::Object;

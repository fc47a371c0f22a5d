//! An object linked with a kernel: every CO-RE relocation and external symbol, resolved or not.

use std::collections::{BTreeMap, BTreeSet};

use crate::core_relo::{fits, Relocated, Spec};
use crate::insn::{Insn, CALL, LD_IMM64, PSEUDO_KFUNC};
use crate::program::{Object, Ref};
use crate::{BpfError, Btf, Kind};

/// Addresses of external symbols, only ever compared with 0: the number of the symbol from here on.
pub(crate) const KSYM: u64 = 0xffff_ffff_8000_0000;

/// Something that the kernel does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    /// What it is: `kfunc`, `field`, `type`, `constant`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Why it does not fit, if the kernel has something of that name.
    pub why: Option<&'static str>,
}

/// The instructions of an object for a kernel.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The instructions with relocated constants.
    pub insns: Vec<Insn>,
    /// Per external symbol, its address; `Some(0)`: the kernel lacks it. `None`: its value is not known here.
    pub externs: Vec<Option<u64>>,
    /// Instructions that must not be executed, because the kernel lacks what they refer to.
    pub poisoned: BTreeSet<usize>,
    /// What they refer to.
    pub absent: BTreeMap<usize, Absent>,
}

impl Linked {
    /// Links an object with the types of a kernel.
    ///
    /// # Errors
    /// A relocation is of an instruction that cannot hold its result.
    pub fn new(object: &Object, kernel: &Btf) -> Result<Linked, BpfError> {
        let externs: Vec<Result<Option<u64>, &'static str>> =
            (0..object.externs.len()).map(|number| resolve(object, kernel, number)).collect();
        let mut linked = Linked {
            insns: object.insns.clone(),
            externs: externs.iter().map(|found| found.unwrap_or(Some(0))).collect(),
            poisoned: BTreeSet::new(),
            absent: BTreeMap::new(),
        };
        for (at, spec) in &object.core {
            linked.relocate(object, *at, spec, kernel)?;
        }
        for (at, reference) in &object.refs {
            let (Ref::Extern(number), insn) = (reference, linked.insns[*at]) else { continue };
            let symbol = &object.externs[*number];
            if let Err(why) = externs[*number] {
                let calls = insn.code == CALL && insn.src == PSEUDO_KFUNC;
                if calls || !symbol.weak {
                    let what = if matches!(object.btf.kind(symbol.ty), Kind::Func(_)) { "kfunc" } else { "variable" };
                    let why = (!why.is_empty()).then_some(why);
                    linked.absent.insert(*at, Absent { what, name: symbol.kernel_name().to_owned(), why });
                    linked.poisoned.insert(*at);
                }
            }
        }
        Ok(linked)
    }

    fn relocate(&mut self, object: &Object, at: usize, spec: &Spec, kernel: &Btf) -> Result<(), BpfError> {
        match spec.relocate(&object.btf, kernel) {
            Relocated::Missing => {
                let name = spec.name(&object.btf);
                let what = match name.contains('.') {
                    true if name.starts_with("enum") => "constant",
                    true => "field",
                    false => "type",
                };
                self.absent.insert(at, Absent { what, name, why: None });
                self.poisoned.insert(at);
            }
            Relocated::Value(value, size) => self.patch(at, value, size).ok_or_else(|| {
                let name = spec.name(&object.btf);
                BpfError::new(format!("{}: {name} is {value}, which does not fit the instruction", object.place(at)))
            })?,
        }
        Ok(())
    }

    /// `bpf_core_patch_insn`.
    fn patch(&mut self, at: usize, value: u64, size: Option<u32>) -> Option<()> {
        let insn = self.insns.get_mut(at)?;
        match insn.class() {
            4 | 7 if insn.code & 8 == 0 => {
                insn.imm = i32::try_from(value as i64).ok().or(u32::try_from(value).ok().map(|v| v as i32))?
            }
            1..=3 => {
                insn.off = i16::try_from(value).ok()?;
                let code = match size {
                    Some(1) => 0x10,
                    Some(2) => 0x08,
                    Some(4) => 0x00,
                    Some(8) => 0x18,
                    _ => return Some(()),
                };
                // The mode and class stay; only a load of memory may change its width.
                if insn.code & 0xe0 == 0x60 || insn.code & 0xe0 == 0x80 {
                    insn.code = insn.code & !0x18 | code;
                }
            }
            0 if insn.code == LD_IMM64 => {
                insn.imm = value as u32 as i32;
                self.insns.get_mut(at + 1)?.imm = (value >> 32) as i32;
            }
            _ => return None,
        }
        Some(())
    }
}

/// The address of an external symbol (`bpf_object__resolve_externs`). `Err`: the kernel lacks it, with the reason if it
/// has something else of that name.
fn resolve(object: &Object, kernel: &Btf, number: usize) -> Result<Option<u64>, &'static str> {
    let symbol = &object.externs[number];
    if symbol.kconfig {
        return Ok(None);
    }
    let address = Some(KSYM + number as u64);
    let name = symbol.kernel_name();
    match object.btf.kind(symbol.ty) {
        Kind::Func(proto) => {
            let id = kernel.function(name).ok_or("")?;
            let Kind::Func(its) = kernel.kind(id) else { return Err("") };
            if fits(&object.btf, *proto, kernel, *its) {
                return Ok(address);
            }
            Err("its parameters or result differ")
        }
        Kind::Var(_) => {
            let is_var = |id: &u32| matches!(kernel.kind(*id), Kind::Var(_));
            if kernel.named(name).any(|id| is_var(&id)) {
                Ok(address)
            } else {
                Err("")
            }
        }
        _ => Err(""),
    }
}

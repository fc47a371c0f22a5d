//! What a kernel lacks for an object: its functions, types, fields, constants, operations, helpers and kinds of maps.
//!
//! An object may test for what it uses; then the absence of it is no obstacle. That is decided as the verifier does, by
//! whether the instruction can be reached. Not checked: whether a function may be called from an operation, the
//! verifier's limits, and options of the kernel that leave no trace in its types.

use std::collections::BTreeMap;

use crate::insn::{Insn, CALL};
use crate::link::{Absent, Linked};
use crate::program::Object;
use crate::reach::reachable;
use crate::{BpfError, Btf, Kind};

/// Something that a kernel lacks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lack {
    /// The object needs it: the kernel refuses the object. Otherwise the object has an alternative.
    pub needed: bool,
    /// What it is: `kfunc`, `field`, `type`, `constant`, `operation`, `helper`, `map`, `target`,
    /// `option`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Why it does not fit, if the kernel has something of that name.
    pub why: Option<&'static str>,
    /// Where the object uses it first; empty for what is no instruction.
    pub place: String,
    /// The number of places.
    pub uses: usize,
}

/// The number of things of each kind that were looked up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Needs {
    /// Functions and variables of the kernel.
    pub kfuncs: usize,
    /// CO-RE relocations.
    pub relocations: usize,
    /// Maps.
    pub maps: usize,
    /// Operations that the scheduler has.
    pub operations: usize,
}

/// What an object refers to.
#[must_use]
pub fn needs(object: &Object) -> Needs {
    let operations = object.struct_ops.iter().map(|ops| ops.functions.len()).sum();
    let kfuncs = object.externs.iter().filter(|symbol| !symbol.kconfig).count();
    Needs { kfuncs, relocations: object.core.len(), maps: object.maps.len(), operations }
}

/// What the kernel with these types lacks, the needed first.
///
/// # Errors
/// The object cannot be linked.
pub fn check(object: &Object, kernel: &Btf) -> Result<Vec<Lack>, BpfError> {
    if object.scheduler().is_ok() && kernel.structure("sched_ext_ops").is_none() {
        let (what, name) = ("option", "CONFIG_SCHED_CLASS_EXT".to_owned());
        let why = Some("the kernel was built without sched_ext");
        return Ok(vec![Lack { needed: true, what, name, why, place: String::new(), uses: 1 }]);
    }
    let linked = Linked::new(object, kernel)?;
    let reached = reachable(object, &linked, roots(object));
    let mut found: BTreeMap<(&str, String), Lack> = BTreeMap::new();
    let mut add = |needed: bool, absent: Absent, place: String| {
        let Absent { what, name, why } = absent;
        let entry = found.entry((what, name.clone()));
        let lack = entry.or_insert(Lack { needed, what, name, why, place: place.clone(), uses: 0 });
        lack.uses += 1;
        if needed && !lack.needed {
            (lack.needed, lack.place) = (true, place);
        }
    };
    for (at, absent) in &linked.absent {
        let strong = matches!(object.refs.get(at), Some(crate::program::Ref::Extern(n)) if !object.externs[*n].weak);
        add(strong || reached[*at], absent.clone(), object.place(*at));
    }
    for (at, insn) in object.insns.iter().enumerate().filter(|(_, insn)| is_helper(**insn)) {
        if let Some(name) =
            lacks_number(object, kernel, "bpf_func_id", "__BPF_FUNC_MAX_ID", "BPF_FUNC_", insn.imm as u32)
        {
            add(reached[at], Absent { what: "helper", name, why: None }, object.place(at));
        }
    }
    for map in &object.maps {
        if let Some(kind) =
            lacks_number(object, kernel, "bpf_map_type", "__MAX_BPF_MAP_TYPE", "BPF_MAP_TYPE_", map.kind)
        {
            add(true, Absent { what: "map", name: kind, why: None }, format!("map {}", map.name));
        }
    }
    operations(object, kernel, &mut add);
    targets(object, kernel, &mut add);
    let mut lacks: Vec<Lack> = found.into_values().collect();
    lacks.sort_by(|a, b| b.needed.cmp(&a.needed).then_with(|| a.cmp(b)));
    Ok(lacks)
}

/// The first instructions of all programs that are loaded; those in sections that begin with `?` are not, unless an
/// operation names them.
fn roots(object: &Object) -> Vec<usize> {
    let loaded = |section: &str| !section.starts_with(['?', '.']);
    let programs = object.functions.iter().filter(|function| loaded(&function.section)).map(|function| function.start);
    programs.chain(object.struct_ops.iter().flat_map(|ops| ops.functions.values().copied())).collect()
}

fn is_helper(insn: Insn) -> bool {
    insn.code == CALL && insn.src == 0
}

/// The name of a constant that the kernel's enumeration lacks, as the object's types or its number name it.
fn lacks_number(object: &Object, kernel: &Btf, of: &str, end: &str, prefix: &str, number: u32) -> Option<String> {
    let name_in = |btf: &Btf| {
        btf.named(of).find_map(|id| match btf.kind(id) {
            Kind::Enum { values, .. } => {
                let its = values.iter().find(|(name, value)| *value == u64::from(number) && btf.string(*name) != end);
                its.map(|(name, _)| btf.string(*name).to_owned())
            }
            _ => None,
        })
    };
    let knows = kernel.named(of).any(|id| matches!(kernel.kind(id), Kind::Enum { .. }));
    let lacks = knows && name_in(kernel).is_none();
    lacks.then(|| name_in(&object.btf).unwrap_or_else(|| format!("{prefix}{number}")))
}

/// The members of tables of operations.
fn operations(object: &Object, kernel: &Btf, add: &mut impl FnMut(bool, Absent, String)) {
    for ops in &object.struct_ops {
        let Some(id) = kernel.structure(&ops.ty) else {
            add(true, Absent { what: "type", name: format!("struct {}", ops.ty), why: None }, ops.name.clone());
            continue;
        };
        for member in ops.functions.keys().chain(ops.values.keys()) {
            if kernel.member(id, member).is_none() {
                let name = format!("{}.{member}", ops.ty);
                add(true, Absent { what: "operation", name, why: None }, ops.name.clone());
            }
        }
    }
}

/// Functions and tracepoints that programs beside the scheduler attach to.
fn targets(object: &Object, kernel: &Btf, add: &mut impl FnMut(bool, Absent, String)) {
    for function in &object.functions {
        let Some((kind, target)) = function.section.split_once('/') else { continue };
        let has = match kind {
            "fentry" | "fexit" | "fmod_ret" => kernel.function(target).is_some(),
            "tp_btf" => kernel.named(&format!("btf_trace_{target}")).next().is_some(),
            _ => true,
        };
        if !has {
            add(true, Absent { what: "target", name: target.to_owned(), why: None }, function.name.clone());
        }
    }
}

//! CO-RE: the types, fields and constants of an object in the types of a kernel (`bpf_core_calc_relo_insn`,
//! tools/lib/bpf/relo_core.c).
//!
//! Where several types of the kernel have the name, the first that fits is used; libbpf refuses an object if they
//! differ in the result.

use crate::btf::{essential, TypeId};
use crate::{BpfError, Btf, Kind};

/// The result of a relocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Relocated {
    /// The number to be put into the instruction; for a field, the size of its memory access.
    Value(u64, Option<u32>),
    /// The kernel does not have it: the instruction must not be executed.
    Missing,
}

/// What an instruction refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    ty: TypeId,
    kind: u32,
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    Index(u32),
    Member(String),
}

const BYTE_OFFSET: u32 = 0;
const EXISTS: u32 = 2;
const LSHIFT: u32 = 4;
const TYPE_ID_LOCAL: u32 = 6;
const TYPE_ID_TARGET: u32 = 7;
const TYPE_EXISTS: u32 = 8;
const ENUMVAL_EXISTS: u32 = 10;
const ENUMVAL_VALUE: u32 = 11;
const TYPE_MATCHES: u32 = 12;
/// The most types that a comparison looks at: types may refer to themselves.
const STEPS: u32 = 10_000;

impl Spec {
    /// Parses the access string of a relocation of an object.
    ///
    /// # Errors
    /// The string does not fit the type.
    pub fn parse(local: &Btf, ty: TypeId, access: &str, kind: u32) -> Result<Spec, BpfError> {
        let damaged =
            || BpfError::new(format!("the BPF object is damaged: a CO-RE relocation `{access}` of kind {kind}"));
        let mut steps = Vec::new();
        let numbers: Option<Vec<u32>> = access.split(':').map(|n| n.parse().ok()).collect();
        let numbers = numbers.ok_or_else(damaged)?;
        let mut at = local.resolve(ty);
        if kind == ENUMVAL_EXISTS || kind == ENUMVAL_VALUE {
            let Kind::Enum { values, .. } = local.kind(at) else { return Err(damaged()) };
            let (name, _) = values.get(numbers[0] as usize).ok_or_else(damaged)?;
            steps.push(Step::Member(local.string(*name).to_owned()));
        } else if kind < TYPE_ID_LOCAL {
            steps.push(Step::Index(numbers[0]));
            for number in &numbers[1..] {
                match local.kind(at) {
                    Kind::Struct { members, .. } => {
                        let member = members.get(*number as usize).ok_or_else(damaged)?;
                        let name = local.member_name(member);
                        if !name.is_empty() {
                            steps.push(Step::Member(name.to_owned()));
                        }
                        at = local.resolve(member.ty);
                    }
                    Kind::Array { elem, .. } => {
                        steps.push(Step::Index(*number));
                        at = local.resolve(*elem);
                    }
                    _ => return Err(damaged()),
                }
            }
        } else if kind > TYPE_MATCHES {
            return Err(damaged());
        }
        Ok(Spec { ty, kind, steps })
    }

    /// Whether the object asks if the kernel has something, so that its absence is an answer.
    #[must_use]
    pub fn asks(&self) -> bool {
        matches!(self.kind, EXISTS | TYPE_EXISTS | ENUMVAL_EXISTS | TYPE_MATCHES)
    }

    /// The name as C spells it: `struct task_struct.scx.slice`, `enum scx_enq_flags.SCX_ENQ_IMMED`.
    #[must_use]
    pub fn name(&self, local: &Btf) -> String {
        let root = local.resolve(self.ty);
        let word = match local.kind(root) {
            Kind::Struct { union: true, .. } => "union ",
            Kind::Struct { .. } | Kind::Fwd => "struct ",
            Kind::Enum { .. } => "enum ",
            _ => "",
        };
        let named = if local.name(root).is_empty() { local.name(self.ty) } else { local.name(root) };
        let mut name = format!("{word}{}", essential(named));
        for (n, step) in self.steps.iter().enumerate() {
            match step {
                Step::Index(0) if n == 0 => {}
                Step::Index(index) => name.push_str(&format!("[{index}]")),
                Step::Member(member) => {
                    name.push('.');
                    name.push_str(essential(member));
                }
            }
        }
        name
    }

    /// The relocation for a kernel with these types.
    #[must_use]
    pub fn relocate(&self, local: &Btf, target: &Btf) -> Relocated {
        if self.kind == TYPE_ID_LOCAL {
            return Relocated::Value(u64::from(self.ty), None);
        }
        let root = local.resolve(self.ty);
        let name = if local.name(root).is_empty() { local.name(self.ty) } else { local.name(root) };
        let candidates = target
            .named(name)
            .filter(|id| essential(target.name(*id)) == target.name(*id) && same_kind(local, self.ty, target, *id));
        let found = candidates.filter_map(|id| self.in_type(local, target, id)).next();
        match (found, self.asks()) {
            (Some((value, size)), _) => Relocated::Value(value, size),
            (None, true) => Relocated::Value(0, None),
            (None, false) => Relocated::Missing,
        }
    }

    fn in_type(&self, local: &Btf, target: &Btf, id: TypeId) -> Option<(u64, Option<u32>)> {
        let plain = |value: u64| Some((value, None));
        match self.kind {
            TYPE_ID_TARGET => return plain(u64::from(id)),
            TYPE_EXISTS => return fits(local, self.ty, target, id).then_some((1, None)),
            TYPE_MATCHES => return matches(local, self.ty, target, id, &mut { STEPS }).then_some((1, None)),
            9 => return plain(u64::from(target.size(id)?)),
            ENUMVAL_EXISTS | ENUMVAL_VALUE => {
                let (Kind::Enum { values, .. }, Some(Step::Member(name))) =
                    (target.kind(target.resolve(id)), self.steps.first())
                else {
                    return None;
                };
                let (_, value) = values.iter().find(|(constant, _)| target.string(*constant) == essential(name))?;
                return plain(if self.kind == ENUMVAL_EXISTS { 1 } else { *value });
            }
            _ => {}
        }
        let field = self.field(local, target, id)?;
        let whole = target.size(field.ty);
        let value = match self.kind {
            BYTE_OFFSET => u64::from(field.place(target)?.0),
            1 => u64::from(if field.bits == 0 { whole? } else { field.place(target)?.1 }),
            EXISTS => 1,
            3 => u64::from(is_signed(target, field.ty)),
            LSHIFT => {
                let (byte, size) = field.place(target)?;
                let bits = if field.bits == 0 { size * 8 } else { field.bits };
                u64::from(64u32.checked_sub((field.offset + bits).checked_sub(byte * 8)?)?)
            }
            _ => u64::from(64u32.checked_sub(if field.bits == 0 { whole?.checked_mul(8)? } else { field.bits })?),
        };
        let scalar =
            matches!(target.kind(target.resolve(field.ty)), Kind::Int { .. } | Kind::Ptr(_) | Kind::Enum { .. });
        Some((value, whole.filter(|_| self.kind == BYTE_OFFSET && field.bits == 0 && scalar)))
    }

    fn field(&self, local: &Btf, target: &Btf, id: TypeId) -> Option<Field> {
        let (mut ty, mut offset, mut bits) = (id, 0u32, 0);
        let mut its = local.resolve(self.ty);
        for (n, step) in self.steps.iter().enumerate() {
            match step {
                Step::Index(index) if n == 0 => {
                    offset = if *index == 0 { 0 } else { target.size(ty)?.checked_mul(8)?.checked_mul(*index)? };
                }
                Step::Index(index) => {
                    let Kind::Array { elem, len } = target.kind(target.resolve(ty)) else { return None };
                    if *len != 0 && index >= len {
                        return None;
                    }
                    offset = offset.checked_add(target.size(*elem)?.checked_mul(8)?.checked_mul(*index)?)?;
                    ty = *elem;
                    if let Kind::Array { elem, .. } = local.kind(local.resolve(its)) {
                        its = *elem;
                    }
                }
                Step::Member(name) => {
                    let (member, at, width) = target.member(ty, essential(name))?;
                    (ty, offset, bits) = (member, offset.checked_add(at)?, width);
                    its = local.member(its, name)?.0;
                    if !same_kind(local, its, target, ty) {
                        return None;
                    }
                }
            }
        }
        Some(Field { ty, offset, bits })
    }
}

/// A field of the kernel: its type, its offset in bits, its width if it is a bit field.
struct Field {
    ty: TypeId,
    offset: u32,
    bits: u32,
}

impl Field {
    /// Offset and size in bytes of the memory access that reads it.
    fn place(&self, target: &Btf) -> Option<(u32, u32)> {
        if self.bits == 0 {
            return Some((self.offset / 8, target.size(self.ty).unwrap_or(8)));
        }
        let mut size = target.size(self.ty)?.max(1);
        loop {
            let byte = self.offset / 8 / size * size;
            if self.offset.checked_add(self.bits)?.checked_sub(byte.checked_mul(8)?)? <= size * 8 {
                return Some((byte, size));
            }
            size *= 2;
            if size > 8 {
                return None;
            }
        }
    }
}

fn is_signed(btf: &Btf, ty: TypeId) -> bool {
    matches!(btf.kind(btf.resolve(ty)), Kind::Int { signed: true, .. } | Kind::Enum { signed: true, .. })
}

/// `btf_kind_core_compat`: the kinds agree; declarations fit structs.
fn same_kind(local: &Btf, a: TypeId, target: &Btf, b: TypeId) -> bool {
    let (a, b) = (local.kind(local.resolve(a)), target.kind(target.resolve(b)));
    let composite = |kind: &Kind| matches!(kind, Kind::Struct { .. } | Kind::Fwd);
    std::mem::discriminant(a) == std::mem::discriminant(b) || composite(a) && composite(b)
}

/// Counts a step; whether it may be made.
fn step(left: &mut u32) -> bool {
    *left = left.saturating_sub(1);
    *left > 0
}

/// Whether a type of an object fits a type of the kernel, as [`compatible`] has it.
#[must_use]
pub(crate) fn fits(local: &Btf, a: TypeId, target: &Btf, b: TypeId) -> bool {
    compatible(local, a, target, b, &mut { STEPS })
}

/// `bpf_core_types_are_compat`: names are ignored below the root.
fn compatible(local: &Btf, a: TypeId, target: &Btf, b: TypeId, left: &mut u32) -> bool {
    let (a, b) = (local.resolve(a), target.resolve(b));
    if !step(left) || !same_kind(local, a, target, b) {
        return false;
    }
    match (local.kind(a), target.kind(b)) {
        (Kind::Ptr(a), Kind::Ptr(b)) | (Kind::Func(a), Kind::Func(b)) => compatible(local, *a, target, *b, left),
        (Kind::Array { elem: a, .. }, Kind::Array { elem: b, .. }) => compatible(local, *a, target, *b, left),
        (Kind::Proto { result: a, params: of_a }, Kind::Proto { result: b, params: of_b }) => {
            of_a.len() == of_b.len()
                && of_a.iter().zip(of_b).all(|(a, b)| compatible(local, *a, target, *b, left))
                && compatible(local, *a, target, *b, left)
        }
        _ => true,
    }
}

/// `bpf_core_types_match`: every member and constant of the object's type is in the kernel's, with a type that matches.
fn matches(local: &Btf, a: TypeId, target: &Btf, b: TypeId, left: &mut u32) -> bool {
    let (a, b) = (local.resolve(a), target.resolve(b));
    if !step(left) || !same_kind(local, a, target, b) {
        return false;
    }
    match (local.kind(a), target.kind(b)) {
        (Kind::Struct { members, .. }, Kind::Struct { .. }) => members.iter().all(|member| {
            let name = local.member_name(member);
            name.is_empty()
                || target.member(b, name).is_some_and(|(ty, _, _)| match (local.kind(member.ty), target.kind(ty)) {
                    // Pointers are not followed, or a task would drag in every type.
                    (Kind::Ptr(_), Kind::Ptr(_)) => true,
                    _ => matches(local, member.ty, target, ty, left),
                })
        }),
        (Kind::Enum { values: of_a, .. }, Kind::Enum { values: of_b, .. }) => of_a.iter().all(|(name, _)| {
            let name = essential(local.string(*name));
            of_b.iter().any(|(other, _)| essential(target.string(*other)) == name)
        }),
        _ => compatible(local, a, target, b, left),
    }
}

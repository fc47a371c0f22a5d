//! Types in the BPF Type Format (Documentation/bpf/btf.rst), of an object or a kernel.

use crate::BpfError;

/// The index of a type; 0 is void.
pub type TypeId = u32;

/// A member of a struct or union.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    name: u32,
    /// Its type.
    pub ty: TypeId,
    /// Its offset in bits.
    pub offset: u32,
    /// Its width in bits if it is a bit field; else 0.
    pub bits: u32,
}

/// What a type is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `void`.
    Void,
    /// An integer.
    Int {
        /// Its size in bytes.
        size: u32,
        /// It is signed.
        signed: bool,
    },
    /// A pointer.
    Ptr(TypeId),
    /// An array.
    Array {
        /// The type of its elements.
        elem: TypeId,
        /// Their number.
        len: u32,
    },
    /// A struct or union.
    Struct {
        /// Its size in bytes.
        size: u32,
        /// It is a union.
        union: bool,
        /// Its members in order.
        members: Vec<Member>,
    },
    /// An enumeration.
    Enum {
        /// Its size in bytes.
        size: u32,
        /// Its values are signed.
        signed: bool,
        /// Name and value of each constant.
        values: Vec<(u32, u64)>,
    },
    /// A declaration of a struct or union.
    Fwd,
    /// `typedef`, `const`, `volatile`, `restrict`, a type tag: the type without the modifier.
    Modifier {
        /// The type.
        ty: TypeId,
        /// It is a typedef.
        typedef: bool,
    },
    /// A function.
    Func(TypeId),
    /// A function prototype.
    Proto {
        /// The type of its result.
        result: TypeId,
        /// Types of its parameters.
        params: Vec<TypeId>,
    },
    /// A variable.
    Var(TypeId),
    /// The variables of a section: type, offset, size.
    DataSec(Vec<(TypeId, u32, u32)>),
    /// A floating-point number of so many bytes.
    Float(u32),
    /// A tag of a declaration.
    Tag,
}

/// A table of types.
#[derive(Clone, Debug)]
pub struct Btf {
    strings: Vec<u8>,
    types: Vec<(u32, Kind)>,
    /// The hash of each type's name without its flavour, sorted.
    names: Vec<(u64, TypeId)>,
}

const MAGIC: u16 = 0xeb9f;
const DEPTH: usize = 64;
/// The most anonymous members that are searched for a name; damaged types may contain themselves.
const MEMBERS: u32 = 1_000;

impl Btf {
    /// Parses a `.BTF` section.
    ///
    /// # Errors
    /// The bytes are not BTF, or are damaged.
    pub fn parse(data: &[u8]) -> Result<Btf, BpfError> {
        let damaged = || BpfError::new("the BTF is damaged");
        let mut header = Words { data, at: 0 };
        let magic = header.u16().ok_or_else(damaged)?;
        if magic != MAGIC {
            return Err(BpfError::new("this is not BTF: its magic number differs"));
        }
        header.at = 4;
        let [hdr_len, type_off, type_len, str_off, str_len] = header.array().ok_or_else(damaged)?;
        let part = |off: u32, len: u32| {
            let start = (hdr_len as usize).checked_add(off as usize)?;
            data.get(start..start.checked_add(len as usize)?)
        };
        let strings = part(str_off, str_len).ok_or_else(damaged)?.to_vec();
        let mut words = Words { data: part(type_off, type_len).ok_or_else(damaged)?, at: 0 };
        let mut types = vec![(0, Kind::Void)];
        while words.at < words.data.len() {
            types.push(read_type(&mut words).ok_or_else(damaged)?);
        }
        let mut btf = Btf { strings, types, names: Vec::new() };
        let named = (1..btf.types.len() as TypeId).filter(|id| !btf.name(*id).is_empty());
        btf.names = named.map(|id| (hash(essential(btf.name(id))), id)).collect();
        btf.names.sort_unstable();
        Ok(btf)
    }

    /// The number of types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there is no type but void.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.len() == 1
    }

    /// What a type is; void if there is no such type.
    #[must_use]
    pub fn kind(&self, id: TypeId) -> &Kind {
        self.types.get(id as usize).map_or(&Kind::Void, |(_, kind)| kind)
    }

    /// The name of a type; empty if it has none.
    #[must_use]
    pub fn name(&self, id: TypeId) -> &str {
        self.types.get(id as usize).map_or("", |(name, _)| self.string(*name))
    }

    /// The name of a member.
    #[must_use]
    pub fn member_name(&self, member: &Member) -> &str {
        self.string(member.name)
    }

    /// The string at an offset; empty if there is none.
    #[must_use]
    pub fn string(&self, offset: u32) -> &str {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        std::str::from_utf8(&rest[..end]).unwrap_or("")
    }

    /// The types whose name is `name`, flavours included (`name___flavour`), in their order.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = TypeId> + 'a {
        let name = essential(name);
        let wanted = hash(name);
        let first = self.names.partition_point(|(hash, _)| *hash < wanted);
        let same = self.names[first..].iter().take_while(move |(hash, _)| *hash == wanted).map(|(_, id)| *id);
        same.filter(move |id| essential(self.name(*id)) == name)
    }

    /// The function with exactly this name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<TypeId> {
        self.named(name).find(|id| matches!(self.kind(*id), Kind::Func(_)) && self.name(*id) == name)
    }

    /// The struct with exactly this name.
    #[must_use]
    pub fn structure(&self, name: &str) -> Option<TypeId> {
        self.named(name).find(|id| matches!(self.kind(*id), Kind::Struct { .. }) && self.name(*id) == name)
    }

    /// The value of a constant of any enumeration.
    #[must_use]
    pub fn constant(&self, constant: &str) -> Option<u64> {
        self.types.iter().find_map(|(_, kind)| match kind {
            Kind::Enum { values, .. } => {
                values.iter().find(|(name, _)| self.string(*name) == constant).map(|(_, value)| *value)
            }
            _ => None,
        })
    }

    /// The type without modifiers and typedefs.
    #[must_use]
    pub fn resolve(&self, id: TypeId) -> TypeId {
        let mut id = id;
        for _ in 0..DEPTH {
            match self.kind(id) {
                Kind::Modifier { ty, .. } => id = *ty,
                _ => break,
            }
        }
        id
    }

    /// The size of a type in bytes; `None` if it has none.
    #[must_use]
    pub fn size(&self, id: TypeId) -> Option<u32> {
        self.size_within(id, DEPTH)
    }

    fn size_within(&self, id: TypeId, depth: usize) -> Option<u32> {
        match self.kind(self.resolve(id)) {
            Kind::Int { size, .. } | Kind::Struct { size, .. } | Kind::Enum { size, .. } | Kind::Float(size) => {
                Some(*size)
            }
            Kind::Ptr(_) => Some(8),
            Kind::Array { elem, len } if depth > 0 => self.size_within(*elem, depth - 1)?.checked_mul(*len),
            Kind::Var(ty) if depth > 0 => self.size_within(*ty, depth - 1),
            _ => None,
        }
    }

    /// The member with this name, in the struct or in an anonymous member of it: its type, its offset in bits, and the
    /// width of a bit field.
    #[must_use]
    pub fn member(&self, id: TypeId, name: &str) -> Option<(TypeId, u32, u32)> {
        self.member_within(id, name, &mut { MEMBERS })
    }

    fn member_within(&self, id: TypeId, name: &str, left: &mut u32) -> Option<(TypeId, u32, u32)> {
        let Kind::Struct { members, .. } = self.kind(self.resolve(id)) else { return None };
        for member in members {
            let its = self.member_name(member);
            if its == name {
                return Some((member.ty, member.offset, member.bits));
            }
            if its.is_empty() && *left > 0 {
                *left -= 1;
                if let Some((ty, offset, bits)) = self.member_within(member.ty, name, left) {
                    return Some((ty, offset.checked_add(member.offset)?, bits));
                }
            }
        }
        None
    }

    /// The offset in bytes of a member of members, such as `scx.slice`, and its size.
    #[must_use]
    pub fn offset_of(&self, structure: &str, path: &str) -> Option<(usize, usize)> {
        let (mut ty, mut bits) = (self.structure(structure)?, 0u32);
        for name in path.split('.') {
            let (member, offset, _) = self.member(ty, name)?;
            (ty, bits) = (member, bits.checked_add(offset)?);
        }
        Some((bits as usize / 8, self.size(ty)? as usize))
    }
}

/// A name without its flavour: the part before the last `___`.
#[must_use]
pub(crate) fn essential(name: &str) -> &str {
    match name.rfind("___") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// FNV-1a.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

struct Words<'a> {
    data: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn u16(&mut self) -> Option<u16> {
        let bytes = self.data.get(self.at..self.at + 2)?;
        self.at += 2;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.data.get(self.at..self.at + 4)?;
        self.at += 4;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn array<const N: usize>(&mut self) -> Option<[u32; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.u32()?;
        }
        Some(words)
    }

    fn many<const N: usize, T>(&mut self, n: u32, each: impl Fn([u32; N]) -> T) -> Option<Vec<T>> {
        (0..n).map(|_| self.array().map(&each)).collect()
    }
}

fn read_type(words: &mut Words) -> Option<(u32, Kind)> {
    let [name, info, word] = words.array()?;
    let (n, flag) = (info & 0xffff, info >> 31 != 0);
    let kind = match info >> 24 & 0x1f {
        1 => Kind::Int { size: word, signed: words.u32()? >> 24 & 1 != 0 },
        2 => Kind::Ptr(word),
        3 => {
            let [elem, _, len] = words.array()?;
            Kind::Array { elem, len }
        }
        kind @ (4 | 5) => {
            let member = |[name, ty, offset]: [u32; 3]| match flag {
                true => Member { name, ty, offset: offset & 0xff_ffff, bits: offset >> 24 },
                false => Member { name, ty, offset, bits: 0 },
            };
            Kind::Struct { size: word, union: kind == 5, members: words.many(n, member)? }
        }
        6 => {
            let value = |[name, value]: [u32; 2]| match flag {
                true => (name, value as i32 as i64 as u64),
                false => (name, u64::from(value)),
            };
            Kind::Enum { size: word, signed: flag, values: words.many(n, value)? }
        }
        7 => Kind::Fwd,
        kind @ (8..=11 | 18) => Kind::Modifier { ty: word, typedef: kind == 8 },
        12 => Kind::Func(word),
        13 => Kind::Proto { result: word, params: words.many(n, |[_, ty]: [u32; 2]| ty)? },
        14 => {
            words.u32()?;
            Kind::Var(word)
        }
        15 => Kind::DataSec(words.many(n, |[ty, offset, size]: [u32; 3]| (ty, offset, size))?),
        16 => Kind::Float(word),
        17 => {
            words.u32()?;
            Kind::Tag
        }
        19 => {
            let value = |[name, low, high]: [u32; 3]| (name, u64::from(low) | u64::from(high) << 32);
            Kind::Enum { size: word, signed: flag, values: words.many(n, value)? }
        }
        _ => return None,
    };
    Some((name, kind))
}

//! A BPF object as libbpf sees it: functions, maps, data, external symbols, scheduler operations. All functions are in
//! one array of instructions; what an instruction refers to is kept beside it.

use std::collections::BTreeMap;

use crate::btf::{essential, TypeId};
use crate::core_relo::Spec;
use crate::elf::{Elf, Section};
use crate::ext::Ext;
use crate::insn::{Insn, CALL, LD_IMM64, PSEUDO_CALL, PSEUDO_KFUNC, SIZE};
use crate::{BpfError, Btf, Kind};

/// A function of the object.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The name of its section.
    pub section: String,
    /// Its first instruction.
    pub start: usize,
    /// One past its last instruction.
    pub end: usize,
}

/// What an instruction refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ref {
    /// A map.
    Map(usize),
    /// A byte of a data section.
    Data(usize, u32),
    /// The address of a function of the object, by its first instruction.
    Code(usize),
    /// An external symbol.
    Extern(usize),
}

/// A symbol that the kernel has to have (`.ksyms`, `.kconfig`).
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its name.
    pub name: String,
    /// It may be absent; its address then is 0.
    pub weak: bool,
    /// Its type: that of a function, or of a variable.
    pub ty: TypeId,
    /// It is an option of the kernel's configuration.
    pub kconfig: bool,
}

impl Extern {
    /// The name in the kernel: without a flavour.
    #[must_use]
    pub fn kernel_name(&self) -> &str {
        essential(&self.name)
    }
}

/// The definition of a map.
#[derive(Clone, Default, Debug)]
pub struct MapDef {
    /// Its name.
    pub name: String,
    /// `BPF_MAP_TYPE_*`.
    pub kind: u32,
    /// The size of a key in bytes.
    pub key_size: u32,
    /// The size of a value in bytes.
    pub value_size: u32,
    /// The most entries; 0 until user space sets it.
    pub max_entries: u32,
    /// `BPF_F_*`.
    pub flags: u32,
    /// The type of a value, if it is known.
    pub value: TypeId,
}

/// A section of variables (`.data`, `.rodata`, `.bss`).
#[derive(Clone, Debug)]
pub struct Data {
    /// Its name.
    pub name: String,
    /// Its initial contents.
    pub bytes: Vec<u8>,
    /// The program cannot write it.
    pub constant: bool,
}

/// A variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// The index of its section in [`Object::data`].
    pub data: usize,
    /// Its offset.
    pub offset: usize,
    /// Its type.
    pub ty: TypeId,
    /// Its size in bytes.
    pub size: usize,
}

/// A table of operations (`SEC(".struct_ops.link")`).
#[derive(Clone, Debug)]
pub struct StructOps {
    /// The name of the variable.
    pub name: String,
    /// The name of its type without a flavour: `sched_ext_ops`.
    pub ty: String,
    /// Its functions: the member, the first instruction.
    pub functions: BTreeMap<String, usize>,
    /// Its other members that are not zero.
    pub values: BTreeMap<String, Vec<u8>>,
}

/// A BPF object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its types.
    pub btf: Btf,
    /// Its instructions.
    pub insns: Vec<Insn>,
    /// By their first instruction.
    pub functions: Vec<Function>,
    /// What instructions refer to.
    pub refs: BTreeMap<usize, Ref>,
    /// CO-RE relocations.
    pub core: Vec<(usize, Spec)>,
    /// External symbols.
    pub externs: Vec<Extern>,
    /// Maps.
    pub maps: Vec<MapDef>,
    /// Data sections.
    pub data: Vec<Data>,
    /// Variables by name.
    pub variables: BTreeMap<String, Variable>,
    /// Tables of operations.
    pub struct_ops: Vec<StructOps>,
    lines: BTreeMap<usize, (String, u32)>,
}

impl Object {
    /// Reads an object file, or a program that embeds one.
    ///
    /// # Errors
    /// There is no object, it has no BTF, or it is damaged.
    pub fn read(file: &[u8]) -> Result<Object, BpfError> {
        let elf = Elf::read(file)?;
        let Some((_, btf)) = elf.section(".BTF") else {
            return Err(BpfError::new("the BPF object has no BTF").with_hint("compile it with -g"));
        };
        let btf = Btf::parse(&btf.data)?;
        let ext = match elf.section(".BTF.ext") {
            Some((_, section)) => Ext::parse(&section.data, &btf)?,
            None => Ext::default(),
        };
        let mut reader = Reader::new(&elf, &btf)?;
        reader.relocate()?;
        let struct_ops = reader.struct_ops()?;
        let (mut core, mut lines) = (Vec::new(), BTreeMap::new());
        for info in &ext.core {
            let [ty, access, kind] = info.words;
            let at = reader.insn(&info.section, info.offset)?;
            core.push((at, Spec::parse(&btf, ty, btf.string(access), kind)?));
        }
        for info in &ext.lines {
            let at = reader.insn(&info.section, info.offset)?;
            lines.insert(at, (btf.string(info.words[0]).to_owned(), info.words[2] >> 10));
        }
        let variables = reader.variables();
        let Reader { insns, functions, refs, externs, maps, data, .. } = reader;
        Ok(Object { insns, functions, refs, core, externs, maps, data, variables, struct_ops, lines, btf })
    }

    /// The operations of a scheduler.
    ///
    /// # Errors
    /// The object has none.
    pub fn scheduler(&self) -> Result<&StructOps, BpfError> {
        self.struct_ops.iter().find(|ops| ops.ty == "sched_ext_ops").ok_or_else(|| {
            let others: Vec<&str> = self.struct_ops.iter().map(|ops| ops.ty.as_str()).collect();
            BpfError::new("the BPF object is no scheduler: it has no `struct sched_ext_ops`").with_hint(
                match others.is_empty() {
                    true => "it has no operations at all; name the object of a sched_ext scheduler".to_owned(),
                    false => format!("it has {}; name the object of a sched_ext scheduler", others.join(", ")),
                },
            )
        })
    }

    /// The function that an instruction belongs to.
    #[must_use]
    pub fn function_at(&self, at: usize) -> Option<&Function> {
        let after = self.functions.partition_point(|function| function.start <= at);
        self.functions.get(after.checked_sub(1)?).filter(|function| at < function.end)
    }

    /// Where an instruction is: its function, its number there, its line in the source.
    #[must_use]
    pub fn place(&self, at: usize) -> String {
        let function = match self.function_at(at) {
            Some(function) => format!("{}, instruction {}", function.name, at - function.start),
            None => format!("instruction {at}"),
        };
        match self.line(at) {
            Some((file, line)) => format!("{function} ({file}:{line})"),
            None => function,
        }
    }

    /// File and line of an instruction.
    #[must_use]
    pub fn line(&self, at: usize) -> Option<(&str, u32)> {
        let start = self.function_at(at)?.start;
        let (_, (file, line)) = self.lines.range(start..=at).next_back()?;
        Some((file.rsplit('/').next().unwrap_or(file), *line))
    }
}

struct Reader<'a> {
    elf: &'a Elf,
    btf: &'a Btf,
    insns: Vec<Insn>,
    functions: Vec<Function>,
    refs: BTreeMap<usize, Ref>,
    externs: Vec<Extern>,
    maps: Vec<MapDef>,
    data: Vec<Data>,
    /// Of sections with instructions: the first one.
    code_of: BTreeMap<usize, usize>,
    /// Of sections with data: the index in `data`.
    data_of: BTreeMap<usize, usize>,
    /// Of offsets in `.maps`: the map.
    map_at: BTreeMap<u64, usize>,
}

fn damaged(what: &str) -> BpfError {
    BpfError::new(format!("the BPF object is damaged: {what}"))
}

impl<'a> Reader<'a> {
    fn new(elf: &'a Elf, btf: &'a Btf) -> Result<Reader<'a>, BpfError> {
        let mut reader = Reader {
            elf,
            btf,
            insns: Vec::new(),
            functions: Vec::new(),
            refs: BTreeMap::new(),
            externs: Vec::new(),
            maps: Vec::new(),
            data: Vec::new(),
            code_of: BTreeMap::new(),
            data_of: BTreeMap::new(),
            map_at: BTreeMap::new(),
        };
        for (index, section) in elf.sections.iter().enumerate() {
            let variables = [".data", ".rodata", ".bss", ".addr_space.1"];
            if section.executable {
                reader.code(index, section);
            } else if variables.iter().any(|name| section.name.starts_with(name)) {
                reader.data_of.insert(index, reader.data.len());
                let constant = section.name.starts_with(".rodata");
                reader.data.push(Data { name: section.name.clone(), bytes: section.data.clone(), constant });
            }
        }
        reader.functions.sort_by_key(|function| function.start);
        reader.read_maps()?;
        Ok(reader)
    }

    fn code(&mut self, index: usize, section: &Section) {
        let base = self.insns.len();
        self.code_of.insert(index, base);
        let insns = section.data.chunks_exact(SIZE).filter_map(|bytes| bytes.try_into().ok().map(Insn::decode));
        self.insns.extend(insns);
        for symbol in self.elf.symbols.iter().filter(|symbol| symbol.section == Some(index) && symbol.function) {
            let start = base.saturating_add(symbol.value as usize / SIZE).min(self.insns.len());
            let end = start.saturating_add(symbol.size as usize / SIZE).min(self.insns.len());
            let section = section.name.clone();
            self.functions.push(Function { name: symbol.name.clone(), section, start, end });
        }
    }

    /// The index of an instruction, by its section and offset in bytes.
    fn insn(&self, section: &str, offset: u32) -> Result<usize, BpfError> {
        let (index, _) = self.elf.section(section).ok_or_else(|| damaged(&format!("no section {section}")))?;
        let base = self.code_of.get(&index).ok_or_else(|| damaged(&format!("no instructions in {section}")))?;
        let at = base + offset as usize / SIZE;
        if at < self.insns.len() {
            Ok(at)
        } else {
            Err(damaged(&format!("no instruction at {offset} of {section}")))
        }
    }

    fn relocate(&mut self) -> Result<(), BpfError> {
        let elf = self.elf;
        for (index, base) in self.code_of.clone() {
            let section = &elf.sections[index];
            for relocation in &section.relocations {
                let at = base.saturating_add(relocation.offset as usize / SIZE);
                if relocation.offset as usize >= section.data.len() {
                    return Err(damaged(&format!("a relocation after the end of {}", section.name)));
                }
                self.relocate_insn(at, relocation.symbol)?;
            }
        }
        Ok(())
    }

    fn relocate_insn(&mut self, at: usize, symbol: usize) -> Result<(), BpfError> {
        let symbol_index = symbol;
        let symbol = self.elf.symbol(symbol)?;
        let insn = self.insns[at];
        let is_load = insn.code == LD_IMM64;
        if !is_load && insn.code != CALL {
            return Err(damaged("a relocation of an instruction that is neither a call nor a load of an address"));
        }
        let Some(section) = symbol.section else {
            let number = self.external(symbol_index)?;
            if !is_load {
                self.insns[at].src = PSEUDO_KFUNC;
            }
            self.refs.insert(at, Ref::Extern(number));
            return Ok(());
        };
        if let Some(base) = self.code_of.get(&section) {
            let plus = if is_load { i64::from(insn.imm) / SIZE as i64 } else { i64::from(insn.imm) + 1 };
            let target = (*base as i64 + (symbol.value / SIZE as u64) as i64).saturating_add(plus);
            let target = usize::try_from(target).ok().filter(|target| *target < self.insns.len());
            let target = target.ok_or_else(|| damaged("a call out of the object"))?;
            match is_load {
                true => self.refs.insert(at, Ref::Code(target)),
                false => {
                    self.insns[at].src = PSEUDO_CALL;
                    self.insns[at].imm = (target as i64 - at as i64 - 1) as i32;
                    None
                }
            };
        } else if let Some(data) = self.data_of.get(&section) {
            let offset = symbol.value.wrapping_add(insn.imm as u64) as u32;
            self.refs.insert(at, Ref::Data(*data, offset));
        } else if let Some(map) = self.map_at.get(&symbol.value).filter(|_| is_load) {
            self.refs.insert(at, Ref::Map(*map));
        } else {
            return Err(damaged(&format!("a relocation to `{}`", symbol.name)));
        }
        Ok(())
    }

    fn external(&mut self, symbol: usize) -> Result<usize, BpfError> {
        let symbol = self.elf.symbol(symbol)?;
        if let Some(at) = self.externs.iter().position(|known| known.name == symbol.name) {
            return Ok(at);
        }
        let exact = |id: &TypeId| {
            self.btf.name(*id) == symbol.name && matches!(self.btf.kind(*id), Kind::Func(_) | Kind::Var(_))
        };
        let ty = self.btf.named(&symbol.name).find(exact);
        let ty = ty.ok_or_else(|| damaged(&format!("no type of the external symbol `{}`", symbol.name)))?;
        let kconfig = self.section_variables(".kconfig").iter().any(|(var, ..)| *var == ty);
        self.externs.push(Extern { name: symbol.name.clone(), weak: symbol.weak, ty, kconfig });
        Ok(self.externs.len() - 1)
    }

    fn section_variables(&self, name: &str) -> &[(TypeId, u32, u32)] {
        let section = self.btf.named(name).find_map(|id| match self.btf.kind(id) {
            Kind::DataSec(variables) => Some(variables.as_slice()),
            _ => None,
        });
        section.unwrap_or_default()
    }

    /// The object symbol of a variable: clang leaves offsets in BTF at 0, which libbpf fills in from symbols.
    fn offset_of(&self, name: &str, section: usize) -> Option<u64> {
        let is_it = |symbol: &&crate::elf::Symbol| symbol.section == Some(section) && symbol.name == name;
        self.elf.symbols.iter().find(is_it).map(|symbol| symbol.value)
    }

    fn variables(&self) -> BTreeMap<String, Variable> {
        let mut out = BTreeMap::new();
        for (section, data) in &self.data_of {
            for (var, _, size) in self.section_variables(&self.data[*data].name) {
                let (name, Kind::Var(ty)) = (self.btf.name(*var), self.btf.kind(*var)) else { continue };
                let Some(offset) = self.offset_of(name, *section) else { continue };
                let (offset, size) = (offset as usize, *size as usize);
                if offset.saturating_add(size) <= self.data[*data].bytes.len() {
                    out.insert(name.to_owned(), Variable { data: *data, offset, ty: *ty, size });
                }
            }
        }
        out
    }

    fn read_maps(&mut self) -> Result<(), BpfError> {
        let Some((section, _)) = self.elf.section(".maps") else { return Ok(()) };
        for (var, ..) in self.section_variables(".maps").to_vec() {
            let Kind::Var(ty) = self.btf.kind(var) else { continue };
            let name = self.btf.name(var);
            let offset = self.offset_of(name, section).ok_or_else(|| damaged(&format!("no symbol of map {name}")))?;
            let map = self.map(name, *ty).ok_or_else(|| damaged(&format!("the definition of map {name}")))?;
            self.map_at.insert(offset, self.maps.len());
            self.maps.push(map);
        }
        Ok(())
    }

    /// A BTF-defined map: numbers are the lengths of arrays to which the members point.
    fn map(&self, name: &str, ty: TypeId) -> Option<MapDef> {
        let Kind::Struct { members, .. } = self.btf.kind(self.btf.resolve(ty)) else { return None };
        let mut map = MapDef { name: name.to_owned(), ..MapDef::default() };
        for member in members {
            let Kind::Ptr(pointee) = self.btf.kind(self.btf.resolve(member.ty)) else { continue };
            let number = match self.btf.kind(self.btf.resolve(*pointee)) {
                Kind::Array { len, .. } => *len,
                _ => 0,
            };
            match self.btf.member_name(member) {
                "type" => map.kind = number,
                "key_size" => map.key_size = number,
                "value_size" => map.value_size = number,
                "max_entries" => map.max_entries = number,
                "map_flags" => map.flags = number,
                "key" => map.key_size = self.btf.size(*pointee)?,
                "value" => (map.value_size, map.value) = (self.btf.size(*pointee)?, *pointee),
                _ => {}
            }
        }
        Some(map)
    }

    fn struct_ops(&self) -> Result<Vec<StructOps>, BpfError> {
        let mut out = Vec::new();
        for (index, section) in self.elf.sections.iter().enumerate() {
            if !section.name.starts_with(".struct_ops") {
                continue;
            }
            for (var, ..) in self.section_variables(&section.name) {
                let (name, Kind::Var(ty)) = (self.btf.name(*var), self.btf.kind(*var)) else { continue };
                let offset = self.offset_of(name, index).ok_or_else(|| damaged(&format!("no symbol of {name}")))?;
                out.push(self.table(name, *ty, offset, section)?);
            }
        }
        Ok(out)
    }

    fn table(&self, name: &str, ty: TypeId, offset: u64, section: &Section) -> Result<StructOps, BpfError> {
        let ty = self.btf.resolve(ty);
        let Kind::Struct { members, .. } = self.btf.kind(ty) else {
            return Err(damaged("operations without a struct"));
        };
        let (mut functions, mut values) = (BTreeMap::new(), BTreeMap::new());
        for member in members {
            let start = offset.saturating_add(u64::from(member.offset / 8));
            let called = self.btf.member_name(member).to_owned();
            if let Some(relocation) = section.relocations.iter().find(|relocation| relocation.offset == start) {
                let symbol = self.elf.symbol(relocation.symbol)?;
                let base = symbol.section.and_then(|section| self.code_of.get(&section));
                let at = base.map(|base| base.saturating_add(symbol.value as usize / SIZE));
                let at = at.filter(|at| *at < self.insns.len());
                functions
                    .insert(called, at.ok_or_else(|| damaged(&format!("no function for {name}.{}", symbol.name)))?);
                continue;
            }
            let size = self.btf.size(member.ty).unwrap_or(0) as usize;
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            let bytes = section.data.get(start..start.saturating_add(size)).unwrap_or_default();
            if bytes.iter().any(|byte| *byte != 0) {
                values.insert(called, bytes.to_vec());
            }
        }
        Ok(StructOps { name: name.to_owned(), ty: essential(self.btf.name(ty)).to_owned(), functions, values })
    }
}

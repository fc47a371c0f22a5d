//! The sections, symbols and relocations of a BPF object file, also of one that is embedded in another file.

use object::elf::{EM_BPF, SHF_EXECINSTR, SHT_NOBITS};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader, Sym};
use object::{LittleEndian, Object, ObjectSection, RelocationFlags, RelocationTarget};

use crate::BpfError;

const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// It contains instructions.
    pub executable: bool,
    /// Its contents; zeros for a section without any (`.bss`).
    pub data: Vec<u8>,
    /// Its relocations, in order.
    pub relocations: Vec<Relocation>,
}

/// A symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name; empty for sections.
    pub name: String,
    /// The section that defines it; `None`: it is external.
    pub section: Option<usize>,
    /// Its offset in the section.
    pub value: u64,
    /// Its size in bytes.
    pub size: u64,
    /// It may stay unresolved (STB_WEAK).
    pub weak: bool,
    /// It is a function.
    pub function: bool,
}

/// A relocation: the place at `offset` refers to a symbol.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// The offset in the section.
    pub offset: u64,
    /// The index of the symbol.
    pub symbol: usize,
    /// `R_BPF_*`.
    pub kind: u32,
}

/// A BPF object file.
#[derive(Clone, Debug)]
pub struct Elf {
    /// By index.
    pub sections: Vec<Section>,
    /// By index.
    pub symbols: Vec<Symbol>,
}

/// The most memory that the contents of all sections may take, in bytes. Arrays of schedulers are maps, not sections.
const LARGEST: u64 = 64 << 20;

impl Elf {
    /// Reads an object, or the first one with scheduler operations that is embedded in a program.
    ///
    /// # Errors
    /// The file neither is nor has a BPF object, or is damaged.
    pub fn read(file: &[u8]) -> Result<Elf, BpfError> {
        let starts: Vec<usize> = embedded(file).collect();
        let mut first = None;
        for start in starts {
            match Elf::at(&file[start..]) {
                Ok(elf) if elf.has_struct_ops() => return Ok(elf),
                other => first = first.or(Some(other)),
            }
        }
        first.unwrap_or_else(|| {
            Err(BpfError::new("this is not a BPF object, and none is embedded in it")
                .with_hint("build one with `clang -g -O2 -target bpf -mcpu=v3 -c`, or name a program that embeds one"))
        })
    }

    fn has_struct_ops(&self) -> bool {
        self.sections.iter().any(|section| section.name.starts_with(".struct_ops"))
    }

    fn at(data: &[u8]) -> Result<Elf, BpfError> {
        let damaged = |what: &str| BpfError::new(format!("the BPF object is damaged: {what}"));
        let elf = ElfFile64::<LittleEndian>::parse(data).map_err(|e| damaged(&e.to_string()))?;
        if elf.elf_header().e_machine(LittleEndian) != EM_BPF {
            return Err(damaged("its machine is not BPF"));
        }
        let (mut sections, mut total) = (Vec::new(), 0u64);
        for section in elf.sections() {
            let at = section.index().0;
            while sections.len() < at {
                let data = Vec::new();
                sections.push(Section { name: String::new(), executable: false, data, relocations: Vec::new() });
            }
            let header = section.elf_section_header();
            let name = section.name().map_err(|e| damaged(&e.to_string()))?.to_owned();
            total = section.size().saturating_add(total);
            if total > LARGEST {
                return Err(damaged(&format!(
                    "section {name} ends after {total} bytes, at most {LARGEST} are allowed"
                )));
            }
            let contents = match header.sh_type(LittleEndian) {
                SHT_NOBITS => vec![0; section.size() as usize],
                _ => section.data().map_err(|e| damaged(&format!("section {name}: {e}")))?.to_vec(),
            };
            let relocations = section.relocations().filter_map(|(offset, relocation)| {
                let RelocationTarget::Symbol(symbol) = relocation.target() else { return None };
                let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
                Some(Relocation { offset, symbol: symbol.0, kind: r_type.0 })
            });
            let relocations = relocations.collect();
            let executable = header.sh_flags(LittleEndian).0 & SHF_EXECINSTR.0 != 0;
            sections.push(Section { name, executable, data: contents, relocations });
        }
        let table = elf.elf_symbol_table();
        let symbols = table.iter().map(|symbol| {
            let name = symbol.name(LittleEndian, table.strings()).unwrap_or_default();
            let section = usize::from(symbol.st_shndx(LittleEndian).0);
            Symbol {
                name: String::from_utf8_lossy(name).into_owned(),
                section: (section != 0 && section < sections.len()).then_some(section),
                value: symbol.st_value(LittleEndian),
                size: symbol.st_size(LittleEndian),
                weak: symbol.st_bind() == object::elf::STB_WEAK,
                function: symbol.st_type() == object::elf::STT_FUNC,
            }
        });
        let symbols = symbols.collect();
        Ok(Elf { sections, symbols })
    }

    /// The section with this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<(usize, &Section)> {
        self.sections.iter().enumerate().find(|(_, section)| section.name == name)
    }

    /// A symbol.
    ///
    /// # Errors
    /// There is no symbol with this index.
    pub fn symbol(&self, index: usize) -> Result<&Symbol, BpfError> {
        self.symbols.get(index).ok_or_else(|| BpfError::new("the BPF object is damaged: a relocation without a symbol"))
    }
}

/// Where BPF objects begin in a file.
fn embedded(file: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let machine = |start: usize| file.get(start + 18..start + 20) == Some(&EM_BPF.0.to_le_bytes()[..]);
    let magic = file.windows(MAGIC.len()).enumerate().filter(|(_, bytes)| *bytes == MAGIC);
    magic.map(|(start, _)| start).filter(move |start| machine(*start)).take(64)
}

//! The machine that executes the functions of an object: registers, stack, calls. Every access to memory is checked,
//! every call ends after a number of instructions.
//!
//! Not modelled: programs that the verifier would refuse are executed until they do something that the machine can
//! detect. A load through a pointer that came from an object of the kernel yields 0 where there is nothing, as
//! BPF_PROBE_MEM does.

use crate::alu::{alu, taken};
use crate::calls::Kernel;
use crate::helper::{self, Context};
use crate::insn::{Insn, CALL, EXIT, LD_IMM64, PSEUDO_CALL, PSEUDO_KFUNC};
use crate::link::Linked;
use crate::map::Map;
use crate::memory::{Memory, RegionId, Write};
use crate::program::{Object, Ref, Variable};
use crate::{BpfError, Btf};

/// The most instructions of one call of an operation: the verifier's own limit of what it follows.
pub const MOST_INSTRUCTIONS: u64 = 1_000_000;
/// The most functions that call each other (`MAX_CALL_FRAMES`), and the stack of each in bytes (`MAX_BPF_STACK`).
const FRAMES: usize = 8;
const STACK: usize = 512;
/// The most arguments of an operation.
const ARGUMENTS: usize = 12;

/// Why a scheduler was stopped within an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// What happened.
    pub message: String,
    /// Function, instruction and line.
    pub place: String,
}

/// An object, loaded.
#[derive(Clone, Debug)]
pub struct Machine {
    object: Object,
    linked: Linked,
    /// Its memory, in which the kernel keeps its objects, too.
    pub memory: Memory,
    maps: Vec<Map>,
    map_regions: Vec<RegionId>,
    data: Vec<RegionId>,
    stacks: [RegionId; FRAMES],
    context: RegionId,
    executed: u64,
}

impl Machine {
    /// Loads an object for a kernel with these types, on a machine with so many CPUs.
    ///
    /// # Errors
    /// The object cannot be linked, or has a kind of map that is not modelled.
    pub fn new(object: Object, kernel: &Btf, cpus: usize) -> Result<Machine, BpfError> {
        let linked = Linked::new(&object, kernel)?;
        let mut memory = Memory::default();
        let mut data = Vec::new();
        for section in &object.data {
            let write = if section.constant { Write::None } else { Write::All };
            let region = memory.add(&section.name, section.bytes.len(), write, false)?;
            memory.set(region, 0, &section.bytes);
            data.push(region);
        }
        set_constants(&object, kernel, &data, &mut memory);
        let (mut maps, mut map_regions) = (Vec::new(), Vec::new());
        for def in &object.maps {
            maps.push(Map::new(def, cpus, &mut memory)?);
            map_regions.push(memory.add(&format!("map {} itself", def.name), 0, Write::None, false)?);
        }
        let context = memory.add("the arguments", ARGUMENTS * 8, Write::None, false)?;
        let mut stacks = [context; FRAMES];
        for stack in &mut stacks {
            *stack = memory.add("the stack", STACK, Write::All, false)?;
        }
        Ok(Machine { object, linked, memory, maps, map_regions, data, stacks, context, executed: 0 })
    }

    /// The object.
    #[must_use]
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The instructions executed so far.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// Sets a variable of up to 8 bytes, as a loader sets read-only data before the start.
    ///
    /// # Errors
    /// There is no such variable, it is larger than a number, or the value does not fit it.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<(), BpfError> {
        let Some(Variable { data, offset, size, .. }) = self.object.variables.get(name).copied() else {
            let known: Vec<&str> = self.object.variables.keys().map(String::as_str).collect();
            return Err(BpfError::new(format!("the object has no variable `{name}`"))
                .with_hint(format!("it has {}", known.join(", "))));
        };
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Err(BpfError::new(format!("the variable `{name}` has {size} bytes and is no number")));
        }
        let bits = size as u32 * 8;
        if bits < 64 && !(-(1i64 << (bits - 1))..1i64 << bits).contains(&value) {
            return Err(BpfError::new(format!("{value} does not fit the variable `{name}` of {size} bytes")));
        }
        self.memory.set(self.data[data], offset, &value.to_le_bytes()[..size]);
        Ok(())
    }

    /// The value of a variable of up to 8 bytes, zero-extended.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<u64> {
        let Variable { data, offset, size, .. } = self.object.variables.get(name).copied()?;
        matches!(size, 1 | 2 | 4 | 8).then_some(())?;
        self.memory.load(Memory::address(self.data[data], offset), size).ok()
    }

    /// Calls a function by its first instruction.
    ///
    /// # Errors
    /// The function did what ends a scheduler.
    pub fn call(&mut self, kernel: &mut impl Kernel, function: usize, args: &[u64]) -> Result<u64, Stop> {
        for (n, arg) in args.iter().take(ARGUMENTS).enumerate() {
            self.memory.set(self.context, n * 8, &arg.to_le_bytes());
        }
        let mut run =
            Run { at: function, registers: [0; 11], from_kernel: 0, frames: Vec::new(), left: MOST_INSTRUCTIONS };
        run.registers[1] = Memory::address(self.context, 0);
        run.registers[10] = Memory::address(self.stacks[0], STACK);
        let done = self.execute(kernel, &mut run);
        self.executed += MOST_INSTRUCTIONS - run.left;
        done.map_err(|message| Stop { message, place: self.object.place(run.at) })
    }

    fn execute(&mut self, kernel: &mut impl Kernel, run: &mut Run) -> Result<u64, String> {
        loop {
            run.left = run.left.checked_sub(1).ok_or_else(|| {
                format!("the operation has not returned after {MOST_INSTRUCTIONS} instructions (an endless loop)")
            })?;
            let insn = *self.linked.insns.get(run.at).ok_or("the program runs past its end")?;
            if insn.dst > 10 || insn.src > 10 {
                return Err("the instruction has no such register".into());
            }
            match insn.class() {
                4 | 7 => {
                    let at = run.at;
                    run.arithmetic(insn, || self.missing(at))?;
                }
                0 if insn.code == LD_IMM64 => {
                    let value = self.immediate(run.at)?;
                    run.set(insn.dst, value);
                    run.at += 2;
                    continue;
                }
                1 => self.load(run, insn)?,
                2 | 3 => self.store(run, insn)?,
                _ if insn.code == CALL => {
                    if self.call_insn(kernel, run, insn)? {
                        continue;
                    }
                }
                _ if insn.code == EXIT => {
                    let Some(frame) = run.frames.pop() else { return Ok(run.registers[0]) };
                    run.registers[6..=10].copy_from_slice(&frame.saved);
                    run.at = frame.back;
                    continue;
                }
                5 | 6 => {
                    let operand = run.operand(insn);
                    let go = insn.code & 0xf0 == 0
                        || taken(insn, run.registers[usize::from(insn.dst)], operand).ok_or("an unknown jump")?;
                    if go {
                        let offset = insn.jump().unwrap_or(0);
                        run.at =
                            usize::try_from(run.at as i64 + 1 + offset).map_err(|_| "a jump out of the program")?;
                        continue;
                    }
                }
                _ => return Err(format!("the instruction {:#04x} is not modelled", insn.code)),
            }
            run.at += 1;
        }
    }

    /// The error about an instruction that refers to something that the kernel lacks, if it does.
    fn missing(&self, at: usize) -> Option<String> {
        let absent = self.linked.absent.get(&at)?;
        Some(format!("the kernel lacks {} {}", absent.what, absent.name))
    }

    fn check_present(&self, at: usize) -> Result<(), String> {
        if self.linked.poisoned.is_empty() {
            return Ok(());
        }
        self.missing(at).map_or(Ok(()), Err)
    }

    fn immediate(&self, at: usize) -> Result<u64, String> {
        self.check_present(at)?;
        Ok(match self.object.refs.get(&at) {
            Some(Ref::Map(map)) => Memory::address(self.map_regions[*map], 0),
            Some(Ref::Data(data, offset)) => Memory::address(self.data[*data], *offset as usize),
            Some(Ref::Code(target)) => *target as u64,
            Some(Ref::Extern(number)) => match self.linked.externs[*number] {
                Some(address) => address,
                None => return Err(format!("the kernel option {} is not known", self.object.externs[*number].name)),
            },
            None => {
                let low = self.linked.insns[at].imm as u32;
                let high = self.linked.insns.get(at + 1).ok_or("the program runs past its end")?.imm;
                u64::from(low) | (high as u64) << 32
            }
        })
    }

    fn load(&mut self, run: &mut Run, insn: Insn) -> Result<(), String> {
        self.check_present(run.at)?;
        let size = size_of(insn);
        let base = run.registers[usize::from(insn.src)];
        let address = base.wrapping_add(insn.off as u64);
        let probes = run.from_kernel >> insn.src & 1 != 0;
        let value = match (self.memory.load(address, size), probes) {
            (Ok(value), _) => value,
            (Err(_), true) => 0,
            (Err(fault), false) => return Err(fault),
        };
        let value = match (insn.code & 0xe0, size) {
            (0x60, _) => value,
            (0x80, 1) => value as i8 as u64,
            (0x80, 2) => value as i16 as u64,
            (0x80, 4) => value as i32 as u64,
            _ => return Err(format!("the load {:#04x} is not modelled", insn.code)),
        };
        run.set(insn.dst, value);
        if size == 8 && (probes || self.memory.is_kernel(address)) {
            run.from_kernel |= 1 << insn.dst;
        }
        Ok(())
    }

    fn store(&mut self, run: &mut Run, insn: Insn) -> Result<(), String> {
        self.check_present(run.at)?;
        let size = size_of(insn);
        let address = run.registers[usize::from(insn.dst)].wrapping_add(insn.off as u64);
        let source = run.registers[usize::from(insn.src)];
        match (insn.class(), insn.code & 0xe0) {
            (2, 0x60) => self.memory.store(address, size, insn.imm as i64 as u64),
            (3, 0x60) => self.memory.store(address, size, source),
            (3, 0xc0) if size >= 4 => self.atomic(run, insn, address, size, source),
            _ => Err(format!("the store {:#04x} is not modelled", insn.code)),
        }
    }

    fn atomic(&mut self, run: &mut Run, insn: Insn, address: u64, size: usize, source: u64) -> Result<(), String> {
        let old = self.memory.load(address, size)?;
        let new = match insn.imm & !1 {
            0x00 => old.wrapping_add(source),
            0x40 => old | source,
            0x50 => old & source,
            0xa0 => old ^ source,
            0xe0 => source,
            0xf0 => {
                let expected = if size == 4 { run.registers[0] & 0xffff_ffff } else { run.registers[0] };
                let new = if old == expected { source } else { old };
                self.memory.store(address, size, new)?;
                run.set(0, old);
                return Ok(());
            }
            other => return Err(format!("the atomic operation {other:#x} is not modelled")),
        };
        self.memory.store(address, size, new)?;
        if insn.imm & 1 != 0 {
            run.set(insn.src, old);
        }
        Ok(())
    }

    /// Whether the next instruction is another than the following one.
    fn call_insn(&mut self, kernel: &mut impl Kernel, run: &mut Run, insn: Insn) -> Result<bool, String> {
        if insn.src == PSEUDO_CALL {
            let target = run.at as i64 + 1 + i64::from(insn.imm);
            let target = usize::try_from(target).map_err(|_| "a call out of the program")?;
            self.enter(run, target, run.at + 1)?;
            return Ok(true);
        }
        self.check_present(run.at)?;
        let args = [1, 2, 3, 4, 5].map(|n| run.registers[n]);
        let value = if insn.src == PSEUDO_KFUNC {
            let Some(Ref::Extern(number)) = self.object.refs.get(&run.at) else {
                return Err("a call of an unknown function of the kernel".into());
            };
            kernel.kfunc(&mut self.memory, self.object.externs[*number].kernel_name(), args)?
        } else {
            let (maps, regions) = (&mut self.maps, &self.map_regions);
            helper::call(insn.imm, args, &mut Context { memory: &mut self.memory, maps, regions, kernel })?
        };
        run.set(0, value);
        if insn.src == PSEUDO_KFUNC {
            run.from_kernel |= 1;
        }
        Ok(false)
    }

    fn enter(&self, run: &mut Run, target: usize, back: usize) -> Result<(), String> {
        if run.frames.len() + 1 >= FRAMES {
            return Err(format!("more than {FRAMES} functions call each other"));
        }
        let mut saved = [0; 5];
        saved.copy_from_slice(&run.registers[6..=10]);
        run.frames.push(Frame { saved, back });
        run.registers[10] = Memory::address(self.stacks[run.frames.len()], STACK);
        run.at = target;
        Ok(())
    }
}

/// Sets the variables `__SCX_*` to the constants `SCX_*` of the kernel, as the loaders of scx do.
fn set_constants(object: &Object, kernel: &Btf, data: &[RegionId], memory: &mut Memory) {
    for (name, variable) in &object.variables {
        let constant = name.strip_prefix("__").filter(|constant| constant.starts_with("SCX_"));
        if let Some(value) = constant.and_then(|constant| kernel.constant(constant)) {
            memory.set(data[variable.data], variable.offset, &value.to_le_bytes()[..variable.size.min(8)]);
        }
    }
}

/// The state of a call.
struct Run {
    at: usize,
    registers: [u64; 11],
    /// A bit per register: its value was loaded from an object of the kernel or is a kernel function's result.
    from_kernel: u16,
    frames: Vec<Frame>,
    left: u64,
}

struct Frame {
    saved: [u64; 5],
    back: usize,
}

impl Run {
    #[inline]
    fn set(&mut self, register: u8, value: u64) {
        self.registers[usize::from(register)] = value;
        self.from_kernel &= !(1 << register);
    }

    #[inline]
    fn operand(&self, insn: Insn) -> u64 {
        if insn.code & 8 == 0 {
            insn.imm as i64 as u64
        } else {
            self.registers[usize::from(insn.src)]
        }
    }

    fn arithmetic(&mut self, insn: Insn, missing: impl Fn() -> Option<String>) -> Result<(), String> {
        let immediate = insn.code & 8 == 0;
        if immediate && insn.code & 0xf0 == 0xb0 {
            if let Some(message) = missing() {
                return Err(message);
            }
        }
        let (dst, operand) = (usize::from(insn.dst), self.operand(insn));
        let value = alu(insn, self.registers[dst], operand).ok_or("an unknown operation")?;
        // A pointer stays one when it is copied or when a number is added to it.
        let keeps = match (insn.class(), insn.code & 0xf0, immediate) {
            (7, 0xb0, false) => self.from_kernel >> insn.src & 1 != 0,
            (7, 0x00 | 0x10, _) => self.from_kernel >> insn.dst & 1 != 0,
            _ => false,
        };
        self.set(insn.dst, value);
        self.from_kernel |= u16::from(keeps) << insn.dst;
        Ok(())
    }
}

fn size_of(insn: Insn) -> usize {
    match insn.code & 0x18 {
        0x10 => 1,
        0x08 => 2,
        0x00 => 4,
        _ => 8,
    }
}

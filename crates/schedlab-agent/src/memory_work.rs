//! Steps that work on memory: page faults, munmap, reads of the page cache, carried out with real pages.
//!
//! A fault that maps a present page is the first write to a page of a shared file in memory; such faults are not
//! batched (`do_shared_fault`). A fault that clears is the first write to a private page. `munmap` frees the private
//! pages that the task's faults have made present, the last ones first; what is missing is made present before the
//! call. A read is one `preadv` of a file in the directory for temporary files, which is in the page cache. Left out:
//! major faults, pages of 2 MiB, and fork's copy of page tables of a declared size.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{memfd_create, MemfdFlags};
use schedlab_workload::{MemoryWork, Op, Program};

use crate::error::{errno, os, temporary, AgentError, Result};
use crate::memory::available_kib;
use crate::sys::{self, Pages};

const PAGE_KIB: u32 = 4;
/// Pages of the file that faults map.
const FILE_PAGES: usize = 256;
/// Private pages that a task keeps at most, unless a `munmap` of its program frees more at once.
const PRIVATE_PAGES: usize = 1024;
/// Pages to which a pipe can refer (PIPE_DEF_BUFFERS).
const PIPE_PAGES: usize = 16;
/// The buffer that a read fills repeatedly.
const BUFFER: usize = 64 << 10;

/// Files that the steps of all tasks use, created before the first task.
#[derive(Debug)]
pub struct Files {
    mapped: OwnedFd,
    cached: Option<OwnedFd>,
}

/// The memory of one task.
#[derive(Debug)]
pub struct Memory {
    mapped: Pages,
    next: usize,
    /// Mappings with private pages, each filled from its start.
    private: Vec<(Pages, usize)>,
    most: usize,
    buffer: Vec<u8>,
}

/// Refuses work that the agent does not carry out, or for which this machine has too little memory.
pub fn check<'a>(programs: impl Iterator<Item = &'a Program>) -> Result<()> {
    let mut largest = 0;
    for program in programs {
        for op in &program.ops {
            let Op::Memory { work, kib } = op else { continue };
            let refused = match work {
                MemoryWork::CopyPageTables => Some("fork with memory exists only in the simulator"),
                MemoryWork::Map | MemoryWork::Zero if *kib != PAGE_KIB => {
                    Some("faults of 2 MiB pages exist only in the simulator")
                }
                _ => None,
            };
            if let Some(what) = refused {
                let what = format!("task {}: {what}", program.name);
                return Err(AgentError::cannot(what, "run the scenario on the simulator"));
            }
            largest = largest.max(u64::from(*kib));
        }
    }
    if largest > available_kib() / 4 {
        let what = format!("a step works on {largest} KiB, more than a quarter of the available memory");
        return Err(AgentError::cannot(what, "memory = 4096 in [arm.vm], or smaller steps"));
    }
    Ok(())
}

impl Files {
    /// Creates what these programs need; `None` if they have no such step.
    pub fn of<'a>(programs: impl Iterator<Item = &'a Program>) -> Result<Option<Files>> {
        let (mut any, mut read_kib) = (false, 0);
        for (work, kib) in programs.flat_map(works) {
            any = true;
            read_kib = if work == MemoryWork::ReadFile { read_kib.max(kib) } else { read_kib };
        }
        if !any {
            return Ok(None);
        }
        let cached = if read_kib > 0 { Some(cached(u64::from(read_kib) << 10)?) } else { None };
        Ok(Some(Files { mapped: filled(FILE_PAGES)?, cached }))
    }
}

fn works(program: &Program) -> impl Iterator<Item = (MemoryWork, u32)> + '_ {
    program.ops.iter().filter_map(|op| match op {
        Op::Memory { work, kib } => Some((*work, *kib)),
        _ => None,
    })
}

/// A file in memory whose pages are present.
fn filled(pages: usize) -> Result<OwnedFd> {
    let fd = memfd_create("schedlab-pages", MemfdFlags::CLOEXEC).map_err(errno("memfd_create"))?;
    let mut file = File::from(fd);
    file.write_all(&vec![1; pages << 12]).map_err(os("a file in memory"))?;
    Ok(file.into())
}

/// A file in the page cache, without a name.
pub fn cached(bytes: u64) -> Result<OwnedFd> {
    let mut file = tempfile::tempfile().map_err(temporary)?;
    let block = vec![1; BUFFER];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(BUFFER as u64);
        file.write_all(&block[..part as usize]).map_err(temporary)?;
        left -= part;
    }
    Ok(file.into())
}

impl Memory {
    /// The memory of a task with this program; `None` if it has no such step.
    pub fn of(files: &Files, program: &Program) -> Result<Option<Memory>> {
        if works(program).next().is_none() {
            return Ok(None);
        }
        let freed = works(program).filter(|(work, _)| *work == MemoryWork::Unmap).map(|(_, kib)| pages_of(kib)).max();
        Memory::new(files, freed.unwrap_or(0).max(PRIVATE_PAGES)).map(Some)
    }

    fn new(files: &Files, most: usize) -> Result<Memory> {
        let mapped = Pages::of_file(&files.mapped, FILE_PAGES).map_err(os("mmap"))?;
        Ok(Memory { mapped, next: 0, private: Vec::new(), most, buffer: vec![1; BUFFER] })
    }

    /// Memory for calibration: at most `most` private pages.
    pub fn to_measure(most: usize) -> Result<Memory> {
        Memory::new(&Files { mapped: filled(FILE_PAGES)?, cached: None }, most)
    }

    /// Carries out one step.
    pub fn step(&mut self, files: &Files, work: MemoryWork, kib: u32) -> std::io::Result<()> {
        match work {
            MemoryWork::Map => self.map(),
            MemoryWork::Zero => self.zero(),
            MemoryWork::Mmap => {
                self.private.push((Pages::private(pages_of(kib))?, 0));
                Ok(())
            }
            MemoryWork::Unmap => {
                self.fill(pages_of(kib))?;
                self.free(pages_of(kib));
                Ok(())
            }
            MemoryWork::ReadFile => match &files.cached {
                Some(file) => self.read(file, u64::from(kib) << 10),
                None => Ok(()),
            },
            MemoryWork::CopyPageTables => Ok(()),
        }
    }

    /// One fault that maps a page of a file.
    pub fn map(&mut self) -> std::io::Result<()> {
        if self.next == FILE_PAGES {
            self.mapped.forget()?;
            self.next = 0;
        }
        self.mapped.touch(self.next);
        self.next += 1;
        Ok(())
    }

    /// One fault that allocates and clears a page.
    pub fn zero(&mut self) -> std::io::Result<()> {
        if self.present() >= self.most {
            self.private.clear();
        }
        if self.private.last().is_none_or(|(pages, present)| *present == pages.len()) {
            self.private.push((Pages::private(self.most)?, 0));
        }
        if let Some((pages, present)) = self.private.last_mut() {
            pages.touch(*present);
            *present += 1;
        }
        Ok(())
    }

    /// Makes no page present.
    pub fn empty(&mut self) -> std::io::Result<()> {
        self.private.clear();
        self.next = 0;
        self.mapped.forget()
    }

    /// Makes private pages present until there are that many.
    pub fn fill(&mut self, pages: usize) -> std::io::Result<()> {
        while self.present() < pages {
            self.zero()?;
        }
        Ok(())
    }

    /// Unmaps the last private pages, with one call where they lie in one mapping.
    pub fn free(&mut self, mut pages: usize) {
        while let Some((mapping, present)) = self.private.last_mut() {
            if *present > pages {
                *present -= pages;
                mapping.truncate(*present);
                return;
            }
            pages -= *present;
            self.private.pop();
        }
    }

    /// Pipes that refer to all private pages, so that unmapping these does not free them.
    pub fn held(&self) -> std::io::Result<Vec<(OwnedFd, OwnedFd)>> {
        let mut pipes = Vec::new();
        for (pages, present) in &self.private {
            let mut from = 0;
            while from < *present {
                let pipe = rustix::pipe::pipe()?;
                from += pages.splice(from, PIPE_PAGES.min(*present - from), &pipe.1)?;
                pipes.push(pipe);
            }
        }
        Ok(pipes)
    }

    /// Reads from the start of a file.
    pub fn read(&mut self, file: &OwnedFd, bytes: u64) -> std::io::Result<()> {
        let mut at = 0;
        while at < bytes {
            match sys::read_over(file, &mut self.buffer, at, bytes - at)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => at += read,
            }
        }
        Ok(())
    }

    fn present(&self) -> usize {
        self.private.iter().map(|(_, present)| present).sum()
    }
}

fn pages_of(kib: u32) -> usize {
    kib.div_ceil(PAGE_KIB) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts this thread's faults while something is done.
    fn during(action: impl FnOnce()) -> u64 {
        let before = sys::faults();
        action();
        sys::faults() - before
    }

    #[test]
    fn every_fault_is_one() {
        let mut memory = Memory::to_measure(4096).unwrap();
        let mapped = during(|| (0..2 * FILE_PAGES).for_each(|_| memory.map().unwrap()));
        let private = during(|| (0..1000).for_each(|_| memory.zero().unwrap()));
        // Page tables are no faults of their own; nothing else of this thread touches new memory, up to a few.
        assert!((512..530).contains(&mapped), "{mapped}");
        assert!((1000..1020).contains(&private), "{private}");
    }

    #[test]
    fn munmap_frees_what_faults_made_present() {
        let mut memory = Memory::to_measure(64).unwrap();
        (0..40).for_each(|_| memory.zero().unwrap());
        memory.free(16);
        assert_eq!(memory.present(), 24);
        // The rest of the mapping is gone with them; further pages come from another.
        memory.fill(50).unwrap();
        assert_eq!((memory.present(), memory.private.len()), (50, 2));
        memory.free(50);
        assert_eq!((memory.present(), memory.private.len()), (0, 0));
        memory.fill(64).unwrap();
        memory.zero().unwrap();
        assert_eq!(memory.present(), 1);
    }

    /// The next fault is in the new mapping, and its munmap removes the mapping.
    #[test]
    fn a_new_mapping_has_no_page_until_the_next_fault() {
        let files = Files { mapped: filled(FILE_PAGES).unwrap(), cached: None };
        let mut memory = Memory::to_measure(64).unwrap();
        memory.zero().unwrap();
        memory.step(&files, MemoryWork::Mmap, 8).unwrap();
        assert_eq!((memory.present(), memory.private.len()), (1, 2));
        memory.zero().unwrap();
        assert_eq!((memory.private[0].1, memory.private[1].1), (1, 1));
        memory.step(&files, MemoryWork::Unmap, 4).unwrap();
        assert_eq!((memory.present(), memory.private.len()), (1, 1));
    }

    #[test]
    fn a_file_is_read_from_its_start_each_time() {
        let mut memory = Memory::to_measure(1).unwrap();
        let file = cached(200 << 10).unwrap();
        (0..3).for_each(|_| memory.read(&file, 200 << 10).unwrap());
        assert!(memory.read(&file, 201 << 10).is_err());
    }
}

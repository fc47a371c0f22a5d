//! The memory of a machine: regions, each of which begins at an address of its own. Every access is checked.
//!
//! The upper half of an address is the number of a region, the lower half an offset in it, so that an address just
//! outside of one region is never inside of another.

use crate::BpfError;

/// The most memory that all regions may take, in bytes.
const LARGEST: usize = 512 << 20;
const OFFSET_BITS: u32 = 32;

/// A region of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionId(u32);

/// What a program may write in a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Write {
    /// Everything.
    All,
    /// Nothing.
    None,
    /// Bytes from each first offset up to the second.
    Ranges(Vec<(usize, usize)>),
}

#[derive(Clone, Debug)]
struct Region {
    name: String,
    bytes: Vec<u8>,
    write: Write,
    /// It is the kernel's: loads through a pointer that was loaded from it never fail (BPF_PROBE_MEM).
    kernel: bool,
}

/// All regions.
#[derive(Clone, Default, Debug)]
pub struct Memory {
    regions: Vec<Option<Region>>,
    used: usize,
}

impl Memory {
    /// Adds a region of zeros. `kernel`: it is an object of the kernel, not the program's own.
    ///
    /// # Errors
    /// The machine's memory is used up.
    pub fn add(&mut self, name: &str, size: usize, write: Write, kernel: bool) -> Result<RegionId, BpfError> {
        self.used = self.used.saturating_add(size);
        if self.used > LARGEST || self.regions.len() >= u32::MAX as usize - 1 {
            return Err(BpfError::new(format!("{name}: {size} bytes are too many, all memory may be {LARGEST} bytes")));
        }
        self.regions.push(Some(Region { name: name.to_owned(), bytes: vec![0; size], write, kernel }));
        Ok(RegionId(self.regions.len() as u32 - 1))
    }

    /// Removes a region: later accesses to it are errors.
    pub fn remove(&mut self, region: RegionId) {
        if let Some(removed) = self.regions.get_mut(region.0 as usize).and_then(Option::take) {
            self.used = self.used.saturating_sub(removed.bytes.len());
        }
    }

    /// The address of a byte of a region.
    #[must_use]
    pub fn address(region: RegionId, offset: usize) -> u64 {
        ((u64::from(region.0) + 1) << OFFSET_BITS) + offset as u64
    }

    /// The region of an address and the offset in it, if there is such a region.
    #[must_use]
    pub fn region_of(&self, address: u64) -> Option<(RegionId, usize)> {
        let number = (address >> OFFSET_BITS).checked_sub(1)?;
        let region = self.regions.get(usize::try_from(number).ok()?)?;
        region.as_ref().map(|_| (RegionId(number as u32), (address & u64::from(u32::MAX)) as usize))
    }

    /// Whether the address is in an object of the kernel.
    #[must_use]
    #[inline]
    pub fn is_kernel(&self, address: u64) -> bool {
        self.at(address).is_some_and(|(region, _)| region.kernel)
    }

    #[inline]
    fn at(&self, address: u64) -> Option<(&Region, usize)> {
        let number = usize::try_from((address >> OFFSET_BITS).checked_sub(1)?).ok()?;
        Some((self.regions.get(number)?.as_ref()?, (address & u64::from(u32::MAX)) as usize))
    }

    /// The bytes at an address.
    ///
    /// # Errors
    /// Not all of them are in one region; the message says which access it was.
    #[inline]
    pub fn bytes(&self, address: u64, size: usize) -> Result<&[u8], String> {
        let found = self.at(address).and_then(|(region, offset)| region.bytes.get(offset..offset.checked_add(size)?));
        found.ok_or_else(|| self.fault("read", address, size))
    }

    /// The bytes at an address, which the program may write.
    ///
    /// # Errors
    /// As of [`Memory::bytes`]; or some of them cannot be written.
    #[inline]
    pub fn bytes_mut(&mut self, address: u64, size: usize) -> Result<&mut [u8], String> {
        let allowed = self.at(address).is_some_and(|(region, offset)| match &region.write {
            Write::All => true,
            Write::None => false,
            Write::Ranges(ranges) => ranges.iter().any(|(from, to)| *from <= offset && offset + size <= *to),
        });
        if !allowed {
            return Err(self.fault("write", address, size));
        }
        let fault = self.fault_if_outside(address, size);
        let number = (address >> OFFSET_BITS) as usize - 1;
        let offset = (address & u64::from(u32::MAX)) as usize;
        let region = self.regions.get_mut(number).and_then(Option::as_mut);
        region.and_then(|region| region.bytes.get_mut(offset..offset + size)).ok_or(fault)
    }

    fn fault_if_outside(&self, address: u64, size: usize) -> String {
        match self.bytes(address, size) {
            Ok(_) => String::new(),
            Err(_) => self.fault("write", address, size),
        }
    }

    /// Loads a number of 1, 2, 4 or 8 bytes.
    ///
    /// # Errors
    /// As of [`Memory::bytes`].
    #[inline]
    pub fn load(&self, address: u64, size: usize) -> Result<u64, String> {
        let mut word = [0; 8];
        word[..size].copy_from_slice(self.bytes(address, size)?);
        Ok(u64::from_le_bytes(word))
    }

    /// Stores a number of 1, 2, 4 or 8 bytes.
    ///
    /// # Errors
    /// As of [`Memory::bytes_mut`].
    #[inline]
    pub fn store(&mut self, address: u64, size: usize, value: u64) -> Result<(), String> {
        self.bytes_mut(address, size)?.copy_from_slice(&value.to_le_bytes()[..size]);
        Ok(())
    }

    /// Sets bytes of a region, whatever the program may do; what is outside of the region is left out.
    pub fn set(&mut self, region: RegionId, offset: usize, bytes: &[u8]) {
        let region = self.regions.get_mut(region.0 as usize).and_then(Option::as_mut);
        if let Some(place) = region.and_then(|r| r.bytes.get_mut(offset..offset.checked_add(bytes.len())?)) {
            place.copy_from_slice(bytes);
        }
    }

    #[cold]
    fn fault(&self, how: &str, address: u64, size: usize) -> String {
        let what = match self.region_of(address) {
            Some((id, offset)) => {
                let region = self.regions[id.0 as usize].as_ref();
                let (name, len) = region.map_or(("", 0), |region| (region.name.as_str(), region.bytes.len()));
                match offset.saturating_add(size) <= len {
                    true => format!("byte {offset} of {name}, which is read-only"),
                    false => format!("byte {offset} of {name}, which has {len} bytes"),
                }
            }
            None if address < 1 << OFFSET_BITS => format!("NULL + {address}"),
            None => format!("{address:#x}, where there is nothing"),
        };
        format!("bad {how} of {size} bytes at {what}")
    }
}

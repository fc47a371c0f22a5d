//! Helpers: the functions that a program calls by number (`enum bpf_func_id`).

use crate::calls::Kernel;
use crate::map::Map;
use crate::memory::{Memory, RegionId};

/// What helpers work on.
pub(crate) struct Context<'a, K> {
    pub memory: &'a mut Memory,
    pub maps: &'a mut [Map],
    pub regions: &'a [RegionId],
    pub kernel: &'a mut K,
}

const EFAULT: i64 = -14;

/// Calls a helper.
pub(crate) fn call<K: Kernel>(number: i32, args: [u64; 5], on: &mut Context<K>) -> Result<u64, String> {
    let [a, b, c, d, _] = args;
    let cpu = on.kernel.cpu();
    Ok(match number {
        1 => on.with_key(a, b, |map, key, _| map.lookup(key, cpu).unwrap_or(0))?,
        2 => {
            let size = on.map(a)?.def().value_size as usize;
            let value = on.memory.bytes(c, size)?.to_vec();
            on.with_key(a, b, |map, key, memory| map.update(key, &value, d, cpu, memory) as u64)?
        }
        3 => on.with_key(a, b, |map, key, memory| map.delete(key, memory) as u64)?,
        // bpf_ktime_get_ns, _boot_ns, _coarse_ns, _tai_ns
        5 | 125 | 160 | 208 => on.kernel.now(),
        // bpf_trace_printk, bpf_trace_vprintk: nothing reads it
        6 | 177 => 0,
        7 => u64::from(on.kernel.random()),
        8 => cpu as u64,
        // bpf_get_current_task, bpf_get_current_task_btf
        35 | 158 => on.kernel.current(),
        // bpf_spin_lock, bpf_spin_unlock: an operation is never interrupted
        93 | 94 => 0,
        // bpf_map_push_elem
        87 => {
            let size = on.map(a)?.def().value_size as usize;
            let value = on.memory.bytes(b, size)?.to_vec();
            on.map_and_memory(a)?.0.push(&value, c) as u64
        }
        // bpf_map_pop_elem, bpf_map_peek_elem
        88 | 89 => {
            let size = on.map(a)?.def().value_size as usize;
            let (map, memory) = on.map_and_memory(a)?;
            match map.pop(number == 89) {
                Ok(value) => {
                    memory.bytes_mut(b, size)?.copy_from_slice(&value);
                    0
                }
                Err(error) => {
                    memory.bytes_mut(b, size)?.fill(0);
                    error as u64
                }
            }
        }
        // bpf_strncmp
        182 => {
            let size = u64::from(b as u32);
            let mut difference = 0;
            for at in 0..size {
                let (left, right) = (on.memory.load(a.wrapping_add(at), 1)?, on.memory.load(c.wrapping_add(at), 1)?);
                difference = left.wrapping_sub(right);
                if difference != 0 || left == 0 {
                    break;
                }
            }
            difference
        }
        // bpf_kptr_xchg
        194 => {
            let old = on.memory.load(a, 8)?;
            on.memory.store(a, 8, b)?;
            old
        }
        // bpf_probe_read_kernel
        113 => {
            let size = usize::try_from(b).unwrap_or(usize::MAX);
            match on.memory.bytes(c, size).map(<[u8]>::to_vec) {
                Ok(bytes) => {
                    on.memory.bytes_mut(a, size)?.copy_from_slice(&bytes);
                    0
                }
                Err(_) => {
                    on.memory.bytes_mut(a, size)?.fill(0);
                    EFAULT as u64
                }
            }
        }
        // bpf_probe_read_kernel_str: the length with the final zero
        115 => {
            let size = u64::from(b as u32);
            let mut length = 0;
            while length < size {
                let byte = on.memory.load(c.wrapping_add(length), 1).unwrap_or(0);
                let last = length + 1 == size;
                on.memory.store(a.wrapping_add(length), 1, if last { 0 } else { byte })?;
                length += 1;
                if byte == 0 {
                    break;
                }
            }
            length
        }
        // bpf_task_storage_get, bpf_task_storage_delete: by the address of the task
        156 => {
            let (key, adds) = (b.to_le_bytes(), d & 1 != 0);
            if b == 0 {
                return Ok(0);
            }
            let initial = match (c, on.map(a)?.def().value_size as usize) {
                (0, _) => None,
                (_, size) => Some(on.memory.bytes(c, size)?.to_vec()),
            };
            let (map, memory) = on.map_and_memory(a)?;
            match (map.lookup(&key, cpu), adds) {
                (Some(found), _) => found,
                (None, false) => 0,
                (None, true) => {
                    let added = map.lookup_or_add(&key, cpu, memory).unwrap_or(0);
                    if let Some(initial) = initial.filter(|_| added != 0) {
                        memory.bytes_mut(added, initial.len())?.copy_from_slice(&initial);
                    }
                    added
                }
            }
        }
        157 => {
            let (map, memory) = on.map_and_memory(a)?;
            map.delete(&b.to_le_bytes(), memory) as u64
        }
        // bpf_map_lookup_percpu_elem
        195 => on.with_key(a, b, |map, key, _| map.lookup(key, c as u32 as usize).unwrap_or(0))?,
        _ => return Err(format!("the helper {number} is not modelled")),
    })
}

impl<K> Context<'_, K> {
    fn number_of(&self, address: u64) -> Result<usize, String> {
        let region = self.memory.region_of(address).filter(|(_, offset)| *offset == 0).map(|(region, _)| region);
        let found = region.and_then(|region| self.regions.iter().position(|map| *map == region));
        found.ok_or_else(|| "the helper was called with something that is no map".to_owned())
    }

    fn map(&self, address: u64) -> Result<&Map, String> {
        Ok(&self.maps[self.number_of(address)?])
    }

    fn map_and_memory(&mut self, address: u64) -> Result<(&mut Map, &mut Memory), String> {
        let number = self.number_of(address)?;
        Ok((&mut self.maps[number], self.memory))
    }

    fn with_key(
        &mut self,
        map: u64,
        key: u64,
        call: impl FnOnce(&mut Map, &[u8], &mut Memory) -> u64,
    ) -> Result<u64, String> {
        let number = self.number_of(map)?;
        let key = self.memory.bytes(key, self.maps[number].def().key_size as usize)?.to_vec();
        Ok(call(&mut self.maps[number], &key, self.memory))
    }
}

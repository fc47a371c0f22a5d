//! Maps: arrays, hashes, per-CPU variants of both, queues, stacks, and storage of tasks. Other kinds are refused when
//! the object is loaded.

use std::collections::{BTreeMap, VecDeque};

use crate::memory::{Memory, RegionId, Write};
use crate::program::MapDef;
use crate::BpfError;

const HASH: u32 = 1;
const ARRAY: u32 = 2;
const PERCPU_HASH: u32 = 5;
const PERCPU_ARRAY: u32 = 6;
const LRU_HASH: u32 = 9;
const QUEUE: u32 = 22;
const STACK: u32 = 23;
const TASK_STORAGE: u32 = 29;

const E2BIG: i64 = -7;
const EEXIST: i64 = -17;
const ENOENT: i64 = -2;
const EINVAL: i64 = -22;

/// A map and its contents.
#[derive(Clone, Debug)]
pub struct Map {
    def: MapDef,
    cpus: usize,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    Array(RegionId),
    /// By key, and by the owner for storage: the value, and the time of its last use for an LRU hash.
    Hash(BTreeMap<Vec<u8>, (RegionId, u64)>, u64),
    Queue(VecDeque<Vec<u8>>),
}

impl Map {
    /// An empty map on a machine with so many CPUs.
    ///
    /// # Errors
    /// The kind is not modelled, or the map is too large.
    pub fn new(def: &MapDef, cpus: usize, memory: &mut Memory) -> Result<Map, BpfError> {
        let per_cpu = matches!(def.kind, PERCPU_ARRAY | PERCPU_HASH);
        let mut map =
            Map { def: def.clone(), cpus: if per_cpu { cpus } else { 1 }, store: Store::Hash(BTreeMap::new(), 0) };
        match def.kind {
            ARRAY | PERCPU_ARRAY => {
                let size = map.stride().saturating_mul(def.max_entries as usize).saturating_mul(map.cpus);
                map.store = Store::Array(memory.add(&format!("map {}", def.name), size, Write::All, false)?);
            }
            HASH | PERCPU_HASH | LRU_HASH | TASK_STORAGE => {}
            QUEUE | STACK => map.store = Store::Queue(VecDeque::new()),
            kind => {
                let hint = "modelled are arrays, hashes, LRU hashes, per-CPU arrays and hashes, queues, stacks, storage of tasks";
                return Err(BpfError::new(format!("map {}: its kind {kind} is not modelled", def.name)).with_hint(hint));
            }
        }
        Ok(map)
    }

    /// Its definition.
    #[must_use]
    pub fn def(&self) -> &MapDef {
        &self.def
    }

    fn stride(&self) -> usize {
        (self.def.value_size as usize).next_multiple_of(8)
    }

    /// Where a CPU's value with this key is; `None`: there is none.
    pub fn lookup(&mut self, key: &[u8], cpu: usize) -> Option<u64> {
        let (stride, cpus) = (self.stride(), self.cpus);
        let of_cpu = if cpus > 1 { cpu } else { 0 };
        match &mut self.store {
            Store::Array(region) => {
                let index = u32::from_le_bytes(key.try_into().ok()?);
                let known = index < self.def.max_entries && of_cpu < cpus;
                known.then(|| Memory::address(*region, (index as usize * cpus + of_cpu) * stride))
            }
            Store::Queue(_) => None,
            Store::Hash(values, clock) => {
                let (region, used) = values.get_mut(key)?;
                *clock += 1;
                *used = *clock;
                (of_cpu < cpus).then(|| Memory::address(*region, of_cpu * stride))
            }
        }
    }

    /// The value of a key, added with zeros if it is absent: for storage, and within an update. The error is a negative
    /// error number.
    ///
    /// # Errors
    /// The map is full.
    pub fn lookup_or_add(&mut self, key: &[u8], cpu: usize, memory: &mut Memory) -> Result<u64, i64> {
        if let Some(found) = self.lookup(key, cpu) {
            return Ok(found);
        }
        let size = self.stride().saturating_mul(self.cpus);
        let (limit, lru, name) = (self.def.max_entries as usize, self.def.kind == LRU_HASH, &self.def.name);
        let Store::Hash(values, clock) = &mut self.store else { return Err(E2BIG) };
        if values.len() >= limit.max(1) && self.def.kind != TASK_STORAGE {
            let oldest = values.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest.filter(|_| lru) else { return Err(E2BIG) };
            if let Some((region, _)) = values.remove(&oldest) {
                memory.remove(region);
            }
        }
        *clock += 1;
        let region = memory.add(&format!("a value of map {name}"), size, Write::All, false).map_err(|_| -12)?;
        values.insert(key.to_vec(), (region, *clock));
        self.lookup(key, cpu).ok_or(EINVAL)
    }

    /// `bpf_map_update_elem`: 0 or a negative error number.
    pub fn update(&mut self, key: &[u8], value: &[u8], flags: u64, cpu: usize, memory: &mut Memory) -> i64 {
        let exists = self.lookup(key, cpu).is_some();
        match flags & 3 {
            1 if exists => return EEXIST,
            2 if !exists => return ENOENT,
            3 => return EINVAL,
            _ => {}
        }
        let place = match self.lookup_or_add(key, cpu, memory) {
            Ok(place) => place,
            Err(error) => return error,
        };
        match memory.bytes_mut(place, value.len()) {
            Ok(bytes) => {
                bytes.copy_from_slice(value);
                0
            }
            Err(_) => EINVAL,
        }
    }

    /// `bpf_map_push_elem`: 0 or a negative error number. A full queue drops its oldest value if BPF_EXIST is set.
    pub fn push(&mut self, value: &[u8], flags: u64) -> i64 {
        let limit = self.def.max_entries as usize;
        let Store::Queue(values) = &mut self.store else { return EINVAL };
        if values.len() >= limit {
            if flags & 2 == 0 || limit == 0 {
                return E2BIG;
            }
            values.pop_front();
        }
        values.push_back(value.to_vec());
        0
    }

    /// `bpf_map_pop_elem` and, if it stays, `bpf_map_peek_elem`: the oldest value of a queue, the newest of a stack.
    pub fn pop(&mut self, stays: bool) -> Result<Vec<u8>, i64> {
        let newest = self.def.kind == STACK;
        let Store::Queue(values) = &mut self.store else { return Err(EINVAL) };
        let value = if newest { values.back() } else { values.front() }.cloned().ok_or(ENOENT)?;
        if !stays {
            if newest {
                values.pop_back()
            } else {
                values.pop_front()
            };
        }
        Ok(value)
    }

    /// `bpf_map_delete_elem`: 0 or a negative error number.
    pub fn delete(&mut self, key: &[u8], memory: &mut Memory) -> i64 {
        let Store::Hash(values, _) = &mut self.store else { return EINVAL };
        match values.remove(key) {
            Some((region, _)) => {
                memory.remove(region);
                0
            }
            None => ENOENT,
        }
    }
}

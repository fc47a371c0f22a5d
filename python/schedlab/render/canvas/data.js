// Decodes what the page holds: columns of differences become typed arrays of times in ns.
const unpack = async (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).json();
};

// Every `width`-th number is a difference of times; `fields` names the columns.
const columns = (flat, fields) => {
  const length = flat.length / fields.length;
  const found = Object.fromEntries(fields.map((field) => [field, new Float64Array(length)]));
  let time = 0;
  for (let i = 0; i < length; i += 1) {
    time += flat[i * fields.length];
    found[fields[0]][i] = time;
    for (let j = 1; j < fields.length; j += 1) found[fields[j]][i] = flat[i * fields.length + j];
  }
  return { ...found, length };
};

const decode = (document_) => ({
  ...document_,
  lanes: document_.lanes.map((lane) => ({
    name: lane.name,
    busy: lane.busy,
    slices: columns(lane.slices, ['start', 'span', 'task']),
    depth: columns(lane.depth, ['at', 'waiting']),
    gaps: columns(lane.gaps, ['start', 'span']),
    stolen: columns(lane.stolen, ['start', 'span']),
  })),
  wakes: columns(document_.wakes, ['at', 'from', 'by', 'task', 'to', 'delay']),
  hues: document_.tasks.map(([, name]) => hue(name)),
});

// CRC-32 of the program's name, as the static picture uses it.
const hue = (name) => {
  let crc = 0xffffffff;
  for (const byte of new TextEncoder().encode(name.split('/')[0])) {
    crc ^= byte;
    for (let i = 0; i < 8; i += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ((crc ^ 0xffffffff) >>> 0) % 12;
};

// The first index whose value is greater than `x`; `values` rise.
const after = (values, x) => {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
};

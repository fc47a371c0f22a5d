// Which time is shown, on which lanes, at which places: one state for all timelines, so that zoom is locked.
const LANE = 18, HEAD = 20, LABEL = 78, GAP = 10, AXIS = 20, SHORTEST = 500;

const makeView = (timelines) => {
  const start = Math.min(...timelines.map((one) => one.start));
  const end = Math.max(...timelines.map((one) => one.end), start + 1);
  return { start, end, from: start, to: end, width: 800, marked: null };
};

const moveTo = (view, from, to) => {
  const length = Math.min(view.end - view.start, Math.max(SHORTEST, to - from));
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(view.start, middle - length / 2), view.end - length);
  view.to = view.from + length;
};

const zoom = (view, factor, around = (view.from + view.to) / 2) => {
  const length = Math.min(view.end - view.start, Math.max(SHORTEST, (view.to - view.from) * factor));
  const part = (around - view.from) / (view.to - view.from);
  const from = around - part * length;
  moveTo(view, from, from + length);
};

const pan = (view, part) => {
  const by = part * (view.to - view.from);
  moveTo(view, view.from + by, view.to + by);
};

const xOf = (view, time) => LABEL + (view.width - LABEL) * (time - view.from) / (view.to - view.from);
const timeAt = (view, x) => view.from + (x - LABEL) / (view.width - LABEL) * (view.to - view.from);

const layout = (timelines) => {
  let top = AXIS;
  return timelines.map((one) => {
    const place = { top, lanes: top + HEAD, bottom: top + HEAD + one.lanes.length * LANE };
    top = place.bottom + GAP;
    return place;
  });
};

const heightOf = (places) => places.at(-1).bottom + GAP;

const laneAt = (timelines, places, y) => {
  for (let i = 0; i < places.length; i += 1) {
    const lane = Math.floor((y - places[i].lanes) / LANE);
    if (y >= places[i].lanes && lane < timelines[i].lanes.length) return [i, lane];
  }
  return null;
};

// Whether the page holds the slices of this time.
const held = (timeline, time) => timeline.windows.some(([from, to]) => time >= from && time <= to);

const sliceAt = (lane, time) => {
  const i = after(lane.slices.start, time) - 1;
  return i >= 0 && time < lane.slices.start[i] + lane.slices.span[i] ? i : -1;
};

const ms = (ns, digits = 6) => `${(ns / 1e6).toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ms`;

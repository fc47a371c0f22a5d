// Draws all timelines onto the canvas. What is narrower than a pixel is added up, so the cost is one of pixels and slices.
const HUES = ['#4e79a7', '#f28e2b', '#59a14f', '#b07aa1', '#edc948', '#76b7b2', '#ff9da7', '#9c755f', '#86bcb6', '#d37295', '#a0cbe8', '#8cd17d'];
const RED = '#d62728', MOST_ARROWS = 160;

const paint = (context, timelines, places, view, marks) => {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue('--ink').trim(), soft = style.getPropertyValue('--soft').trim();
  const paper = style.getPropertyValue('--paper').trim();
  const height = heightOf(places);
  context.fillStyle = paper;
  context.fillRect(0, 0, view.width, height);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  axis(context, view, height, ink);
  timelines.forEach((timeline, i) => {
    context.fillStyle = ink;
    context.font = '600 12px system-ui, sans-serif';
    context.fillText(timeline.name, 4, places[i].top + HEAD / 2);
    context.font = '11px system-ui, sans-serif';
    timeline.lanes.forEach((lane, number) => {
      const y = places[i].lanes + number * LANE;
      context.fillStyle = ink;
      context.fillText(lane.name, 4, y + LANE / 2, LABEL - 8);
      context.fillStyle = soft;
      context.fillRect(LABEL, y + 1, view.width - LABEL, LANE - 2);
      overview(context, timeline, lane, view, y, ink);
      context.save();
      context.beginPath();
      context.rect(LABEL, y, view.width - LABEL, LANE);
      context.clip();
      spans(context, lane.gaps, view, y + 5, LANE - 13, 0.25);
      spans(context, lane.stolen, view, y + 1, LANE - 5, 0.3);
      slices(context, timeline, lane, view, y);
      queue(context, lane, view, y);
      context.restore();
    });
    arrows(context, timeline, places[i], view, ink);
  });
  for (const [label, at] of marks) flag(context, view, xOf(view, at), height, label);
};

const axis = (context, view, height, ink) => {
  const steps = [1, 2, 5], span = view.to - view.from, room = Math.max(2, Math.floor((view.width - LABEL) / 110));
  let step = 1;
  for (let i = 0; span / step > room; i += 1) step = steps[i % 3] * 10 ** Math.floor(i / 3);
  const digits = Math.max(0, Math.min(6, 6 - Math.floor(Math.log10(step))));
  context.textAlign = 'center';
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = xOf(view, at);
    context.fillStyle = ink;
    if (x > LABEL + 36 && x < view.width - 36) context.fillText(ms(at, digits), x, AXIS / 2);
    context.globalAlpha = 0.25;
    context.fillRect(x, AXIS, 1, height - AXIS);
    context.globalAlpha = 1;
  }
  context.textAlign = 'left';
};

// Where the page does not hold the slices: how busy the CPU was, from the overview, under hatching.
const overview = (context, timeline, lane, view, y, ink) => {
  const bins = lane.busy.length, width = (timeline.end - timeline.start) / bins;
  const first = Math.max(0, Math.floor((view.from - timeline.start) / width));
  for (let i = first; i < bins && timeline.start + i * width < view.to; i += 1) {
    const from = timeline.start + i * width;
    if (held(timeline, from) && held(timeline, from + width)) continue;
    const x = Math.max(LABEL, xOf(view, from)), right = Math.min(view.width, xOf(view, from + width));
    context.fillStyle = ink;
    context.globalAlpha = 0.04 + 0.035 * Number(lane.busy[i]);
    context.fillRect(x, y + 1, right - x, LANE - 2);
    context.globalAlpha = 1;
  }
  context.fillStyle = ink;
  context.globalAlpha = 0.18;
  let before = timeline.start;
  for (const [from, to] of [...timeline.windows, [timeline.end, timeline.end]]) {
    const left = Math.max(LABEL, xOf(view, before)), right = Math.min(view.width, xOf(view, from));
    for (let x = Math.ceil(left / 8) * 8; x < right; x += 8) context.fillRect(x, y + 1, 1, LANE - 2);
    before = to;
  }
  context.globalAlpha = 1;
};

const slices = (context, timeline, lane, view, y) => {
  const { start, span, task } = lane.slices;
  let column = -1, busy = 0, shade = 0;
  const perPixel = (view.to - view.from) / (view.width - LABEL);
  const flush = () => {
    if (column < 0 || !busy) return;
    context.globalAlpha = Math.max(0.15, Math.min(1, busy / perPixel));
    context.fillStyle = HUES[shade];
    context.fillRect(column, y + 2, 1, LANE - 7);
    context.globalAlpha = 1;
  };
  for (let i = Math.max(0, after(start, view.from) - 1); i < lane.slices.length && start[i] < view.to; i += 1) {
    const x = xOf(view, start[i]), width = span[i] / perPixel;
    const index = task[i] >> 1, dim = view.marked !== null && view.marked !== timeline.tasks[index][0];
    if (width < 1 && !(view.marked !== null && !dim)) {
      if (Math.floor(x) !== column) { flush(); column = Math.floor(x); busy = 0; }
      busy += dim ? span[i] / 6 : span[i];
      shade = timeline.hues[index];
      continue;
    }
    const left = Math.max(LABEL, x), right = Math.min(view.width, x + Math.max(1, width));
    if (right <= left) continue;
    context.globalAlpha = dim ? 0.18 : 1;
    context.fillStyle = HUES[timeline.hues[index]];
    context.fillRect(left, y + 2, right - left, LANE - 7);
    if (task[i] & 1 && width > 3) { context.fillStyle = '#0009'; context.fillRect(right - 1.5, y + 2, 1.5, LANE - 7); }
    if (right - left > 34) {
      const [pid, name] = timeline.tasks[index];
      context.save();
      context.beginPath();
      context.rect(left, y, right - left - 2, LANE);
      context.clip();
      context.fillStyle = '#111';
      context.fillText(`${name} ${pid}`, left + 3, y + LANE / 2 - 1);
      context.restore();
    }
    context.globalAlpha = 1;
  }
  flush();
};

const queue = (context, lane, view, y) => {
  const { at, waiting } = lane.depth;
  let last = -1; // one mark per pixel is enough
  context.fillStyle = RED;
  for (let i = Math.max(0, after(at, view.from) - 1); i < lane.depth.length && at[i] < view.to; i += 1) {
    if (!waiting[i]) continue;
    const x = Math.max(LABEL, xOf(view, at[i]));
    const right = Math.min(view.width, xOf(view, i + 1 < lane.depth.length ? at[i + 1] : at[i]));
    if (right - x < 1 && Math.floor(x) === last) continue;
    last = Math.floor(x);
    const height = Math.min(4, 1 + waiting[i] / 2);
    context.globalAlpha = Math.min(1, 0.45 + waiting[i] / 12);
    context.fillRect(x, y + LANE - 1 - height, Math.max(0.5, right - x), height);
  }
  context.globalAlpha = 1;
};

// Pale red bars: idle while a task waits elsewhere, or time stolen from a vCPU.
const spans = (context, { start, span, length }, view, y, height, alpha) => {
  let last = -1;
  for (let i = Math.max(0, after(start, view.from) - 1); i < length && start[i] < view.to; i += 1) {
    const x = Math.max(LABEL, xOf(view, start[i])), right = Math.min(view.width, xOf(view, start[i] + span[i]));
    if (right <= x || (right - x < 1 && Math.floor(x) === last)) continue;
    last = Math.floor(x);
    context.fillStyle = RED;
    context.globalAlpha = alpha;
    context.fillRect(x, y, Math.max(0.5, right - x), height);
    context.globalAlpha = 1;
  }
};

// Wakeups: all of them when few are visible, those of the marked task always.
const arrows = (context, timeline, place, view, ink) => {
  const { at, from, task, to, delay } = timeline.wakes;
  const first = after(at, view.from - 5e6), last = after(at, view.to);
  const all = last - after(at, view.from) <= MOST_ARROWS;
  context.strokeStyle = ink;
  context.lineWidth = 1;
  context.globalAlpha = 0.65;
  let drawn = 0;
  for (let i = first; i < last && drawn < 4 * MOST_ARROWS; i += 1) {
    const marked = view.marked === timeline.tasks[task[i]][0];
    if (!marked && (!all || view.marked !== null)) continue;
    const x = xOf(view, at[i]), right = xOf(view, at[i] + delay[i]);
    if (right < LABEL || x > view.width || !held(timeline, at[i])) continue;
    drawn += 1;
    const y = place.lanes + from[i] * LANE + LANE / 2, below = place.lanes + to[i] * LANE + LANE / 2;
    context.beginPath();
    context.moveTo(Math.max(LABEL, x), y);
    context.lineTo(Math.max(LABEL, right), below);
    context.stroke();
    context.beginPath();
    context.arc(Math.max(LABEL, right), below, 2, 0, 7);
    context.fillStyle = ink;
    context.fill();
  }
  context.globalAlpha = 1;
};

const flag = (context, view, x, height, label) => {
  if (x < LABEL || x > view.width) return;
  context.fillStyle = RED;
  context.fillRect(x - 0.5, AXIS, 1.5, height - AXIS);
  const left = x + context.measureText(label).width + 8 > view.width;
  context.textAlign = left ? 'right' : 'left';
  context.fillText(label, left ? x - 4 : x + 4, AXIS + HEAD / 2);
  context.textAlign = 'left';
};

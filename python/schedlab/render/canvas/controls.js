// Buttons, keys, pointer. Each of them changes the view and requests a redraw.
const KEYS = {
  ArrowLeft: (view) => pan(view, -0.2), a: (view) => pan(view, -0.2),
  ArrowRight: (view) => pan(view, 0.2), d: (view) => pan(view, 0.2),
  ArrowUp: (view) => zoom(view, 0.6), w: (view) => zoom(view, 0.6), '+': (view) => zoom(view, 0.6), '=': (view) => zoom(view, 0.6),
  ArrowDown: (view) => zoom(view, 1 / 0.6), s: (view) => zoom(view, 1 / 0.6), '-': (view) => zoom(view, 1 / 0.6),
  Home: (view) => moveTo(view, view.start, view.end),
  Escape: (view) => { view.marked = null; },
};

const button = (label, act) => {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = label;
  made.addEventListener('click', act);
  return made;
};

const connect = (root, canvas, state, redraw) => {
  const { view, timelines, places, marks } = state;
  const bar = root.querySelector('.controls');
  for (const [label, at, around] of marks) {
    bar.append(button(`Go to: ${label}`, () => { moveTo(view, at - around / 2, at + around / 2); redraw(); }));
  }
  bar.append(
    button('Zoom in', () => { zoom(view, 0.5); redraw(); }),
    button('Zoom out', () => { zoom(view, 2); redraw(); }),
    button('Whole run', () => { moveTo(view, view.start, view.end); redraw(); }),
  );
  canvas.addEventListener('keydown', (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(view);
    redraw();
  });
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(view, event.deltaY > 0 ? 1.25 : 0.8, timeAt(view, Math.max(LABEL, event.offsetX)));
    redraw();
  }, { passive: false });
  let held_ = null;
  canvas.addEventListener('pointerdown', (event) => { held_ = { x: event.offsetX, moved: false }; });
  canvas.addEventListener('pointermove', (event) => {
    if (held_ && event.buttons) {
      const by = timeAt(view, held_.x) - timeAt(view, event.offsetX);
      held_ = { x: event.offsetX, moved: held_.moved || Math.abs(event.offsetX - held_.x) > 2 };
      moveTo(view, view.from + by, view.to + by);
      redraw();
    } else {
      state.announce(describe(state, event.offsetX, event.offsetY));
    }
  });
  canvas.addEventListener('pointerup', (event) => {
    if (held_ && !held_.moved) {
      const found = taskAt(state, event.offsetX, event.offsetY);
      view.marked = found === null || found === view.marked ? null : found;
      redraw();
    }
    held_ = null;
  });
  canvas.addEventListener('pointerleave', () => { held_ = null; });
};

const taskAt = ({ view, timelines, places }, x, y) => {
  const found = laneAt(timelines, places, y);
  if (!found || x < LABEL) return null;
  const timeline = timelines[found[0]], lane = timeline.lanes[found[1]], i = sliceAt(lane, timeAt(view, x));
  return i < 0 ? null : timeline.tasks[lane.slices.task[i] >> 1][0];
};

const isStolen = ({ stolen: { start, span } }, time) => {
  const i = after(start, time) - 1;
  return i >= 0 && time < start[i] + span[i];
};

// What is under the pointer, in a sentence.
const describe = ({ view, timelines, places }, x, y) => {
  const found = laneAt(timelines, places, y);
  if (!found || x < LABEL) return null;
  const timeline = timelines[found[0]], lane = timeline.lanes[found[1]], time = timeAt(view, x);
  const where = `${timeline.name}, ${lane.name}, ${ms(time, 3)}: `;
  if (!held(timeline, time)) return `${where}not in full on this page`;
  const d = after(lane.depth.at, time) - 1, waiting = d < 0 ? 0 : lane.depth.waiting[d];
  const queue_ = waiting ? `; ${waiting} waiting` : '';
  const i = sliceAt(lane, time);
  if (i < 0) return `${where}${isStolen(lane, time) ? 'its vCPU waits for a CPU of the host' : 'idle'}${queue_}`;
  const [pid, name] = timeline.tasks[lane.slices.task[i] >> 1];
  const end = lane.slices.task[i] & 1 ? ', then preempted' : '';
  return `${where}${name} ${pid} runs for ${ms(lane.slices.span[i])} from ${ms(lane.slices.start[i])}${end}${queue_}`;
};

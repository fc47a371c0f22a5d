// The visible slices as a table, for readers who cannot see the canvas; text only ever becomes text.
const MOST_ROWS = 60, TITLES = ['variant', 'CPU', 'task', 'from', 'for', 'end'];
const WORDS = new Set(['variant', 'CPU', 'task', 'end']);

const visibleRows = (timelines, view) => {
  const rows = [];
  for (const timeline of timelines) {
    for (const lane of timeline.lanes) {
      const { start, span, task } = lane.slices;
      for (let i = Math.max(0, after(start, view.from) - 1); i < lane.slices.length && start[i] < view.to; i += 1) {
        if (start[i] + span[i] <= view.from) continue;
        const [pid, name] = timeline.tasks[task[i] >> 1];
        if (view.marked !== null && pid !== view.marked) continue;
        rows.push([timeline.name, lane.name, `${name} ${pid}`, start[i], span[i], task[i] & 1 ? 'preempted' : 'left']);
        if (rows.length > 20 * MOST_ROWS) return rows;
      }
    }
  }
  return rows;
};

const showTable = (place, timelines, view) => {
  const found = visibleRows(timelines, view).sort((a, b) => a[3] - b[3]);
  const table = document.createElement('table');
  const caption = table.createCaption();
  caption.textContent = found.length > MOST_ROWS ? `The first ${MOST_ROWS} slices of ${ms(view.from)} to ${ms(view.to)}` : `${found.length} slices of ${ms(view.from)} to ${ms(view.to)}`;
  const head = table.createTHead().insertRow();
  for (const title of TITLES) {
    const cell = document.createElement('th');
    cell.scope = 'col';
    if (WORDS.has(title)) cell.className = 'text';
    cell.textContent = title;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const [variant, lane, task, start, span, end] of found.slice(0, MOST_ROWS)) {
    const row = body.insertRow();
    [variant, lane, task, ms(start), ms(span), end].forEach((text, i) => {
      const cell = row.insertCell();
      cell.textContent = text;
      if (WORDS.has(TITLES[i])) cell.className = 'text';
    });
  }
  place.replaceChildren(table);
};

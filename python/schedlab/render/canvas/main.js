// Puts a timeline to work: decodes its data, sizes the canvas, and draws once per frame at most.
const begin = async (root) => {
  const found = await unpack(root.querySelector('.data').textContent);
  const timelines = found.timelines.map(decode), canvas = root.querySelector('canvas');
  const places = layout(timelines), view = makeView(timelines), context = canvas.getContext('2d');
  const status = root.querySelector('.status'), visible = root.querySelector('.visible');
  let asked = false, pending = 0;
  const announce = (text) => { if (text) status.textContent = text; };
  const draw = () => {
    asked = false;
    const scale = window.devicePixelRatio || 1;
    view.width = canvas.clientWidth;
    canvas.style.height = `${heightOf(places)}px`;
    canvas.width = Math.round(view.width * scale);
    canvas.height = Math.round(heightOf(places) * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    paint(context, timelines, places, view, found.marks);
    root.dataset.from = Math.round(view.from);
    root.dataset.to = Math.round(view.to);
    clearTimeout(pending);
    pending = setTimeout(() => {
      const task = view.marked === null ? '' : `, task ${view.marked} marked`;
      announce(`${ms(view.from)} to ${ms(view.to)}${task}`);
      if (visible.open) showTable(visible.querySelector('div'), timelines, view);
    }, 150);
  };
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  visible.addEventListener('toggle', redraw);
  const state = { view, timelines, places, marks: found.marks, announce };
  connect(root, canvas, state, redraw);
  const first = found.marks[0];
  if (first) moveTo(view, first[1] - first[2] / 2, first[1] + first[2] / 2);
  new ResizeObserver(redraw).observe(root);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  draw();
  root.dataset.ready = 'yes';
};
for (const root of document.querySelectorAll('[data-timeline]')) begin(root);

// Where scripts run, each static picture gives way to the same specification drawn live, when it first comes into view;
// where they do not, it stays.
const draw = (script) => {
  const still = document.getElementById(script.dataset.chart);
  const live = document.createElement('div');
  still.before(live);
  live.style.width = '100%';
  live.setAttribute('role', 'img');
  live.setAttribute('aria-label', still.getAttribute('aria-label'));
  // As wide as there is room, so that text keeps its size; the static picture has a width of its own.
  const spec = { ...JSON.parse(script.textContent), width: 'container' };
  const room = live.clientWidth;
  spec.config.axisY = { ...spec.config.axisY, labelLimit: Math.min(spec.config.axisY.labelLimit, room / 3) };
  spec.config.title = { ...spec.config.title, limit: room - 48 };
  return window.vegaEmbed(live, spec, { renderer: 'svg', actions: false }).then(
    () => {
      still.hidden = true;
      // What is in the picture has no text of its own; its label and the tables do.
      live.querySelector('svg').setAttribute('aria-hidden', 'true');
    },
    (error) => { live.remove(); console.warn(error); },
  );
};
const coming = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) {
      coming.unobserve(target);
      draw(target.querySelector('script[data-chart]'));
    }
  }
}, { rootMargin: '600px' });
for (const figure of document.querySelectorAll('figure:has(script[data-chart])')) coming.observe(figure);

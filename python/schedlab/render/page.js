// Where scripts run, each static picture gives way to the same specification drawn live; where they do not, it stays.
for (const script of document.querySelectorAll('script[type="application/json"][data-chart]')) {
  const still = document.getElementById(script.dataset.chart);
  const live = document.createElement('div');
  still.before(live);
  live.style.width = '100%';
  // As wide as there is room, so that text keeps its size; the static picture has a width of its own.
  const spec = { ...JSON.parse(script.textContent), width: 'container' };
  window.vegaEmbed(live, spec, { renderer: 'svg', actions: false }).then(
    () => { still.hidden = true; },
    (error) => { live.remove(); console.warn(error); },
  );
}

// Where scripts run, each static picture gives way to the same specification drawn live; where they do not, it stays.
for (const script of document.querySelectorAll('script[type="application/json"][data-chart]')) {
  const still = document.getElementById(script.dataset.chart);
  const live = document.createElement('div');
  still.before(live);
  window.vegaEmbed(live, JSON.parse(script.textContent), { renderer: 'svg', actions: false }).then(
    () => { still.hidden = true; },
    (error) => { live.remove(); console.warn(error); },
  );
}

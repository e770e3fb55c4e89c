"use strict";
// The curves: hover for values, switch agents and seeds, drag to zoom, double click to reset.
(() => {
  const source = document.getElementById("curves-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const place = document.getElementById("chart"), controls = place.querySelector(".controls");
  const plot = place.querySelector(".plot");
  const labels = [...new Set(data.panels.flatMap((panel) => Object.keys(panel.agents)))];
  const seeds = [...new Set(data.panels.flatMap((panel) =>
    Object.values(panel.agents).flatMap((agent) => Object.keys(agent.seeds))))];
  const shown = { panel: 0, agents: new Set(labels), seeds: new Set(["mean"]) };
  let chart = null, seedToggles = null;

  const colour = (label) => data.colours[labels.indexOf(label) % data.colours.length];
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const count = (value) => Math.abs(value) >= 1e6 ? `${+(value / 1e6).toPrecision(4)}M`
    : Math.abs(value) >= 1e3 ? `${+(value / 1e3).toPrecision(4)}k` : `${+value.toPrecision(4)}`;

  const element = (kind, text, parent) => {
    const made = document.createElement(kind);
    made.textContent = text;
    parent.append(made);
    return made;
  };
  const toggles = (title, names, chosen) => {
    const group = element("div", "", controls);
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", title);
    element("span", title, group).className = "small";
    for (const name of names) {
      const button = element("button", name, group);
      button.type = "button";
      if (labels.includes(name)) button.style.setProperty("--dot", colour(name));
      const mark = () => button.setAttribute("aria-pressed", chosen.has(name));
      button.addEventListener("click", () => {
        if (!chosen.delete(name)) chosen.add(name);
        mark();
        draw();
      });
      mark();
    }
    return group;
  };

  const hasSeeds = (panel) => Object.values(panel.agents).some((agent) => Object.keys(agent.seeds).length > 1);
  const lines = (panel) => {
    const found = [], bands = [];
    for (const [label, agent] of Object.entries(panel.agents)) {
      if (!shown.agents.has(label)) continue;
      const dash = labels.indexOf(label) < data.colours.length ? [] : [8, 4];
      const line = (name, values, style) =>
        found.push({ label: name, steps: agent.steps, values, stroke: colour(label), dash, ...style });
      if (shown.seeds.has("mean") || !hasSeeds(panel)) {
        if (agent.low) {
          bands.push({ series: [found.length + 1, found.length + 2], fill: `${colour(label)}22` });
          line(`${label}, high`, agent.high, { width: 0, class: "bound" });
          line(`${label}, low`, agent.low, { width: 0, class: "bound" });
        }
        line(label, agent.mean, { width: 2.5 });
      }
      for (const [seed, values] of Object.entries(agent.seeds)) {
        if (shown.seeds.has(seed)) line(`${label}, seed ${seed}`, values, { width: 1 });
      }
    }
    return { found, bands };
  };

  const draw = () => {
    const panel = data.panels[shown.panel], { found, bands } = lines(panel);
    if (seedToggles) seedToggles.hidden = !hasSeeds(panel);
    const steps = [...new Set(Object.values(panel.agents).flatMap((agent) => agent.steps))].sort((a, b) => a - b);
    const aligned = found.map((line) => {
      const at = new Map(line.steps.map((step, index) => [step, line.values[index]]));
      return steps.map((step) => at.get(step) ?? null);
    });
    const levels = Object.entries(panel.levels);
    const ink = variable("--ink"), grid = { stroke: variable("--line"), width: 1 };
    const value = (_, number) => number === null || number === undefined ? "–" : count(number);
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif", values: (_, numbers) => numbers.map(count) };
    chart?.destroy();
    chart = new uPlot({
      ...size(),
      scales: { x: { time: false } },
      cursor: { focus: { prox: 24 }, drag: { x: true, y: true, uni: 24 } },
      focus: { alpha: 0.35 },
      axes: [{ ...axis, label: data.steps }, { ...axis, label: panel.unit, size: 56 }],
      bands,
      series: [
        { label: data.steps, value },
        ...found.map(({ label, stroke, width, dash, class: kind }) =>
          ({ label, stroke, width, dash, class: kind, value, spanGaps: true, points: { show: width > 0 && steps.length < 2 } })),
        ...levels.map(([label], index) =>
          ({ label, stroke: ink, width: 1, dash: [[6, 4], [2, 3], [8, 3, 2, 3]][index % 3], value,
            points: { show: false } })),
      ],
    }, [steps, ...aligned, ...levels.map(([, height]) => steps.map(() => height))], plot);
  };
  const size = () => ({ width: plot.clientWidth, height: Math.round(Math.min(440, 180 + 0.3 * plot.clientWidth)) });

  place.hidden = false;
  for (const picture of document.querySelectorAll(".static-curves")) picture.hidden = true;
  if (data.panels.length > 1) {
    const group = element("label", "show ", controls), choice = element("select", "", group);
    data.panels.forEach((panel) => element("option", panel.name, choice));
    choice.addEventListener("change", () => { shown.panel = choice.selectedIndex; draw(); });
  }
  if (labels.length > 1) toggles("agents", labels, shown.agents);
  if (seeds.length > 1) seedToggles = toggles("seeds", ["mean", ...seeds], shown.seeds);
  draw();
  window.addEventListener("resize", () => chart.setSize(size()));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();

// A chart: the picture, a legend that switches lines on and off, values on hovering or by arrow
// keys, and the same numbers as a table. What kind it is decides only how a picture is drawn.

const COLOURS = 8; // in page.css; beyond them they come again, dashed

// Which names are hidden, those given at first; shared by all charts of a group.
function visibility(names = []) {
  const hidden = new Set(names);
  const listeners = [];
  return {
    shows: (name) => !hidden.has(name),
    toggle(name) {
      if (!hidden.delete(name)) hidden.add(name);
      listeners.forEach((listener) => listener());
    },
    follow: (listener) => listeners.push(listener),
  };
}

function coloursOf(names) {
  return new Map(Array.from(new Set(names)).map((name, i) => [name, i]));
}

function tint(colours, name) {
  const i = colours.get(name) ?? 0;
  return `c${i % COLOURS}${i >= COLOURS ? " again" : ""}`;
}

function chart(spec, options = {}) {
  const surfaces = spec.series.filter((line) => line.z);
  if (surfaces.length > 1) return surfacesApart(spec, surfaces, options);
  const colours = options.colours ?? coloursOf(spec.series.map((line) => line.name));
  const seen = options.seen ?? visibility();
  const canvas = h("div", {
    class: "canvas", tabindex: "0", role: "group", "aria-roledescription": "chart",
    "aria-label": `${options.title ?? spec.title}: arrow keys read its values`,
  });
  const apart = spec.kind === "line" ? spec.series.filter(isNamed).length : 0;
  const draw = picture({ ...spec, bare: options.bare }, canvas, colours, seen, Math.max(options.height ?? 230, 40 + 16 * apart));
  seen.follow(draw);
  new ResizeObserver(draw).observe(canvas);
  const title = options.title ?? spec.title;
  const names = spec.series.filter((line) => !line.z && !(apart && isNamed(line))).map((line) => line.name);
  return h("figure", { class: "chart", "data-kind": spec.kind },
    title ? h("figcaption", {}, title) : null,
    canvas,
    options.legend === false || spec.series.length < 2 ? null : legend(names, colours, seen),
    spec.note ? h("p", { class: "note" }, spec.note) : null,
    valuesOf(spec));
}

// Side by side, in even rows.
function grid(charts) {
  return h("div", { class: charts.length === 2 || charts.length === 4 ? "charts two" : "charts" }, charts);
}

// One picture each, beside one another; points without heights lie on all of them.
function surfacesApart(spec, surfaces, options) {
  const points = spec.series.filter((line) => !line.z);
  return h("figure", { class: "chart apart" }, h("figcaption", {}, spec.title),
    grid(surfaces.map((surface) => chart(
      { ...spec, note: "", series: [surface, ...points] }, { ...options, title: surface.name }))),
    spec.note ? h("p", { class: "note" }, spec.note) : null);
}

// Draws into the canvas, and again whenever its width or what is shown has changed.
function picture(spec, canvas, colours, seen, height = 230) {
  const tip = h("div", { class: "tip", hidden: true });
  let plot = null;
  let at = -1;
  let drawn = "";

  function draw() {
    const width = Math.floor(canvas.clientWidth);
    const lines = spec.series.filter((line) => seen.shows(line.name));
    const state = `${width} ${lines.map((line) => line.name).join()}`;
    if (width < 40 || state === drawn) return;
    drawn = state;
    const tall = spec.kind === "surface" ? Math.round(Math.min(width * 0.8, 420)) : height;
    plot = KINDS[spec.kind]({ spec, lines, width, height: tall, colour: (name) => tint(colours, name) });
    at = -1;
    tip.hidden = true;
    canvas.replaceChildren(plot.node, tip);
  }

  function read(i, aloud) {
    if (!plot || !plot.stops.length) return;
    at = Math.max(0, Math.min(i, plot.stops.length - 1));
    const stop = plot.stops[at];
    plot.node.querySelector(".cursor").replaceChildren(...plot.cursor(stop));
    tip.replaceChildren(h("b", {}, stop.title), ...stop.lines.map((line) =>
      h("span", { class: line.tint }, h("i", {}), h("em", {}, line.name), h("output", {}, line.text))));
    tip.hidden = false;
    const left = stop.x > plot.width / 2;
    tip.style.left = left ? "" : `${stop.x + 14}px`;
    tip.style.right = left ? `${plot.width - stop.x + 14}px` : "";
    tip.style.top = "0.5rem";
    if (aloud) say(`${stop.title}: ${stop.lines.map((l) => `${l.name} ${l.text}`).join(", ")}`);
  }

  function leave() {
    at = -1;
    tip.hidden = true;
    plot?.node.querySelector(".cursor").replaceChildren();
  }

  canvas.addEventListener("pointermove", (event) => {
    if (!plot || !plot.stops.length) return;
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const far = plot.stops.map((p) => Math.hypot(p.x - x, plot.flat ? 0 : p.y - y));
    read(far.indexOf(Math.min(...far)), false);
  });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    const stride = plot?.stride ?? 1;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: stride, ArrowDown: -stride }[event.key];
    if (step) read(at < 0 ? (step > 0 ? 0 : Infinity) : at + step, true);
    else if (event.key === "Home") read(0, true);
    else if (event.key === "End") read(Infinity, true);
    else if (event.key === "Escape") leave();
    else return;
    event.preventDefault();
  });
  return draw;
}

// A name is a switch; pressed is shown.
function legend(names, colours, seen) {
  const keys = Array.from(new Set(names)).map((name) => {
    const key = h("button", {
      type: "button", class: `key ${tint(colours, name)}`, "aria-pressed": String(seen.shows(name)),
      onclick: () => seen.toggle(name),
    }, h("i", {}), name);
    seen.follow(() => key.setAttribute("aria-pressed", String(seen.shows(name))));
    return key;
  });
  return h("div", { class: "legend", role: "group", "aria-label": "Lines shown" }, keys);
}

// All numbers of a chart, for those who would rather read them; made when asked for.
function valuesOf(spec) {
  const details = h("details", { class: "values" }, h("summary", {}, "Values"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const [head, ...rows] = tableOf(spec);
    details.append(
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values" },
        h("table", {}, h("thead", {}, h("tr", {}, head.map((t) => h("th", { scope: "col" }, t)))),
          h("tbody", {}, rows.map((row) => h("tr", {}, row.map((t) => h("td", {}, t))))))),
      copyButton("Copy as CSV", "Values", () => csv([head, ...rows])));
  });
  return details;
}

function tableOf(spec) {
  const error = (line, i) => line.error?.[i] ?? null;
  const rows = spec.series.flatMap((line) => (line.z
    ? line.y.flatMap((y, j) => line.x.map((x, i) => [line.name, brief(x), brief(y), brief(line.z[j][i]), GAP]))
    : line.x.map((x, i) => [line.name, typeof x === "string" ? x : brief(x), brief(line.y[i]), GAP, brief(error(line, i))])));
  const deep = spec.series.some((line) => line.z);
  const head = ["name", spec.x ?? "x", spec.y || "y", "height", "±"];
  const kept = deep ? [0, 1, 2, 3] : [0, 1, 2, 4];
  return [head, ...rows].map((row) => kept.map((i) => row[i]));
}

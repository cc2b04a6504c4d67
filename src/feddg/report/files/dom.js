// Elements, made node by node: what comes from outside is only ever text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// A method's name, which may end a line after its own marks and nowhere else.
function broken(name) {
  return name.split(/(?<=[(=,+:])/).flatMap((word, i) => (i ? [document.createElement("wbr"), word] : [word]));
}

// For those who listen: the page has one place that speaks.
function say(text) {
  document.getElementById("said").textContent = text;
}

let serial = 0;
function fresh(prefix) {
  serial += 1;
  return `${prefix}-${serial}`;
}

// A labelled choice; `options` are [value, label] pairs.
function choice(label, options, chosen, change) {
  const id = fresh("choice");
  const select = h("select", { id, onchange: (event) => change(event.target.value) },
    options.map(([value, text]) => h("option", { value }, text)));
  select.value = String(chosen);
  return h("span", { class: "choice" }, h("label", { for: id }, label), select);
}

// Numbers as people read them; a true minus sign.
const GAP = "–";

function decimals(value, places = 2) {
  if (value === null || value === undefined) return GAP;
  return value.toFixed(places).replace("-", "−");
}

function brief(value) {
  if (value === null || value === undefined) return GAP;
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2).replace("-", "−");
  return Number(value.toFixed(placesOf(value))).toString().replace("-", "−");
}

function placesOf(value) {
  const size = Math.abs(value);
  return size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
}

function seconds(value) {
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const minutes = Math.round(value / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1000 && step < units.length - 1) { value /= 1000; step += 1; }
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[step]}`;
}

function probability(p) {
  if (p === null || p === undefined) return GAP;
  return p < 0.0001 ? "< 0.0001" : p.toFixed(4);
}

// The page, from the data that it carries.

const data = JSON.parse(document.getElementById("data").textContent);

function section(group, i) {
  const colours = coloursOf(group.rows.map((r) => r.name));
  return h("section", { class: "group", id: `group-${i + 1}` },
    h("header", {},
      h("p", { class: "eyebrow" }, data.groups.length > 1 ? `Protocol ${i + 1} of ${data.groups.length}` : "Protocol"),
      h("h2", {}, group.title),
      h("p", { class: "metric" }, `${group.metric} on ${group.facts[0][1]}`),
      h("dl", { class: "facts wide" }, pairsOf(group.facts.slice(1)))),
    board(data, group),
    group.notes.map((note) => h("p", { class: "note caution" }, note)),
    curves(group, colours, visibility(beyond(group.rows))),
    inside(group),
    drawn(group),
    cost(group));
}

// Where rows are many, the best methods are enough to begin with; the others wait in the legend.
function beyond(rows) {
  return rows.length > COLOURS ? rows.filter((r, i) => r.bound || i >= COLOURS).map((r) => r.name) : [];
}

function figures() {
  if (!data.figures.length) return null;
  return h("section", { class: "group", id: "figures" },
    h("header", {}, h("h2", {}, "Figures")),
    h("div", { class: "charts large" }, data.figures.map((spec) => chart(spec, { height: 300 }))));
}

function summary() {
  const count = (n, one, many = `${one}s`) => h("div", {}, h("dt", {}, n === 1 ? one : many), h("dd", {}, n));
  const rows = new Set(data.groups.flatMap((g) => g.rows.filter((r) => !r.bound).map((r) => r.name)));
  const domains = data.groups.reduce((n, g) => n + g.columns.length, 0);
  return h("header", { class: "opening", id: "top" },
    h("h1", {}, data.title),
    h("dl", { class: "counts" }, count(data.runs.length, "run"), count(rows.size, "method"),
      count(domains, "unseen domain"), count(data.groups.length, "protocol")),
    h("p", { class: "note" }, "Numbers stand in one table only where all but method, domain and seed is the same."));
}

function theme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`);
  };
  try {
    const kept = localStorage.getItem("feddg-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* a page that may keep nothing follows the system */ }
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("feddg-theme", root.dataset.theme);
    } catch { /* as above */ }
    show();
  });
  system.addEventListener("change", show);
  show();
}

function contents() {
  const links = data.groups.map((g, i) => [`#group-${i + 1}`, g.title]);
  if (data.figures.length) links.push(["#figures", "Figures"]);
  document.getElementById("contents").append(...links.map(([href, text]) => h("a", { href }, text)));
}

theme();
contents();
document.getElementById("main").append(...[
  summary(), ...data.groups.map(section), figures(),
  data.left.length ? h("p", { class: "note" }, `Not shown, as they are not finished or hold no domain out: ${data.left.join(", ")}.`) : null,
  h("footer", {}, `Made by feddg ${data.feddg}, ${data.made}. This page is one file and fetches nothing.`),
].filter(Boolean));

// Tables that sort by any column, and the leaderboard among them.

// columns: { key, title, hint, value(row), cell(row), text(row), first: "ascending" | "descending" }
function sortable(columns, rows, { label, by, row: attributes = () => ({}) }) {
  const body = h("tbody");
  const heads = new Map();
  let [key, order] = by;
  let keep = () => true;

  const head = h("tr", {}, columns.map((column) => {
    const cell = h("th", { scope: "col", "data-key": column.key, class: column.left ? "left" : null },
      column.title ? h("button", { type: "button", title: column.hint, onclick: () => sortBy(column) },
        h("i", { "aria-hidden": "true" }), column.title) : null);
    heads.set(column.key, cell);
    return cell;
  }));
  const table = h("table", { class: "sortable" }, h("caption", { class: "unseen" }, label), h("thead", {}, head), body);

  function sortBy(column) {
    const first = column.first ?? "descending";
    if (key === column.key) order = order === "ascending" ? "descending" : "ascending";
    else [key, order] = [column.key, first];
    show();
    say(`Sorted by ${column.title}, ${order}`);
  }

  // What is unknown stands last, whichever way.
  function ordered() {
    const column = columns.find((c) => c.key === key);
    const sign = order === "ascending" ? 1 : -1;
    return rows.filter(keep).map((row) => [column.value(row), row]).sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    }).map(([, row]) => row);
  }

  function show() {
    heads.forEach((cell, k) => (k === key ? cell.setAttribute("aria-sort", order) : cell.removeAttribute("aria-sort")));
    body.replaceChildren(...ordered().map((row) => h("tr", attributes(row), columns.map((column) => column.cell(row)))));
  }

  show();
  return {
    node: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table),
    show,
    filter(test) { keep = test; show(); return ordered().length; },
    text: () => [columns.map((c) => c.title), ...ordered().map((row) => columns.map((c) => c.text(row)))],
  };
}

function shownNumber(number, seeds) {
  if (!number) return [GAP];
  return [
    h("b", {}, decimals(number.mean)),
    number.error === null ? null : h("small", {}, ` ± ${decimals(number.error)}`),
    number.n < seeds ? h("small", {}, ` (n=${number.n})`) : null,
  ];
}

function plainNumber(number) {
  if (!number) return GAP;
  return decimals(number.mean) + (number.error === null ? "" : ` ± ${decimals(number.error)}`);
}

function board(data, group) {
  const seeds = Math.max(...group.rows.flatMap((r) => r.cells.map((c) => c?.seeds.length ?? 0)));
  const contest = group.rows.filter((r) => !r.bound);
  const best = (numbers) => {
    const known = numbers.filter((n) => n !== undefined);
    return known.length > 1 ? (group.higher ? Math.max : Math.min)(...known) : null;
  };
  const tops = group.columns.map((_, k) => best(contest.map((r) => r.cells[k]?.number?.mean).filter((v) => v !== undefined)));
  const top = best(contest.map((r) => r.average?.mean).filter((v) => v !== undefined));
  const first = group.higher ? "descending" : "ascending";
  const against = comparison(group, () => table.show());

  const columns = [
    {
      key: "method", title: "method", first: "ascending", left: true, value: (r) => r.name, text: (r) => r.name,
      cell: (r) => h("th", { scope: "row" }, h("span", { class: "name" }, broken(r.name)), h("small", {}, r.line)),
    },
    {
      key: "average", title: "average", first, hint: "Over all domains, seed by seed",
      value: (r) => r.average?.mean ?? null, text: (r) => plainNumber(r.average),
      cell: (r) => h("td", { class: `average${!r.bound && r.average && r.average.mean === top ? " best" : ""}` },
        shownNumber(r.average, seeds)),
    },
    strip(group),
    ...paperColumns(group),
    ...against.columns,
    ...group.columns.map((column, k) => ({
      key: `at ${column}`, title: column, first, hint: `${group.metric} with ${column} held out`,
      value: (r) => r.cells[k]?.number?.mean ?? null,
      text: (r) => plainNumber(r.cells[k]?.number),
      cell: (r) => numberCell(data, group, r, column, r.cells[k], seeds, !r.bound && r.cells[k]?.number?.mean === tops[k]),
    })),
  ];
  const shown = columns.filter(Boolean);
  const table = sortable(shown, group.rows, {
    label: `${group.title}: ${group.metric}`, by: ["average", first],
    row: (r) => ({ class: r.bound ? "bound" : null }),
  });
  // In papers the domains come first and the average closes the line.
  const texts = () => {
    const turn = (c) => (c.key === "method" ? 0 : c.key.startsWith("at ") ? 1 : 2);
    const kept = shown.filter((c) => c.key !== "strip").sort((a, b) => turn(a) - turn(b));
    return table.text().map((line) => kept.map((c) => line[shown.indexOf(c)]));
  };
  const count = h("span", { class: "count" });
  const search = h("input", {
    type: "search", placeholder: "Filter", "aria-label": `Filter the rows of ${group.title}`,
    oninput: () => {
      const words = search.value.toLowerCase().split(/\s+/);
      const left = table.filter((r) => words.every((w) => `${r.name} ${r.line} ${r.family}`.toLowerCase().includes(w)));
      count.textContent = search.value ? `${left} of ${group.rows.length}` : "";
      say(`${left} of ${group.rows.length} rows`);
    },
  });
  return [
    h("div", { class: "tools" }, search, count, against.choices, h("span", { class: "copies" }, "Copy as",
      copyButton("Markdown", "Table", () => markdown(group.caption, texts())),
      copyButton("LaTeX", "Table", () => latex(group.caption, texts())),
      copyButton("CSV", "Table", () => csv(texts())))),
    table.node,
    h("p", { class: "note" }, `Mean ± standard error over ${seeds} seed${seeds === 1 ? "" : "s"}; the best of a column is marked, reference bounds apart. Choose a number to see what is behind it.`),
  ];
}

function numberCell(data, group, row, column, cell, seeds, best) {
  if (!cell) return h("td", {}, GAP);
  return h("td", { class: best ? "best" : null },
    h("button", {
      type: "button", class: "number", "aria-haspopup": "dialog",
      onclick: () => behind(data, group, row, column, cell),
    }, shownNumber(cell.number, seeds)),
    cell.paper ? h("small", { class: "theirs" }, `paper ${theirs(cell.paper)}`) : null);
}

// As printed; some papers have no ±.
function theirs(paper) {
  return decimals(paper.value) + (paper.error === null ? "" : ` ± ${decimals(paper.error)}`);
}

// Averages as dots with their errors on one scale; a paper's number is a ring.
function strip(group) {
  const spans = group.rows.flatMap((r) => [
    ...(r.average ? [r.average.mean - (r.average.error ?? 0), r.average.mean + (r.average.error ?? 0)] : []),
    ...(r.paper ? [r.paper.value] : []),
  ]);
  if (!spans.length) return null;
  const x = linear(extent(spans), [6, 90]);
  return {
    key: "strip", title: "", value: () => null, text: () => "",
    cell: (r) => h("td", { class: "strip", "aria-hidden": "true" }, r.average || r.paper
      ? s("svg", { viewBox: "0 0 96 16", width: 96, height: 16 },
        s("line", { class: "ground", x1: 0, x2: 96, y1: 8, y2: 8 }),
        r.average?.error ? s("line", { x1: x(r.average.mean - r.average.error), x2: x(r.average.mean + r.average.error), y1: 8, y2: 8 }) : null,
        r.average ? s("circle", { cx: x(r.average.mean), cy: 8, r: 4 }) : null,
        r.paper ? s("circle", { class: "theirs", cx: x(r.paper.value), cy: 8, r: 4 }) : null)
      : null),
  };
}

function paperColumns(group) {
  if (!group.rows.some((r) => r.paper)) return [];
  const gap = (r) => (r.paper && r.average ? r.average.mean - r.paper.value : null);
  const signed = (v) => (v === null ? GAP : (v > 0 ? "+" : "") + decimals(v));
  return [
    { key: "paper", title: "paper", hint: "The published average, of the same protocol",
      value: (r) => r.paper?.value ?? null, text: (r) => decimals(r.paper?.value),
      cell: (r) => h("td", { title: r.paper?.source }, r.paper ? theirs(r.paper) : GAP) },
    { key: "difference", title: "Δ", hint: "Ours less the paper's", value: gap, text: (r) => signed(gap(r)),
      cell: (r) => h("td", {}, signed(gap(r))) },
  ];
}

// p of every method against a chosen one, by a chosen test.
function comparison(group, changed) {
  if (group.tests.length < 2) return { columns: [], choices: null };
  let base = Math.max(0, group.tests.findIndex((t) => t.baseline === "fedavg"));
  let test = "t-test, Holm";
  const p = (r) => group.tests[base].p[test][group.rows.indexOf(r)];
  const column = {
    key: "p", title: "p", first: "ascending", value: p, text: (r) => probability(p(r)),
    hint: "Two-sided, paired over the domains and seeds that both have",
    cell: (r) => h("td", { class: p(r) !== null && p(r) < 0.05 ? "sure" : null },
      r.name === group.tests[base].baseline ? h("small", {}, "baseline") : probability(p(r))),
  };
  const choices = h("span", { class: "choices" },
    choice("p against", group.tests.map((t, i) => [i, t.baseline]), base, (value) => { base = Number(value); changed(); }),
    choice("by", Object.keys(group.tests[0].p).map((name) => [name, name]), test, (value) => { test = value; changed(); }));
  return { columns: [column], choices };
}

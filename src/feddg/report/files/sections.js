// The parts of a group under its leaderboard: curves, what the merge decided, what it cost.

function curves(group, colours, seen) {
  if (!group.families.length) return null;
  const place = h("div");
  const show = (at) => place.replaceChildren(grid(group.families[at].charts.map((spec) => chart(
    spec, { colours, seen, legend: false, bare: true }))));
  show(0);
  return part("Over the rounds",
    h("div", { class: "tools" }, choice("Show", group.families.map((f, i) => [i, f.name]), 0, (v) => show(Number(v)))),
    legend(group.rows.map((r) => r.name), colours, seen),
    place,
    h("p", { class: "note" }, "A picture for each domain held out. Lines are means over the seeds, bands their standard error."));
}

function inside(group) {
  if (!group.insides.length) return null;
  const place = h("div", { class: "kinds" });
  const rows = Array.from(new Set(group.insides.map((i) => i.row)));
  let row = rows[0];
  let column = group.insides[0].column;
  const columnsOf = () => group.insides.filter((i) => i.row === row).map((i) => i.column);
  const choices = h("div", { class: "tools" });

  const show = () => {
    if (!columnsOf().includes(column)) [column] = columnsOf();
    choices.replaceChildren(
      choice("Method", rows.map((r) => [r, r]), row, (value) => { row = value; show(); }),
      choice("Held out", columnsOf().map((c) => [c, c]), column, (value) => { column = value; show(); }));
    const found = group.insides.find((i) => i.row === row && i.column === column);
    const names = found.kinds.flatMap((k) => k.charts.flatMap((c) => c.series.map((line) => line.name)));
    const [colours, seen] = [coloursOf(names), visibility()];
    place.replaceChildren(...found.kinds.map((kind) => h("div", { class: kind.charts.length > 1 ? "kind many" : "kind" },
      h("h4", {}, kind.name),
      legend(kind.charts.flatMap((c) => c.series.map((line) => line.name)), colours, seen),
      grid(kind.charts.map((spec) => chart(spec, { colours, seen, legend: false, bare: true, height: 190 }))))));
  };
  show();
  return part("Inside the merge", choices, place);
}

function drawn(group) {
  if (!group.figures.length) return null;
  // Methods keep their colours.
  const rows = group.rows.map((r) => r.name);
  const colours = (names) => coloursOf(names.some((name) => rows.includes(name)) ? [...rows, ...names] : names);
  return part("Figures", grid(group.figures.map((spec) => chart(spec, {
    height: 270, colours: colours(spec.series.map((line) => line.name)),
  }))));
}

function cost(group) {
  const plain = (key, title, hint, value, text) => ({
    key, title, hint, first: "ascending", value, text, cell: (r) => h("td", {}, text(r)),
  });
  const sends = (r) => r.reveals.sends.map(([name]) => name).join(", ") || "nothing";
  const table = sortable([
    { key: "method", title: "method", first: "ascending", left: true, value: (r) => r.name, text: (r) => r.name,
      cell: (r) => h("th", { scope: "row" }, h("span", { class: "name" }, broken(r.name))) },
    plain("seconds", "time", "Of a run, on the mean", (r) => r.seconds, (r) => seconds(r.seconds)),
    plain("up", "sent up", "By all sites of a run", (r) => r.up, (r) => bytes(r.up)),
    plain("down", "sent down", "To all sites of a run", (r) => r.down, (r) => bytes(r.down)),
    { ...plain("sends", "leaves a site", "Besides numbers of examples, steps and losses", sends, sends),
      left: true,
      cell: (r) => h("td", { class: "words" }, r.reveals.sends.length
        ? r.reveals.sends.map(([name, words]) => h("p", {}, h("b", {}, name), ` ${words}`)) : "nothing") },
    { ...plain("sees", "server sees", "Of the updates in the clear", (r) => r.reveals.sees, (r) => r.reveals.sees), left: true,
      cell: (r) => h("td", { class: "words" }, r.reveals.sees) },
  ], group.rows, { label: `${group.title}: cost and disclosure`, by: ["method", "ascending"], row: () => ({}) });
  return part("What it costs, what it reveals", table.node,
    h("p", { class: "note" }, "Time and bytes are means over a row's runs. The server sees sums of updates, numbers about them, their inner products (gram) or everything."));
}

function part(title, ...children) {
  return h("section", { class: "part" }, h("h3", {}, title), children);
}

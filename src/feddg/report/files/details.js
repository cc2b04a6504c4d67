// What stands behind a number: its runs, their configuration and environment, how to run them again.

function opened(title, content) {
  const id = fresh("dialog");
  const dialog = h("dialog", { "aria-labelledby": id, onclose: () => dialog.remove() },
    h("header", {}, h("h3", { id }, title),
      h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "×")),
    content);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

function behind(data, group, row, column, cell) {
  const number = cell.number;
  const shown = number
    ? [h("strong", {}, decimals(number.mean)), number.error === null ? "" : ` ± ${decimals(number.error)}`,
      ` ${group.metric}, mean ± standard error over ${number.n} seed${number.n === 1 ? "" : "s"}`]
    : ["No number yet: its runs are not finished."];
  opened(`${row.name}, ${column} held out`, [
    h("p", {}, shown),
    cell.paper ? h("p", {}, `Published: ${published(cell.paper)}.`) : null,
    cell.seeds.map((seed, i) => runOf(data, group, seed, i === 0)),
  ].flat().filter(Boolean));
}

function published(paper) {
  const error = paper.error === null ? "" : ` ± ${decimals(paper.error)}`;
  return `${decimals(paper.value)}${error} (${paper.source})`;
}

function runOf(data, group, seed, open) {
  const run = data.runs[seed.run];
  const config = run.config.map((i) => data.lines[i]).join("\n");
  const around = data.environments[run.environment];
  return h("details", { class: "run", open },
    h("summary", {}, h("span", {}, `seed ${run.seed}`), h("b", {}, decimals(seed.value))),
    h("dl", { class: "facts" }, pairsOf([
      ["run", run.key],
      ["rounds", `${run.done} of ${run.rounds}; round ${seed.round} chosen`],
      ["time", seconds(run.seconds)],
      ["sent", `${bytes(run.up)} up, ${bytes(run.down)} down`],
    ])),
    h("h4", {}, "Run it again", copyButton("Copy", "Command", () => run.again)),
    h("pre", { class: "command" }, run.again),
    h("h4", {}, "Configuration", copyButton("Copy", "Configuration", () => `${config}\n`)),
    h("pre", { tabindex: "0" }, config),
    h("h4", {}, "Environment"),
    around.length ? h("dl", { class: "facts" }, pairsOf(around)) : h("p", {}, "Not recorded."));
}

function pairsOf(list) {
  return list.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

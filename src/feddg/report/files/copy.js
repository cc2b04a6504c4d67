// To the clipboard; where there is none (an old browser, a page without rights) by selection.

async function copied(text, what) {
  if (await toClipboard(text)) say(`${what} copied`);
  else shown(text, what);
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return bySelection(text);
  }
}

function bySelection(text) {
  const before = document.activeElement;
  const area = h("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  area.remove();
  before?.focus();
  return done;
}

// The last resort: the text, selected, to be copied by hand.
function shown(text, what) {
  const area = h("textarea", { class: "by-hand", rows: "12", readonly: true, "aria-label": what });
  area.value = text;
  opened(`${what}: copy it by hand`, [area]);
  area.select();
}

function copyButton(label, what, text) {
  const button = h("button", { type: "button", class: "quiet copy" }, label);
  button.addEventListener("click", async () => {
    await copied(text(), what);
    button.dataset.done = "";
    setTimeout(() => delete button.dataset.done, 1600);
  });
  return button;
}

// A table as lists of text: the head, then the rows. The first column is text, the others numbers.
function markdown(title, [head, ...rows]) {
  const line = (cells) => `| ${cells.map((c) => c.replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = line(head.map((_, i) => (i === 0 ? "---" : "---:")));
  return [title, "", line(head), rule, ...rows.map(line), ""].join("\n");
}

const TEX = {
  "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "&": "\\&", "%": "\\%", $: "\\$", "#": "\\#",
  _: "\\_", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$", "−": "$-$",
  "–": "--", Δ: "$\\Delta$", "<": "$<$", ">": "$>$", "×": "$\\times$",
};

function tex(text) {
  return Array.from(text, (c) => TEX[c] ?? c).join("");
}

function latex(title, [head, ...rows]) {
  const line = (cells) => `  ${cells.map(tex).join(" & ")} \\\\`;
  return [
    "% \\usepackage{booktabs}", "\\begin{table}", "\\centering", `\\caption{${tex(title)}}`,
    `\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "  \\toprule", line(head), "  \\midrule",
    ...rows.map(line), "  \\bottomrule", "\\end{tabular}", "\\end{table}", "",
  ].join("\n");
}

function csv([...lines]) {
  const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return `${lines.map((cells) => cells.map(cell).join(",")).join("\n")}\n`;
}

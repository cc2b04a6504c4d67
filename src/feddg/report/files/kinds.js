// The four kinds of picture. Each gives the drawing, the places that can be read, in order, and
// what marks the place that is being read. `flat`: the nearest is by x alone.

const KINDS = { line: linePicture, bar: barPicture, scatter: scatterPicture, surface: surfacePicture };

// The paper: grid, ticks, titles; and the two scales.
function paper({ spec, width, height }, xs, ys, { pad = true, zero = false } = {}) {
  const yValues = spec.reference === undefined ? ys : [...ys, spec.reference];
  let [low, high] = extent(zero ? [0, ...yValues] : yValues);
  if (pad) {
    const wide = roomy([low, high]);
    low = zero && low >= 0 ? 0 : wide[0];
    high = zero && high <= 0 ? 0 : wide[1];
  }
  const top = (spec.y && !spec.bare) || spec.kind === "surface" ? 24 : 10;
  const foot = spec.x ? 38 : 24;
  const yTicks = !spec.y ? [] : ticks(low, high, Math.max(3, Math.round((height - top - foot) / 34)));
  const left = Math.ceil(Math.max(...yTicks.map((t) => textWidth(t.label)), 12)) + 10;
  const right = 12;
  const y = linear([low, high], [height - foot, top]);
  const names = xs.some((x) => typeof x === "string");
  const across = [left, width - right];
  const x = names
    ? banded(Array.from(new Set(xs.map(String))), across)
    : linear(!pad || spec.kind === "line" ? extent(xs) : roomy(extent(xs)), across);
  const xTicks = names || !spec.x ? [] : ticks(...x.domain, Math.max(2, Math.round((width - left) / 70)));
  const whole = xs.every((v) => Number.isInteger(v));
  const node = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    yTicks.map((t) => s("g", { class: "tick" },
      s("line", { x1: left, x2: width - right, y1: y(t.value), y2: y(t.value) }),
      s("text", { x: left - 8, y: y(t.value) + 4, "text-anchor": "end" }, t.label))),
    xTicks.filter((t) => !whole || Math.abs(t.value - Math.round(t.value)) < 1e-9).map((t) => s("text", {
      class: "axis", x: x(t.value), y: height - foot + 16, "text-anchor": "middle",
    }, whole ? String(Math.round(t.value)) : t.label)),
    names ? nameTicks(x, height - foot + 16) : [],
    spec.y && !spec.bare ? s("text", { class: "title", x: 0, y: 11 }, spec.y) : null,
    spec.x ? s("text", { class: "title", x: width - right, y: height - 3, "text-anchor": "end" }, spec.x) : null,
    spec.reference === undefined ? null : s("line", {
      class: "reference", x1: left, x2: width - right, y1: y(spec.reference), y2: y(spec.reference),
    }));
  return { node, x, y, foot: height - foot, left, right: width - right };
}

// Where names are wider than their bands they take turns, or end early.
function nameTicks(x, y) {
  const fits = Math.max(3, Math.floor(x.width / 6.4) - 1);
  return x.names.map((name) => s("text", { class: "axis", x: x(name), y, "text-anchor": "middle" },
    s("title", {}, name), name.length > fits ? `${name.slice(0, fits)}…` : name));
}

function place(scale, x) {
  return scale(scale.names ? String(x) : x);
}

function withError(line, i) {
  const error = line.error?.[i];
  if (error === null || error === undefined) return brief(line.y[i]);
  const places = placesOf(line.y[i]);
  return `${decimals(line.y[i], places)} ± ${decimals(error, places)}`;
}

function finish(plot, node, width, cursorParts) {
  node.append(s("g", { class: "cursor" }));
  return { node, width, cursor: cursorParts, ...plot };
}

function linePicture(given) {
  const { spec, lines, width, colour } = given;
  const reach = lines.flatMap((l) => l.y.flatMap((v, i) => (v === null ? [] : [v - (l.error?.[i] ?? 0), v + (l.error?.[i] ?? 0)])));
  const { node, x, y, foot } = paper(given, spec.series.flatMap((l) => l.x), reach);
  for (const line of lines) {
    const points = line.x.map((v, i) => [place(x, v), line.y[i] === null ? null : y(line.y[i]), i]);
    node.append(s("g", { class: `line ${colour(line.name)}${line.dashed ? " dashed" : ""}${lines.length > 6 ? " many" : ""}` },
      stretches(points).flatMap((run) => [
        line.error ? s("polygon", { points: band(run, line, y) }) : null,
        run.length > 1 ? s("polyline", { points: run.map(([a, b]) => `${a},${b}`).join(" ") }) : null,
        ...(run.length === 1 || line.x.length <= 16
          ? run.map(([cx, cy]) => s("circle", { cx, cy, r: line.x.length > 1 ? 2.2 : 4 })) : []),
      ]).filter(Boolean),
      isNamed(line) ? beside(line.name, points[0][0], points[0][1], width) : []));
  }
  const marks = Array.from(new Set(lines.flatMap((l) => l.x)));
  if (!x.names) marks.sort((a, b) => a - b);
  const stops = marks.map((mark) => {
    const here = lines.map((l) => [l, l.x.indexOf(mark)]).filter(([l, i]) => i >= 0 && l.y[i] !== null);
    here.sort(([a, i], [b, j]) => b.y[j] - a.y[i]);
    return {
      x: place(x, mark), y: 0, title: `${spec.x ?? ""} ${mark}`.trim(),
      lines: here.map(([l, i]) => ({ name: l.name, tint: colour(l.name), text: l.text?.[i] ?? withError(l, i), y: y(l.y[i]) })),
    };
  }).filter((stop) => stop.lines.length);
  return finish({ stops, flat: true }, node, width, (stop) => [
    s("line", { x1: stop.x, x2: stop.x, y1: 24, y2: foot }),
    ...stop.lines.map((l) => s("circle", { class: l.tint, cx: stop.x, cy: l.y, r: 4 })),
  ]);
}

// A single point with words of its own has its name beside it, and needs no legend.
function isNamed(line) {
  return line.x.length === 1 && Boolean(line.text?.length);
}

// On the side that has more room; where that is too little the name ends early.
function beside(name, x, y, width) {
  const left = x > width / 2;
  const fits = Math.max(3, Math.floor((left ? x : width - x) / 6.1) - 3);
  return s("text", { x: x + (left ? -9 : 9), y: y + 4, "text-anchor": left ? "end" : "start" },
    s("title", {}, name), name.length > fits ? `${name.slice(0, fits)}…` : name);
}

// Unbroken runs of points.
function stretches(points) {
  const runs = [[]];
  for (const point of points) {
    if (point[1] === null) runs.push([]);
    else runs.at(-1).push(point);
  }
  return runs.filter((run) => run.length);
}

function band(run, line, y) {
  const edge = (sign) => run.map(([a, , i]) => `${a},${y(line.y[i] + sign * (line.error[i] ?? 0))}`);
  return [...edge(1), ...edge(-1).reverse()].join(" ");
}

function barPicture(given) {
  const { lines, width, colour } = given;
  const names = given.spec.series.flatMap((l) => l.x.map(String));
  const ends = lines.flatMap((l) => l.y.map((v, i) => (v === null ? null : v + Math.sign(v || 1) * (l.error?.[i] ?? 0))));
  const { node, x, y } = paper(given, names, ends, { zero: true });
  const wide = Math.min(34, (x.width * 0.78) / Math.max(lines.length, 1));
  const spot = (name, k) => x(String(name)) + (k - (lines.length - 1) / 2) * wide;
  lines.forEach((line, k) => node.append(s("g", { class: `bar ${colour(line.name)}` },
    line.x.flatMap((name, i) => {
      if (line.y[i] === null) return [];
      const [centre, end, error] = [spot(name, k), line.y[i], line.error?.[i] ?? 0];
      const [a, b] = [y(0), y(end)];
      return [
        s("rect", { x: centre - wide * 0.42, width: wide * 0.84, y: Math.min(a, b), height: Math.abs(a - b) }),
        error ? s("line", { x1: centre, x2: centre, y1: y(end - error), y2: y(end + error) }) : null,
      ].filter(Boolean);
    }))));
  const stops = x.names.map((name) => ({
    x: x(name), y: 0, title: name,
    lines: lines.flatMap((l) => {
      const i = l.x.map(String).indexOf(name);
      return i < 0 || l.y[i] === null ? [] : [{ name: l.name, tint: colour(l.name), text: withError(l, i) }];
    }),
  }));
  return finish({ stops, flat: true }, node, width, (stop) => [
    s("rect", { x: stop.x - x.width / 2, width: x.width, y: y.range[1], height: y.range[0] - y.range[1] }),
  ]);
}

const SHAPES = [
  (cx, cy) => s("circle", { cx, cy, r: 3.4 }),
  (cx, cy) => s("rect", { x: cx - 3, y: cy - 3, width: 6, height: 6 }),
  (cx, cy) => s("polygon", { points: `${cx},${cy - 4} ${cx + 4},${cy + 3} ${cx - 4},${cy + 3}` }),
  (cx, cy) => s("polygon", { points: `${cx},${cy - 4.4} ${cx + 4.4},${cy} ${cx},${cy + 4.4} ${cx - 4.4},${cy}` }),
];

function scatterPicture(given) {
  const { spec, lines, width, colour } = given;
  const { node, x, y } = paper(given, spec.series.flatMap((l) => l.x), spec.series.flatMap((l) => l.y));
  const order = spec.series.map((l) => l.name);
  const points = lines.flatMap((line) => line.x.flatMap((v, i) =>
    (line.y[i] === null ? [] : [{ line, i, x: place(x, v), y: y(line.y[i]) }])));
  for (const line of lines) {
    const shape = SHAPES[order.indexOf(line.name) % SHAPES.length];
    node.append(s("g", { class: `dots ${colour(line.name)}` },
      points.filter((p) => p.line === line).map((p) => shape(p.x, p.y))));
  }
  const stops = points.map(({ line, i, ...spot }) => ({
    ...spot, title: line.text?.[i] ?? line.name,
    lines: [{ name: line.name, tint: colour(line.name), text: `${brief(line.x[i])}, ${withError(line, i)}` }],
  }));
  return finish({ stops }, node, width, (stop) => [s("circle", { class: "ring", cx: stop.x, cy: stop.y, r: 7 })]);
}

function surfacePicture(given) {
  const { spec, lines, width, colour } = given;
  const surface = spec.series.find((l) => l.z);
  const spots = lines.filter((l) => !l.z);
  const { node, x, y, right } = paper(given, edges(surface.x), edges(surface.y), { pad: false });
  const [low, high] = extent(surface.z.flat());
  const [wide, tall] = [cell(x, surface.x), cell(y, surface.y)];
  const cells = surface.y.flatMap((b, j) => surface.x.map((a, i) => ({ a, b, z: surface.z[j][i] })));
  node.append(s("g", { class: "heat" }, cells.map(({ a, b, z }) => s("rect", {
    x: x(a) - wide / 2, y: y(b) - tall / 2, width: wide + 0.5, height: tall + 0.5,
    fill: heat((z - low) / (high - low || 1)),
  }))));
  node.append(heatKey(right, low, high));
  for (const line of spots) {
    const places = line.x.map((a, i) => [x(a), y(line.y[i])]);
    const [cx, cy] = places.at(-1); // a longer one is the way to its last point
    const left = cx > width * 0.75;
    node.append(s("g", { class: `spots ${colour(line.name)}` },
      s("polyline", { points: places.map(([a, b]) => `${a},${b}`).join(" ") }),
      s("circle", { cx, cy, r: 5 }),
      s("text", { x: cx + (left ? -9 : 9), y: cy + 4, "text-anchor": left ? "end" : "start" }, line.text?.at(-1) ?? line.name)));
  }
  const stops = cells.map(({ a, b, z }) => ({
    x: x(a), y: y(b), title: `${brief(a)}, ${brief(b)}`,
    lines: [{ name: surface.name, tint: "", text: brief(z) }],
  }));
  return finish({ stops, stride: surface.x.length }, node, width, (stop) => [
    s("rect", { x: stop.x - wide / 2, y: stop.y - tall / 2, width: wide, height: tall }),
  ]);
}

// The places of cells are their middles; half a cell more on either side.
function edges(values) {
  const [low, high] = extent(values);
  const half = (high - low) / Math.max(values.length - 1, 1) / 2 || 0.5;
  return [low - half, high + half];
}

function cell(scale, values) {
  return Math.abs(scale.range[1] - scale.range[0]) / Math.max(values.length, 1);
}

// What the colours mean, above the picture.
function heatKey(right, low, high) {
  const [steps, wide] = [24, 3];
  const from = right - textWidth(brief(high)) - 6 - steps * wide;
  return s("g", {},
    s("text", { x: from - 6, y: 11, "text-anchor": "end" }, brief(low)),
    Array.from({ length: steps }, (_, i) => s("rect", {
      x: from + i * wide, y: 3, width: wide + 0.5, height: 8, fill: heat(i / (steps - 1)),
    })),
    s("text", { x: right, y: 11, "text-anchor": "end" }, brief(high)));
}

// From numbers to places on paper, and the round numbers that stand at an axis.

function extent(values) {
  const known = values.filter((v) => v !== null && v !== undefined && Number.isFinite(v));
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

// Steps of 1, 2 or 5 times a power of ten, about `count` of them.
function stepFor(span, count) {
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const times = rough / power;
  return (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1) * power;
}

function ticks(low, high, count) {
  const step = stepFor(high - low || 1, count);
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) {
    found.push({ value: k * step, label: (k * step).toFixed(places).replace("-", "−") });
  }
  return found;
}

function roomy([low, high], share = 0.06) {
  const room = (high - low) * share || Math.abs(high) * share || 1;
  return [low - room, high + room];
}

function linear([low, high], [from, to]) {
  const scale = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  scale.domain = [low, high];
  scale.range = [from, to];
  return scale;
}

// Names side by side, each in a band of its own; the scale gives the middle.
function banded(names, [from, to]) {
  const width = (to - from) / Math.max(names.length, 1);
  const scale = (name) => from + width * (names.indexOf(name) + 0.5);
  scale.width = width;
  scale.names = names;
  return scale;
}

// How wide a label of 11 pixels is, near enough to leave room for it.
function textWidth(text) {
  return String(text).length * 6.4;
}

// From dark to light in even steps of lightness, blue to yellow: nobody sees two as one.
const RAMP = [[18, 33, 74], [58, 78, 115], [108, 120, 128], [165, 160, 122], [224, 200, 92], [253, 236, 120]];

function heat(share) {
  const at = Math.max(0, Math.min(1, share)) * (RAMP.length - 1);
  const k = Math.min(Math.floor(at), RAMP.length - 2);
  const mix = RAMP[k].map((c, i) => Math.round(c + (at - k) * (RAMP[k + 1][i] - c)));
  return `rgb(${mix.join(",")})`;
}

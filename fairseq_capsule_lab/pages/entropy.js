// Entropy of the shares in a panel, divided by that of equal shares: 1 if all are equal, 0 if one is everything.

function entropyOf(shares) {
  const sum = shares.reduce((total, share) => total + share, 0);
  if (shares.length < 2 || !sum) return null;
  const nats = shares.reduce((total, share) => (share > 0 ? total - (share / sum) * Math.log(share / sum) : total), 0);
  return nats / Math.log(shares.length);
}

function mean(numbers) {
  const known = numbers.filter((number) => number !== null);
  return known.length ? known.reduce((sum, number) => sum + number, 0) / known.length : null;
}

// Whether attention is causal: all numbers above the diagonal are 0.
function isCausal({ rows, columns, values }) {
  const [height, width] = [rows.labels.length, columns.labels.length];
  if (rows.axis !== "query" || columns.axis !== "key" || height < 3) return false;
  return values.every((value, i) => i % width <= Math.floor(i / width) || value === 0);
}

// The entropies of a picture, and whether they are of its rows, of its columns or of the whole; null without any.
async function entropies(pictured, state) {
  const { panel, rows, columns, values } = pictured;
  if (!panel.distribution) return null;
  const [height, width] = [rows.labels.length, columns.labels.length];
  const row = (r) => values.slice(r * width, (r + 1) * width);
  if (panel.distribution === panel.columns) {
    const causal = isCausal(pictured);
    return { of: "rows", found: rows.labels.map((_, r) => entropyOf(causal ? row(r).slice(0, r + 1) : row(r))) };
  }
  if (panel.distribution === panel.rows) {
    const column = (c) => rows.labels.map((_, r) => values[r * width + c]);
    return { of: columns.axis ? "columns" : "whole", found: columns.labels.map((_, c) => entropyOf(column(c))) };
  }
  // Over the parts that the panels of a view show one by one, averaged over the cells of a row.
  const parts = labelsOf(panel, panel.distribution).map((label) =>
    picture({ ...panel, at: panel.at.map(([axis, at]) => [axis, axis === panel.distribution ? label : at]) }, state));
  const shares = (await Promise.all(parts)).map((part) => part.values);
  const cell = (i) => entropyOf(shares.map((part) => part[i]));
  const found = Array.from({ length: height }, (_, r) => mean(row(r).map((_, c) => cell(r * width + c))));
  return { of: "rows", found };
}

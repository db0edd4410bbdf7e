// A softmax, the three scales, and how far a row of weights still moves.

const SCALES = [
  { name: "1", of: () => 1 },
  { name: "1/√dₖ", of: (d_k) => 1 / Math.sqrt(d_k) },
  { name: "1/dₖ", of: (d_k) => 1 / d_k },
];

function softmax(row) {
  const top = Math.max(...row);
  const powers = row.map((score) => Math.exp(score - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

// The largest eigenvalue of diag(p) - p pᵀ. It lies between the two largest
// weights, where the sum of p / (p - λ) passes zero, and is found by halving.
function movement(p) {
  const [top, next] = [...p].sort((a, b) => b - a);
  if (!next) return 0;
  let low = next, high = top;
  for (let turn = 0; turn < 100; turn += 1) {
    const middle = (low + high) / 2;
    if (p.reduce((sum, a) => sum + a / (a - middle), 0) > 0) high = middle;
    else low = middle;
  }
  return (low + high) / 2;
}

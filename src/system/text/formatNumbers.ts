/** @file Numbers formatted for people: scaled, grouped, as durations. */

/** Divisors and their suffixes, the largest first. */
export type Scales = readonly (readonly [unit: number, suffix: string])[];

const COUNTS: Scales = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** Three digits and the suffix of a scale; none below the smallest one. */
export function formatScaled(value: number, scales: Scales): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  // 999.5k is already 1.00M in three digits.
  const scale = scales.find(([unit]) => size >= unit * 0.9995);
  if (scale === undefined) return String(Number(value.toPrecision(3)));
  const scaled = value / scale[0];
  const digits = Math.abs(scaled) >= 99.95 ? 0 : Math.abs(scaled) >= 9.995 ? 1 : 2;
  return `${scaled.toFixed(digits)}${scale[1]}`;
}

/** Three digits and a scale: 950, 45.2k, 10.7M, 1.24B. */
export function formatCount(value: number): string {
  return formatScaled(value, COUNTS);
}

/** A whole number, its thousands in groups: 10,745,088. */
export function formatGrouped(value: number): string {
  // Not by toLocaleString, whose first call loads the tables of all languages: 50 ms, or more from a slow disk.
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** The two largest units: 42s, 3m 05s, 2h 07m, 1d 03h. */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '?';
  const total = Math.max(0, Math.round(seconds));
  const two = (value: number) => String(value).padStart(2, '0');
  if (total < 60) return `${total}s`;
  if (total < 3600) return `${Math.floor(total / 60)}m ${two(total % 60)}s`;
  if (total < 86_400) return `${Math.floor(total / 3600)}h ${two(Math.floor((total % 3600) / 60))}m`;
  return `${Math.floor(total / 86_400)}d ${two(Math.floor((total % 86_400) / 3600))}h`;
}

const SHORT: Scales = [
  [1, ' s'],
  [1e-3, ' ms'],
  [1e-6, ' µs'],
  [1e-9, ' ns'],
];

/** 23.4 ms, 4.21 s, 3m 05s; 0 s. */
export function formatSeconds(seconds: number): string {
  if (seconds === 0) return '0 s';
  return seconds < 59.95 ? formatScaled(seconds, SHORT) : formatDuration(seconds);
}

/** @file Figures of two versions as text: old, new, and how much that is more or less. */
import { formatBytes, formatCount, formatFlops } from '../format.js';
import type { CheckpointEffect, Effects } from './types.js';

/** A figure with its name, and how to write one. */
interface FigureKind {
  readonly key: keyof Omit<Effects, 'checkpoints'>;
  readonly label: string;
  readonly format: (value: number) => string;
}

/** In the order in which reports show them. */
export const figureKinds: readonly FigureKind[] = [
  { key: 'parameters', label: 'Parameters', format: formatCount },
  { key: 'flopsPerToken', label: 'Forward FLOPs per token', format: formatFlops },
  { key: 'tokensPerStep', label: 'Tokens per step', format: formatCount },
  { key: 'peakMemory', label: 'Peak memory of training', format: formatBytes },
];

/** `+3.7M, +30%` */
export function difference(old: number, now: number, format: (value: number) => string): string {
  const sign = now < old ? '−' : '+';
  const amount = `${sign}${format(Math.abs(now - old))}`;
  return old === 0 ? amount : `${amount}, ${percent(old, now)}`;
}

/** `+30%`, `−0.02%` */
export function percent(old: number, now: number): string {
  const share = Math.abs(now / old - 1) * 100;
  const digits = share >= 10 ? share.toFixed(0) : share.toPrecision(2);
  return `${now < old ? '−' : '+'}${Number(digits)}%`;
}

/** Whether checkpoints load, in a few words. */
export function checkpointText({ loads, appeared, vanished, reshaped }: CheckpointEffect): string {
  if (loads) return 'load';
  const parts = [
    [reshaped, 'reshaped'],
    [appeared, 'new'],
    [vanished, 'gone'],
  ] as const;
  return parts
    .map(([groups, word]) => [groups.reduce((sum, { count }) => sum + count, 0), word] as const)
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(', ');
}

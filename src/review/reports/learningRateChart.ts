/** @file Learning rates before and after as a Mermaid chart: numbers of the report, and no text of it. */
import { formatCount } from '../../system/text/index.js';
import { codeBlock } from '../text/reportFormat.js';
import type { LearningRateChange } from './diffReport.js';

const [grey, blue] = ['#8b949e', '#1f6feb'];

/** The chart of both curves, with a legend. */
export function learningRateChart({ old, new: now }: LearningRateChange): string {
  const steps = Math.max(old.steps, now.steps);
  const curves = [old, now].map((curve) => along(steps, curve));
  const most = Math.max(...curves.flat().map(Math.abs));
  // Mermaid reads no exponents.
  const exponent = most > 0 ? Math.max(-300, Math.floor(Math.log10(most))) : 0;
  const scaled = (rate: number): number => Number((rate / 10 ** exponent).toFixed(3));
  const lines = curves.map((rates) => `  line [${rates.map(scaled).join(', ')}]`);
  const all = curves.flat().map(scaled);
  const chart = [
    `%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "${grey}, ${blue}"}}}}%%`,
    'xychart-beta',
    `  x-axis "step" 0 --> ${steps}`,
    `  y-axis "learning rate, in 1e${exponent}" ${Math.min(0, ...all)} --> ${Math.max(...all) || 1}`,
    ...lines,
  ].join('\n');
  const described = (name: string, curve: LearningRateChange['old']) =>
    old.steps === now.steps ? name : `${name}, which ends at step ${formatCount(curve.steps)}`;
  return `Grey: ${described('before', old)}. Blue: ${described('after', now)}.\n\n${codeBlock(chart, 'mermaid')}`;
}

/** A curve over so many steps, drawn on at its last rate where it ends before. */
function along(steps: number, curve: LearningRateChange['old']): readonly number[] {
  if (steps === curve.steps) return curve.rates;
  const last = curve.rates.length - 1;
  return curve.rates.map((_, i) => {
    const at = Math.min(last, ((i / last) * steps * last) / curve.steps);
    const before = Math.floor(at);
    const rate = curve.rates[before]!;
    return rate + (at - before) * ((curve.rates[before + 1] ?? rate) - rate);
  });
}

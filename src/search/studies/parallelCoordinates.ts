/** @file Parallel coordinates of a study as SVG: a line for each trial, through its values, coloured by its reward. */
import { intervalOf, isActive, pointOf, type Space } from '../space.js';
import type { StudyTrial } from './records.js';
import { rankedTrials, shownValue } from './studyTable.js';

const WIDTH = 150;
const HEIGHT = 320;
const LEFT = 60;
const TOP = 60;

/** An axis: where a trial crosses it, from 0 at the bottom to 1; undefined where it does not. */
interface Axis {
  readonly name: string;
  readonly ticks: readonly (readonly [at: number, text: string])[];
  readonly at: (trial: StudyTrial) => number | undefined;
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function axisOf([name, domain]: [string, Space[string]]): Axis {
  if (domain.kind === 'choice') {
    const place = (i: number) => (i + 0.5) / domain.values.length;
    return {
      name,
      ticks: domain.values.map((value, i) => [place(i), shownValue(value)]),
      at: ({ values }) =>
        values[name] === undefined || !isActive(domain, values)
          ? undefined
          : place(domain.values.indexOf(values[name])),
    };
  }
  const { low, high } = intervalOf(domain);
  const place = (value: number) => (high === low ? 0.5 : (pointOf(domain, value) - low) / (high - low));
  return {
    name,
    ticks: [...new Set([domain.low, domain.high])].map((value) => [place(value), shownValue(value)]),
    at: ({ values }) => (values[name] === undefined ? undefined : place(values[name] as number)),
  };
}

/** The axis of an objective, which is the last one. */
function rewardAxis(trials: readonly StudyTrial[], objective: number, name: string): Axis {
  const rewards = trials.flatMap((trial) => trial.rewards?.[objective] ?? []);
  const [low, high] = [Math.min(...rewards), Math.max(...rewards)];
  const place = (value: number) => (high === low ? 0.5 : (value - low) / (high - low));
  return {
    name,
    ticks:
      rewards.length === 0 ? [] : [...new Set([low, high])].map((value) => [place(value), shownValue(value)]),
    at: ({ rewards: own }) => (own === undefined ? undefined : place(own[objective]!)),
  };
}

/** From grey-blue of the worst rank to orange of the best. */
function colour(share: number): string {
  const mix = (worst: number, best: number) => Math.round(worst + (best - worst) * share);
  return `rgb(${mix(120, 230)}, ${mix(140, 97)}, ${mix(180, 1)})`;
}

/** The picture. A trial's line, under the pointer, tells its number, state, reward and values. */
export function parallelCoordinates(space: Space, trials: readonly StudyTrial[]): string {
  const objectives = Math.max(1, ...trials.map(({ rewards }) => rewards?.length ?? 0));
  const axes = [
    ...Object.entries(space).map(axisOf),
    ...Array.from({ length: objectives }, (_, i) =>
      rewardAxis(trials, i, objectives === 1 ? 'reward' : `reward ${i}`),
    ),
  ];
  const x = (axis: number) => LEFT + axis * WIDTH;
  const y = (at: number) => (TOP + (1 - at) * HEIGHT).toFixed(1);
  const drawn = rankedTrials(trials)
    .filter(({ rewards }) => rewards !== undefined)
    .map((trial, i, all) => line(trial, 1 - i / Math.max(1, all.length - 1)));
  function line(trial: StudyTrial, share: number): string {
    const points = axes.flatMap((axis, i) => {
      const at = axis.at(trial);
      return at === undefined ? [] : `${x(i)},${y(at)}`;
    });
    const values = Object.entries(trial.values).map(([name, value]) => `${name}=${shownValue(value)}`);
    const title = `trial ${trial.number}: ${trial.state} ${trial.rewards!.map(shownValue).join(', ')} ${values.join(' ')}`;
    return `<polyline points="${points.join(' ')}" stroke="${colour(share)}" stroke-opacity="${(0.25 + 0.75 * share ** 3).toFixed(2)}"><title>${escaped(title)}</title></polyline>`;
  }
  const marks = axes.flatMap(({ name, ticks }, i) => [
    `<line x1="${x(i)}" y1="${y(1)}" x2="${x(i)}" y2="${y(0)}" stroke="#333"/>`,
    `<text x="${x(i)}" y="${TOP - 24}" text-anchor="middle" font-weight="bold">${escaped(short(name))}<title>${escaped(name)}</title></text>`,
    ...ticks.map(([at, text]) => `<text x="${x(i) + 6}" y="${y(at)}" dy="4">${escaped(text)}</text>`),
  ]);
  const [width, height] = [x(axes.length - 1) + 90, TOP + HEIGHT + 30];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    '<style>polyline { fill: none; stroke-width: 1.5 } polyline:hover { stroke: #000; stroke-opacity: 1; stroke-width: 3 }</style>',
    '<rect width="100%" height="100%" fill="#fff"/>',
    // The best ones are drawn last, above the others.
    ...drawn.reverse(),
    ...marks,
    '</svg>',
    '',
  ].join('\n');
}

/** The end of a long path. */
function short(name: string): string {
  return name.length <= 22 ? name : `…${name.slice(-21)}`;
}

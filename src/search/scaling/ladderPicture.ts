/** @file Losses of a ladder over FLOPs as SVG: a line for each size, and the law's beside it. */
import { lossOf, type ScalingLaw, type Training } from './scalingLaw.js';

const [WIDTH, HEIGHT, LEFT, TOP] = [640, 400, 60, 30];
/** Points of a line of the law. */
const POINTS = 40;

/** The picture. @param predicted trainings whose loss is the law's */
export function ladderPicture(
  trainings: readonly Training[],
  law: ScalingLaw,
  predicted: readonly Training[],
): string {
  const all = [...trainings, ...predicted];
  const range = (of: (training: Training) => number): [number, number] => {
    const values = all.map(of);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const margin = 0.05 * (high - low || 1);
    return [low - margin, high + margin];
  };
  const [left, right] = range(({ flops }) => Math.log10(flops));
  const [low, high] = range(({ loss }) => loss);
  const x = (flops: number) => LEFT + ((Math.log10(flops) - left) / (right - left)) * WIDTH;
  const y = (loss: number) => TOP + ((high - loss) / (high - low)) * HEIGHT;
  const point = ({ flops, loss }: Pick<Training, 'flops' | 'loss'>) =>
    `${x(flops).toFixed(1)},${y(loss).toFixed(1)}`;
  const sizes = [...new Set(trainings.map(({ parameters }) => parameters))].sort((a, b) => a - b);
  const drawn = sizes.flatMap((parameters, i) => {
    const own = trainings
      .filter((each) => each.parameters === parameters)
      .sort((a, b) => a.tokens - b.tokens);
    const share = i / Math.max(1, sizes.length - 1);
    const colour = `rgb(${Math.round(40 + 190 * share)}, ${Math.round(110 - 20 * share)}, ${Math.round(190 - 180 * share)})`;
    const [first, last] = [own[0]!, own.at(-1)!];
    const curve = Array.from({ length: POINTS }, (_, k) => {
      const tokens = first.tokens * (last.tokens / first.tokens) ** (k / (POINTS - 1));
      return point({
        flops: (first.flops / first.tokens) * tokens,
        loss: lossOf(law, { parameters, tokens }),
      });
    });
    return [
      `<polyline points="${curve.join(' ')}" fill="none" stroke="${colour}" stroke-dasharray="4 3"/>`,
      ...own.map((each) => marked(each, `fill="${colour}"`)),
    ];
  });
  function marked(each: Training, style: string): string {
    const [cx, cy] = point(each).split(',');
    const title = `${each.parameters} parameters, ${each.tokens} tokens: ${each.loss.toPrecision(5)}`;
    return `<circle cx="${cx}" cy="${cy}" r="4" ${style}><title>${title}</title></circle>`;
  }
  const powers = Array.from(
    { length: Math.floor(right) - Math.ceil(left) + 1 },
    (_, i) => Math.ceil(left) + i,
  );
  const [bottom, end] = [TOP + HEIGHT, LEFT + WIDTH];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${end + 20}" height="${bottom + 40}" font-family="sans-serif" font-size="11">`,
    '<rect width="100%" height="100%" fill="#fff"/>',
    `<path d="M${LEFT} ${TOP}V${bottom}H${end}" fill="none" stroke="#333"/>`,
    ...powers.map(
      (power) =>
        `<text x="${x(10 ** power).toFixed(1)}" y="${bottom + 16}" text-anchor="middle">1e${power}</text>`,
    ),
    `<text x="${(LEFT + end) / 2}" y="${bottom + 32}" text-anchor="middle">FLOPs of the training</text>`,
    ...[0, 0.5, 1].map((share) => {
      const loss = low + share * (high - low);
      return `<text x="${LEFT - 6}" y="${y(loss).toFixed(1)}" text-anchor="end" dy="4">${loss.toPrecision(4)}</text>`;
    }),
    ...drawn,
    ...predicted.map((each) => marked(each, 'fill="#fff" stroke="#333"')),
    '</svg>',
    '',
  ].join('\n');
}

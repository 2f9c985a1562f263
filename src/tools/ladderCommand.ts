/** @file `luthier ladder`: the law of the losses of a scaling study, and its prediction of the next size. */
import { join } from 'node:path';
import type { Analysis } from '../analysis/index.js';
import { writeWhole } from '../files/index.js';
import type { Config } from '../hparams/index.js';
import type { Training } from '../search/scaling/index.js';
import type { StudyTrial } from '../search/studies/index.js';
import { formatCount, headedTable, UsageError } from '../system/text/index.js';
import type { Command, Report } from './command.js';
import { describedStudy, svgPath } from './studyCommand.js';

type Place = Pick<Training, 'parameters' | 'tokens'>;

/** The cost of a step of a model on its data. */
interface Cost extends Pick<Analysis, 'parameters' | 'tokensPerStep' | 'flopsPerStep'> {
  readonly configs: readonly Config[];
}

const SCALES: Readonly<Record<string, number>> = { '': 1, k: 1e3, M: 1e6, G: 1e9, B: 1e9, T: 1e12 };

/** Parameters and tokens of `--at=1.2M,300M`. */
function placeOf(text: string, flag: string): Place {
  const numbers = text.split(',').map((each) => {
    const [, digits, scale = ''] = /^(\d+(?:\.\d+)?)([kMGBT]?)$/.exec(each.trim()) ?? [];
    return digits === undefined ? Number.NaN : Number(digits) * SCALES[scale]!;
  });
  const [parameters, tokens] = numbers;
  if (numbers.length === 2 && parameters! > 0 && tokens! > 0)
    return { parameters: parameters!, tokens: tokens! };
  throw new UsageError(`${flag}: expected parameters and tokens, such as 1.2M,300M; got '${text}'.`);
}

/** A trial with the cost of its training, by the record of its run. @param known costs of those before */
async function trainingOf(
  directory: string,
  { number, values, rewards }: StudyTrial,
  known: Cost[],
): Promise<Training> {
  const { trialName } = await import('../search/studies/index.js');
  const { readRunDocument } = await import('../trained/index.js');
  const { analyze } = await import('../analysis/index.js');
  const loss = -rewards![0]!;
  if (rewards!.length !== 1 || !(loss > 0)) {
    throw new UsageError(
      `${directory}: trial ${number}: expected a loss, got the reward ${rewards!.join(', ')}. The search must minimize one metric ` +
        'that is above 0, as those of ladder() do.',
    );
  }
  const run = await readRunDocument(join(directory, 'trials', trialName(number, values)));
  const { isEqual } = await import('../hparams/index.js');
  const { model, train } = run.task;
  const { numTrainSteps } = train;
  const isKnown = ({ configs }: Cost): boolean =>
    configs.length === run.datasets.length + 1 &&
    [model, ...run.datasets].every((config, i) => isEqual(config, configs[i]!));
  const found = known.find(isKnown) ?? { configs: [model, ...run.datasets], ...analyze(run) };
  if (!known.includes(found)) known.push(found);
  const { parameters, tokensPerStep, flopsPerStep } = found;
  return { parameters, tokens: tokensPerStep * numTrainSteps, flops: flopsPerStep * numTrainSteps, loss };
}

/** Distinct values of a field, the largest first. */
const distinct = (trainings: readonly Training[], of: keyof Place): number[] =>
  [...new Set(trainings.map((each) => each[of]))].sort((a, b) => b - a);

/** As much larger than the largest size as that is than the one before, with as many tokens for each parameter. */
function nextPlace(trainings: readonly Training[]): Place {
  const [largest, before] = distinct(trainings, 'parameters') as [number, number];
  const tokens = Math.max(...trainings.map((each) => (each.parameters === largest ? each.tokens : 0)));
  return { parameters: (largest * largest) / before, tokens: (tokens * largest) / before };
}

/** Trainings of the same cost for a parameter and a token. */
const flopsAt = (trainings: readonly Training[], { parameters, tokens }: Place): number => {
  const costs = trainings.map((each) => each.flops / (each.parameters * each.tokens));
  return parameters * tokens * costs.at(-1)!;
};

const percent = (share: number): string => `${share < 0 ? '-' : '+'}${(100 * Math.abs(share)).toFixed(2)} %`;
const number = (value: number): string => String(Number(value.toPrecision(4)));

export const ladderCommand: Command = {
  usage: 'DIR',
  positionals: [1, 1],
  flags: {
    at: {
      ...{ key: 'at', value: 'PARAMETERS,TOKENS', repeated: true, parse: placeOf },
      about:
        'Predicts the loss of a size and a number of tokens, such as 1.2M,300M. May be repeated. Default: the next size, as much ' +
        'larger than the largest as that is than the one before it.',
    },
    picture: {
      ...{ key: 'picture', value: 'FILE.svg', parse: svgPath },
      about: "Draws losses over FLOPs, with a line for each size and the law's beside it.",
    },
  },
  changes: false,
  details: [
    'Fits loss = E + A / parameters^alpha + B / tokens^beta (Hoffmann et al., 2022) to the trials of a study of a ladder, which',
    'luthier train --study=NAME runs. It takes three sizes and three lengths of training; with four sizes, the law of the others',
    'is tried on the largest.',
    '',
    '  npx luthier ladder out/rungs/first --picture=ladder.svg',
    '  npx luthier ladder out/rungs/first --at=10M,200M',
    '',
    'Exit codes: 0; 2 for a wrong command line, or a directory without such a study.',
  ].join('\n'),
  async run({ positionals: [directory], values }): Promise<Report> {
    const studies = await import('../search/studies/index.js');
    const scaling = await import('../search/scaling/index.js');
    const { formatFlops } = await import('../review/text/index.js');
    describedStudy(directory!, studies.readStudy);
    const ended = studies.readTrials(directory!).filter(({ rewards }) => rewards !== undefined);
    const trainings: Training[] = [];
    const known: Cost[] = [];
    for (const trial of ended) trainings.push(await trainingOf(directory!, trial, known));
    const [sizes, lengths] = [distinct(trainings, 'parameters'), distinct(trainings, 'tokens')];
    if (Math.min(sizes.length, lengths.length) < scaling.FEWEST) {
      throw new UsageError(
        `${directory}: expected trials of at least ${scaling.FEWEST} sizes and ${scaling.FEWEST} numbers of tokens; ` +
          `found ${sizes.length} and ${lengths.length} in ${ended.length} trials that have ended.`,
      );
    }
    const law = scaling.fitScalingLaw(trainings);
    const places = (values.at as readonly Place[] | undefined) ?? [nextPlace(trainings)];
    const predicted = places.map((place) => ({
      ...{ ...place, flops: flopsAt(trainings, place) },
      loss: scaling.lossOf(law, place),
    }));
    const others = trainings.filter(({ parameters }) => parameters !== sizes[0]);
    const tried = sizes.length > scaling.FEWEST ? scaling.fitScalingLaw(others) : undefined;
    const offs = trainings
      .filter(({ parameters }) => tried !== undefined && parameters === sizes[0])
      .map((each) => scaling.lossOf(tried!, each) / each.loss - 1);
    if (values.picture !== undefined)
      writeWhole(values.picture as string, scaling.ladderPicture(trainings, law, predicted));
    const powers = scaling.optimalPowers(law);
    const rows = trainings.map((each, i) => [
      ...[String(ended[i]!.number), formatCount(each.parameters), formatCount(each.tokens)],
      ...[formatFlops(each.flops), number(each.loss), percent(scaling.lossOf(law, each) / each.loss - 1)],
    ]);
    return {
      text: (paint) =>
        [
          headedTable(rows, ['trial', 'parameters', 'tokens', 'FLOPs', 'loss', 'law'], paint),
          '',
          `loss = ${number(law.E)} + ${number(law.A)} / parameters^${number(law.alpha)} + ${number(law.B)} / tokens^${number(law.beta)}`,
          `For the least loss of a number of FLOPs, parameters grow by its power of ${number(powers.parameters)}, tokens by ${number(powers.tokens)}.`,
          ...(offs.length > 0
            ? [`The law of the smaller sizes is off by ${offs.map(percent).join(', ')} for the largest.`]
            : []),
          ...predicted.map(
            ({ parameters, tokens, flops, loss }) =>
              `Predicted: ${number(loss)} with ${formatCount(parameters)} parameters, ${formatCount(tokens)} tokens, ${formatFlops(flops)}.`,
          ),
        ].join('\n'),
      json: () => ({ law, trials: trainings, largestOff: offs, predicted }),
    };
  },
};

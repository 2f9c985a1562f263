/** @file A ladder: a search whose trials are sizes of a model times lengths of training. */
import { type Config, ConfigError } from '../../hparams/index.js';
import { Sweeping } from '../algorithms/sweeping.js';
import { Search } from '../search.js';
import { SingleObjective } from '../searchRewards.js';
import type { Values } from '../space.js';

interface LadderOptions {
  /** Settings of each size, as in a space: constants of the experiment, or paths into its configs. */
  readonly sizes: readonly Values[];
  /** Settings of each length of training, such as `{ numTrainSteps: 500 }`; those of a size by a function. */
  readonly lengths: readonly Values[] | ((size: Values) => readonly Values[]);
  /** The loss, as in metrics.jsonl: `eval_test_validation/total_loss`, or its end. */
  readonly metric: string;
}

/**
 * The search of a scaling study, which an experiment's `search()` returns: each size with each of its lengths, the smallest sizes
 * first. `luthier ladder` fits the law of the losses.
 *
 * @throws ConfigError without sizes or lengths, and where two have other settings
 */
export function ladder({ sizes, lengths, metric }: LadderOptions): Config<Search> {
  const trials = sizes.flatMap((size) => {
    const own = typeof lengths === 'function' ? lengths(size) : lengths;
    return own.map((length): Values => ({ ...size, ...length }));
  });
  const [first] = trials;
  if (first === undefined) throw new ConfigError('ladder: expected at least one size with one length.');
  const names = Object.keys(first);
  for (const trial of trials) {
    const own = Object.keys(trial);
    if (own.length === names.length && own.every((name) => Object.hasOwn(first, name))) continue;
    throw new ConfigError(
      `ladder: all sizes and lengths need the same settings; one has ${own.join(', ')}, and the first ${names.join(', ')}.`,
    );
  }
  return Search.config({
    searchAlgorithm: Sweeping.config({
      combinations: [names, ...trials.map((trial) => names.map((name) => trial[name]!))],
    }),
    searchReward: SingleObjective.config({ metric, goal: 'minimize' }),
    maxNumTrials: trials.length,
  });
}

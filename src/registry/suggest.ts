/** @file Suggestions for misspelt experiment names. Imports nothing else of ours: `luthier list` starts with it. */
import { didYouMean } from '../hparams/errors.js';

/** ` Did you mean 'lm.Small'?`, also for a misspelt short name ('Smal' is near it by its last part); '' where none is near. */
export function suggestExperiment(name: string, names: readonly string[]): string {
  if (name.includes('.')) return didYouMean(name, names);
  const short = new Map(names.map((n) => [n.split('.').at(-1)!, n]));
  const found = /'(.+)'/.exec(didYouMean(name, short.keys()));
  return found ? ` Did you mean '${short.get(found[1]!)}'?` : '';
}

/** @file Name lookup and suggestions for experiments. Imports little, since `luthier list` starts with it. */
import { didYouMean, UsageError } from '../../system/text/index.js';

/** A name as Pax has it, in this project's spelling: `tasks.lm.params.lm_cloud.SmallMlp` is lmCloud.SmallMlp. */
function fromPax(name: string): string {
  const parts = name.replace(/^(?:paxml\.)?tasks\.\w+\.params\./, '').split('.');
  const camelCase = (module: string) => module.replace(/_(\w)/g, (_, next: string) => next.toUpperCase());
  return [...parts.slice(0, -1).map(camelCase), ...parts.slice(-1)].join('.');
}

/**
 * `name` itself, or the full name that ends with it after a dot; undefined if there is none. A name as Pax writes it stands for
 * ours. Of a sub-experiment, `Pair/small`, the part before the slash is looked up.
 *
 * @throws UsageError for several.
 */
export function fullNameOf(name: string, all: readonly string[]): string | undefined {
  const [whole, ...part] = name.split('/') as [string, ...string[]];
  for (const spelling of new Set([whole, fromPax(whole)])) {
    const matches = all.includes(spelling) ? [spelling] : all.filter((each) => each.endsWith(`.${spelling}`));
    if (matches.length === 1) return [matches[0], ...part].join('/');
    if (matches.length > 1)
      throw new UsageError(
        `'${name}' does not uniquely identify an experiment. Possible matches: ${matches.join(', ')}.`,
      );
  }
  return undefined;
}

/** ` Did you mean 'lm.Small'?`, by full name or last component ('Smal' is close to Small); '' without a close name. */
export function suggestExperiment(name: string, names: readonly string[]): string {
  if (name.includes('.')) return didYouMean(fromPax(name), names);
  const short = new Map(names.map((n) => [n.split('.').at(-1)!, n]));
  const found = /'(.+)'/.exec(didYouMean(name, short.keys()));
  return found ? ` Did you mean '${short.get(found[1]!)}'?` : '';
}

/** The full name behind `name`; `where` is where it was looked for. @throws UsageError for none, and for several. */
export function requiredName(name: string, all: readonly string[], where: string): string {
  const fullName = fullNameOf(name, all);
  if (fullName !== undefined) return fullName;
  throw new UsageError(
    `Could not find experiment '${name}' ${where}.${suggestExperiment(name, all)}\n` +
      `Experiments: ${all.join(', ') || 'none'}.`,
  );
}

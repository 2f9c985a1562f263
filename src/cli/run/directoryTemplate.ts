/** @file Templates of run directories: `out/{exp}/{date}_{time}`. */
// The index of hparams would load longer than a command that only shows its flags may take.
import { didYouMean, UsageError } from '../../system/text/index.js';

/** Where a run without --job_log_dir writes: started again, it resumes. */
export const defaultTemplate = 'out/{exp}';

/**
 * The directory that a template of --job_log_dir names: `{exp}` is the full name of the experiment, `{date}` and
 * `{time}` are the local date and time, 2026-11-23 and 13-45-00.
 *
 * @throws UsageError for another name in braces.
 */
export function directoryOf(template: string, exp: string, now = new Date()): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const parts: Readonly<Record<string, string>> = {
    exp,
    date: [now.getFullYear(), two(now.getMonth() + 1), two(now.getDate())].join('-'),
    time: [now.getHours(), now.getMinutes(), now.getSeconds()].map(two).join('-'),
  };
  return template.replaceAll(/\{(\w*)\}/g, (_, name: string) => {
    const part = parts[name];
    if (part !== undefined) return part;
    const names = Object.keys(parts);
    throw new UsageError(
      `--job_log_dir=${template}: no '{${name}}'.${didYouMean(name, names)} A directory's name may have {${names.join('}, {')}}.`,
    );
  });
}

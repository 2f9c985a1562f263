/** @file `luthier study`: the trials of a study as a table and a picture, and the differences between two of them. */
import { join } from 'node:path';
import { positive } from '../cli/commandLine/index.js';
import { explain, writeWhole } from '../files/index.js';
import type { StudyTrial } from '../search/studies/index.js';
import { headedTable, UsageError } from '../system/text/index.js';
import type { Command, Report } from './command.js';

/** The two trials of `--diff=3,7`. */
function pairOf(text: string, flag: string): readonly [number, number] {
  const numbers = text.split(',').map((each) => (/^\d+$/.test(each) ? Number(each) : Number.NaN));
  if (numbers.length === 2 && numbers.every(Number.isInteger)) return numbers as [number, number];
  throw new UsageError(`${flag}: expected the numbers of two trials, such as 3,7; got '${text}'.`);
}

/** The file of `--picture=study.svg`. */
export function svgPath(text: string, flag: string): string {
  if (/\.svg$/.test(text)) return text;
  throw new UsageError(`${flag}: expected the name of an SVG file, such as study.svg; got '${text}'.`);
}

/** Differences between the configs of two trials, as code reviews show them. */
async function differences(
  directory: string,
  trials: readonly StudyTrial[],
  pair: readonly [number, number],
): Promise<string> {
  const { trialName } = await import('../search/studies/index.js');
  const { readRunDocument } = await import('../trained/index.js');
  const { buildDiff, formatDiff } = await import('../hparams/index.js');
  const { makeConfigs } = await import('../experiment/index.js');
  const [old, now] = await Promise.all(
    pair.map(async (number) => {
      const trial = trials.find((each) => each.number === number);
      if (trial === undefined) throw new UsageError(`${directory} has no trial ${number}.`);
      const { task, datasets, decodeDatasets } = await readRunDocument(
        join(directory, 'trials', trialName(number, trial.values)),
      );
      return makeConfigs({ task, datasets: [...datasets], decodeDatasets: [...decodeDatasets] });
    }),
  );
  return formatDiff(buildDiff(old!, now!)) || 'The configs are equal.';
}

export const studyCommand: Command = {
  usage: 'DIR',
  positionals: [1, 1],
  flags: {
    diff: {
      ...{ key: 'diff', value: 'A,B', parse: pairOf },
      about: 'Shows how the configs of trial B differ from those of trial A.',
    },
    picture: {
      ...{ key: 'picture', value: 'FILE.svg', parse: svgPath },
      about:
        'Draws the trials as lines through their values (parallel coordinates), coloured by their reward.',
    },
    most: {
      ...{ key: 'most', value: 'N', parse: positive(true) },
      about: 'How many trials the table has. Default: 20.',
    },
  },
  changes: false,
  details: [
    'Shows the trials of a study of luthier train --study=NAME, the best first, and the importance of each parameter: how far',
    'the values of the best trials differ from those of all, as shares of 100 % (PED-ANOVA). A study may still run.',
    '',
    '  npx luthier study out/lm_small/first --picture=first.svg',
    '  npx luthier study out/lm_small/first --diff=3,7',
    '',
    'Exit codes: 0; 2 for a wrong command line, or a directory without a study.',
  ].join('\n'),
  async run({ positionals: [directory], values }): Promise<Report> {
    const studies = await import('../search/studies/index.js');
    const description = describedStudy(directory!, studies.readStudy);
    const trials = studies.readTrials(directory!);
    if (values.diff !== undefined) {
      (await import('../rooms.js')).registerLibrary();
      const text = await differences(directory!, trials, values.diff as [number, number]);
      return { text: () => text, json: () => ({ diff: text }) };
    }
    if (values.picture !== undefined)
      writeWhole(values.picture as string, studies.parallelCoordinates(description.space, trials));
    const importance = studies.importanceOf(description.space, trials);
    const ranked = studies.rankedTrials(trials);
    const { header, rows } = studies.trialRows(ranked.slice(0, (values.most as number | undefined) ?? 20));
    const shares = Array.from(importance, ([name, share]) => `${name} ${Math.round(100 * share)} %`);
    return {
      text: (paint) =>
        [
          headedTable(rows, header, paint),
          '',
          `${studies.countsText(trials)}${shares.length === 0 ? '' : ` Importance: ${shares.join(', ')}.`}`,
        ].join('\n'),
      json: () => ({ ...description, importance: Object.fromEntries(importance), trials: ranked }),
    };
  },
};

/** @throws UsageError for a directory without a study */
export function describedStudy<T>(directory: string, read: (directory: string) => T): T {
  try {
    return read(directory);
  } catch (error) {
    throw new UsageError(`${directory}: expected the directory of a study: ${explain(error)}.`);
  }
}

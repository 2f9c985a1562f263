/** @file `luthier metrics`: values of the metrics of runs, for tables, spreadsheets and scripts. */
import { resolve } from 'node:path';
import { nonEmpty } from '../cli/commandLine/index.js';
import { explain, writeWhole } from '../files/index.js';
import { showFile } from '../registry/names/index.js';
import { headedTable, UsageError } from '../system/text/index.js';
import type { Command, Report } from './command.js';
import { runsIn } from './runDirectories.js';

/** A value of a metric, and the run that it is of. */
interface Row {
  readonly run: string;
  readonly program: string;
  readonly metric: string;
  readonly step: number;
  readonly value: number;
}

const header = ['run', 'program', 'metric', 'step', 'value'] as const;
const cellsOf = (row: Row) => header.map((column) => String(row[column]));

/** `100-200`, `100-`, `-200` or `100`: the first and the last step. */
function parseSteps(text: string, flag: string): readonly [number, number] {
  const [, from, dash, to] = /^(\d*)(-?)(\d*)$/.exec(text) ?? [];
  if (from === undefined || `${from}${to}` === '')
    throw new UsageError(`${flag}=${text}: expected steps such as 100-200, 100-, -200 or 100.`);
  const last = dash === '' ? from : to;
  return [Number(from), last === '' ? Number.POSITIVE_INFINITY : Number(last)];
}

/** A field of CSV (RFC 4180). */
const csvField = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** JSON has no non-finite numbers: they are texts. */
const plain = (row: Row): object => ({
  ...row,
  value: Number.isFinite(row.value) ? row.value : String(row.value),
});

/** Writes the rows as Parquet: texts, a step of 64 bits, a value of double precision. */
async function writeParquet(path: string, rows: readonly Row[]): Promise<void> {
  const { parquetWriteBuffer } = await import('hyparquet-writer');
  const text = (name: 'run' | 'program' | 'metric') => ({
    ...{ name, type: 'STRING' as const, nullable: false },
    data: rows.map((row) => row[name]),
  });
  const columnData = [
    ...[text('run'), text('program'), text('metric')],
    { name: 'step', type: 'INT64' as const, nullable: false, data: rows.map(({ step }) => BigInt(step)) },
    { name: 'value', type: 'DOUBLE' as const, nullable: false, data: rows.map(({ value }) => value) },
  ];
  writeWhole(resolve(path), new Uint8Array(parquetWriteBuffer({ columnData })));
}

function reportOf(rows: readonly Row[], problems: readonly string[]): Report {
  return {
    text: (paint) => headedTable(rows.map(cellsOf), header, paint),
    json: () => rows.map(plain),
    further: {
      csv: () => [[...header], ...rows.map(cellsOf)].map((cells) => cells.map(csvField).join(',')).join('\n'),
      jsonl: () => rows.map((row) => JSON.stringify(plain(row))).join('\n'),
    },
    exitCode: problems.length === 0 ? 0 : 1,
  };
}

export const metricsCommand: Command = {
  usage: 'DIR…',
  positionals: [1, Number.POSITIVE_INFINITY],
  flags: {
    only: {
      ...{ key: 'only', value: 'METRICS', parse: nonEmpty },
      about:
        'PROGRAM/NAME as in metrics.jsonl, or its end, several with commas between them; * stands for any part without a ' +
        'slash: total_loss, eval_test_*/total_loss, train/*. Default: all.',
    },
    steps: {
      ...{ key: 'steps', value: 'STEPS', parse: parseSteps },
      about: '100-200, 100- (to the end), -200 (from the beginning) or 100. Default: all.',
    },
    parquet: {
      ...{ key: 'parquet', value: 'FILE', parse: nonEmpty },
      about: 'Writes the rows to a Parquet file, too.',
    },
  },
  changes: false,
  formats: ['csv', 'jsonl'],
  details: [
    'Prints a row for each value of a metric: run, program (train, eval_test_validation), metric, step, value. Runs are the',
    'job directories in each DIR, at any depth. A step that a restarted run took again counts once, with its last value.',
    'The last rows of a run, of the program run, are its wall time by use (goodput/step_sec, goodput/lost_steps_sec, …) and',
    'the share of it in which steps were taken that count (goodput/share).',
    'CSV has NaN, Infinity and -Infinity; in JSON they are texts.',
    '',
    "  npx luthier metrics out --only='eval_test_*/total_loss' --format=csv",
    '',
    'Exit codes: 0; 1 if metrics of a run are missing or broken; 2 for a wrong command line, no run, or no such metric.',
  ].join('\n'),
  async run({ positionals, values, warn }) {
    const { only, steps = [0, Number.POSITIVE_INFINITY], parquet } = values as Asked;
    const directories = runsIn(positionals);
    const [{ goodputMetrics, selectedMetrics }, { isNamed }] = await Promise.all([
      import('../runs/index.js'),
      import('../search/index.js'),
    ]);
    const names = only?.split(',');
    const selects = (metric: string) => names === undefined || names.some((name) => isNamed(metric, name));
    const problems: string[] = [];
    const attempt = <T>(file: string, read: () => readonly T[]): readonly T[] => {
      try {
        return read();
      } catch (error) {
        problems.push(`${file} cannot be read: ${explain(error)}`);
        return [];
      }
    };
    const rows = directories.flatMap((directory): Row[] => {
      const run = showFile(directory);
      const values = [
        ...attempt(`${run}: metrics.jsonl`, () => selectedMetrics(directory, { selects, steps })),
        ...attempt(`${run}: goodput.jsonl`, () =>
          goodputMetrics(directory).filter(
            ({ metric, step }) => selects(metric) && step >= steps[0] && step <= steps[1],
          ),
        ),
      ];
      return values.map(({ metric: full, step, value }) => {
        const [program, metric] = [full.split('/', 1)[0]!, full.slice(full.indexOf('/') + 1)];
        return { run, program, metric, step, value };
      });
    });
    for (const problem of problems) warn(problem);
    if (rows.length === 0 && only !== undefined && problems.length === 0)
      throw new UsageError(`--only=${only}: no run has such a metric at these steps.`);
    if (parquet !== undefined) await writeParquet(parquet, rows);
    return reportOf(rows, problems);
  },
};

/** Values of the flags. */
interface Asked {
  readonly only?: string;
  readonly steps?: readonly [number, number];
  readonly parquet?: string;
}

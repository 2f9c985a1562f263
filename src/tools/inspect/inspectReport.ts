/** @file Report of `luthier inspect` as text and JSON. */

import { counted, indented, titled } from '../../review/text/index.js';
import { formatGrouped, headedTable, type Paint, textTable, visible } from '../../system/text/index.js';
import type { Report } from '../command.js';
import type { NamedDataset } from '../datasets.js';
import { exampleLines, formatNumber } from './exampleText.js';
import type { Inspection } from './inspection.js';
import type { ShardCheck, ShardVerdict } from './shardCheck.js';
import type { TokenStatistics } from './tokenStatistics.js';

/** An inspection, with its dataset. */
export interface Inspected {
  readonly experiment: string;
  readonly dataset: Pick<NamedDataset, 'name' | 'path'>;
  readonly inspection: Inspection;
  /** Tokens of a segment that the text form shows. */
  readonly length: number;
  /** Files written, by the path of their images. */
  readonly files: Readonly<Record<string, string>>;
}

const percent = (share: number): string => `${formatNumber(Number((100 * share).toFixed(2)))} %`;

function arrayTable({ arrays }: Inspection, paint: Paint): string {
  const cell = (value: number | null) => (value === null ? '' : formatNumber(value));
  const rows = arrays.map(({ path, shape, dtype, min, max, mean }) => [
    ...[path, `[${shape.join(', ')}]`, dtype, cell(min), cell(max), cell(mean)],
  ]);
  return headedTable(rows, ['array', 'shape', 'dtype', 'min', 'max', 'mean'], paint);
}

function tokenLines(tokens: TokenStatistics, paint: Paint): string {
  const { path, positions, tokensPerRow, vocabSize, distinct, unknown, weightShare, frequent } = tokens;
  const { min, mean, max } = tokensPerRow;
  const lines: [string, string][] = [
    ['tokens', `${formatGrouped(tokens.tokens)} of ${formatGrouped(positions)} positions`],
    ['a row', min === max ? String(min) : `${min} to ${max}, mean ${formatNumber(mean)}`],
    ['segments a row', formatNumber(tokens.segmentsPerRow)],
    ['padding', percent(tokens.paddingShare)],
    ...(weightShare === null ? [] : [['weight', percent(weightShare)] as [string, string]]),
    ['ids', `${formatGrouped(distinct)}${vocabSize === null ? '' : ` of ${formatGrouped(vocabSize)}`} occur`],
    ['unknown', unknown === null ? 'the vocabulary has no such id' : formatGrouped(unknown)],
    [
      'most frequent',
      frequent
        .map(
          ({ id, share, text }) =>
            `${text === null ? id : `${JSON.stringify(text)} (${id})`} ${percent(share)}`,
        )
        .join(', '),
    ],
  ];
  return titled(
    paint('bold', `Tokens of ${path}`),
    textTable(lines.map(([name, text]) => [name, visible(text)])),
  );
}

function verdictText({ surplus, missing, isSameOrder, endTogether, skipped, error }: ShardVerdict): string {
  if (error !== undefined) return `CANNOT be read: ${error}`;
  if (skipped !== undefined) return `not compared: ${skipped}`;
  return [
    surplus === 0 ? 'disjoint' : `NOT disjoint: ${counted(surplus, 'row')} too many`,
    missing === 0 ? 'complete' : `NOT complete: ${counted(missing, 'row')} missing`,
    ...(isSameOrder ? ["in one host's order"] : surplus + missing === 0 ? ['in another order'] : []),
    ...(endTogether ? [] : ['NOT ending together']),
  ].join(', ');
}

function shardLines(check: ShardCheck, paint: Paint): string {
  const { batches, rows, isWhole, repeated, verdicts } = check;
  const of = `${counted(batches, 'batch', 'batches')} of one host, ${counted(rows, 'row')}`;
  const lines = verdicts.map((verdict) => [`${verdict.hosts} hosts`, verdictText(verdict)]);
  const twice =
    repeated === 0
      ? []
      : [`One host repeats ${counted(repeated, 'row')}: a later epoch, or duplicates in the data.`];
  const table = textTable(lines, undefined, (line) =>
    /\b(CAN)?NOT\b/.test(line) ? paint('red', line) : line,
  );
  return titled(paint('bold', `Shards, against ${of}${isWhole ? ': all the data' : ''}`), table, ...twice);
}

function heading({ experiment, dataset, inspection }: Inspected): string {
  const { input, isTraining, isEndless, batchSize, batchPaddingSize, batches, isWhole } = inspection;
  const padding = batchPaddingSize === 0 ? '' : ` (programs get ${batchPaddingSize} of padding more)`;
  const end = isEndless ? ' of endless data' : isWhole ? ', all the data' : ', the first of the data';
  return [
    `${experiment}, dataset '${dataset.name}' (${dataset.path}): ${input}${isTraining ? ' for training' : ''}`,
    `${counted(batches, 'batch', 'batches')} of ${counted(batchSize, 'row')}${padding}${end}`,
  ].join('\n');
}

/** Labels in the layout of the grid. */
function labelRows(labels: readonly string[], columns: number): string {
  const rows = Array.from({ length: Math.ceil(labels.length / columns) }, (_, row) =>
    labels.slice(row * columns, (row + 1) * columns),
  );
  return indented(textTable(rows), '  ');
}

function pictureLines({ inspection, files }: Inspected): string[] {
  return [...inspection.pictures].map(([path, { columns, images, range, labels, labelNames }]) => {
    const [black, white] = range.map(formatNumber);
    const scale = black === '0' && white === '1' ? '' : `; black is ${black}, white ${white}`;
    const line = `Wrote ${files[path]}: ${counted(images, 'image')} of ${path}, ${columns} in a row${scale}`;
    return labels.length === 0
      ? line
      : `${line}; labels:\n${labelRows(labelNames ?? labels.map(String), columns)}`;
  });
}

function textOf(inspected: Inspected, paint: Paint): string {
  const { inspection, length } = inspected;
  return [
    heading(inspected),
    arrayTable(inspection, paint),
    ...inspection.tokens.map((tokens) => tokenLines(tokens, paint)),
    ...exampleLines(inspection.examples, length, paint),
    ...pictureLines(inspected),
    ...(inspection.shards === null ? [] : [shardLines(inspection.shards, paint)]),
    ...inspection.problems.map((line) => paint('red', line)),
  ].join('\n\n');
}

/** The report on a dataset; exit code 1 where a check fails. Its JSON has whole rows of ids. */
export function inspectReport(inspected: Inspected): Report {
  const { experiment, dataset, inspection, files } = inspected;
  const pictures = [...inspection.pictures].map(([path, { png: _, ...picture }]) => {
    return { path, file: files[path]!, ...picture };
  });
  const holds = inspection.problems.length === 0 && inspection.shards?.holds !== false;
  return {
    text: (paint) => textOf(inspected, paint),
    json: () => ({ experiment, dataset: dataset.name, path: dataset.path, ...inspection, pictures }),
    exitCode: holds ? 0 : 1,
  };
}

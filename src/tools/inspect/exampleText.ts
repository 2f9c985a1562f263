/** @file Examples for terminals: text and ids in a colour for each segment, dimmed if they have no weight. */
import { counted, titled } from '../../review/text/index.js';
import { headedTable, type Paint, visible, visibleLines } from '../../system/text/index.js';
import type { Example, ShownSegment, ShownValues } from './examples.js';

/** Neighbouring segments have different ones. */
const COLOURS = ['cyan', 'yellow', 'green', 'magenta'] as const;

/** Ids on a line. */
const IDS_A_LINE = 24;

/** Six digits, without trailing zeros. */
export function formatNumber(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** Lines of ids, those whose label has no weight dimmed. */
function idLines({ ids, weights }: ShownSegment, length: number, paint: Paint): string {
  const words = ids
    .slice(0, length)
    .map((id, t) => (weights === null || weights[t]! > 0 ? String(id) : paint('dim', String(id))));
  const lines: string[] = [];
  for (let i = 0; i < words.length; i += IDS_A_LINE) lines.push(words.slice(i, i + IDS_A_LINE).join(' '));
  const left = ids.length - words.length;
  return left > 0 ? `${lines.join('\n')}\n… ${left} more` : lines.join('\n');
}

/** A text whose first characters are as many as the ids that are shown, at most. */
function shortened(text: string, { ids }: ShownSegment, length: number): string {
  const characters = [...visibleLines(text)];
  const share = Math.ceil((characters.length * Math.min(length, ids.length)) / Math.max(1, ids.length));
  return share < characters.length ? `${characters.slice(0, share).join('')} …` : characters.join('');
}

/** `name  first line`, with the following lines below the first. */
function entry(name: string, text: string): string {
  const [first = '', ...rest] = text.split('\n');
  return [`${name.padEnd(8)}${first}`, ...rest.map((line) => `${' '.repeat(8)}${line}`)]
    .map((line) => line.trimEnd())
    .join('\n');
}

function segmentLines(segment: ShownSegment, index: number, length: number, paint: Paint): string {
  const { ids, start, weights, text, target } = segment;
  const colour = COLOURS[index % COLOURS.length]!;
  const coloured = (shown: string) =>
    shortened(shown, segment, length)
      .split('\n')
      .map((line) => paint(colour, line))
      .join('\n');
  const weight = weights?.reduce((sum, each) => sum + each, 0);
  const title =
    `segment ${segment.segment}: positions ${start} to ${start + ids.length - 1}` +
    (weight === undefined ? '' : `, weight ${formatNumber(weight)} of ${ids.length}`);
  const lines = [
    entry('ids', idLines(segment, length, paint)),
    ...(text === null ? [] : [entry('text', coloured(text))]),
    ...(target === null ? [] : [entry('target', coloured(target))]),
  ];
  return titled(paint(colour, title), ...lines);
}

function valueText({ first, size, names }: ShownValues): string {
  const shown = first
    .map((value, i) => (names === null ? formatNumber(value) : `${value} (${visible(names[i]!)})`))
    .join(' ');
  return size > first.length ? `${shown} … ${size - first.length} more` : shown;
}

/** The values of all examples, a column for each array. */
function valueTable(examples: readonly Example[], paint: Paint): string[] {
  const paths = Object.keys(examples[0]?.values ?? {});
  if (paths.length === 0) return [];
  const rows = examples.map(({ batch, row, values }) => [
    ...[String(batch), String(row)],
    ...paths.map((path) => valueText(values[path]!)),
  ]);
  const header = ['batch', 'row', ...paths];
  return [headedTable(rows, header, paint)];
}

/** A block for the sequences of each example, and one for the other values of all. @param length tokens of a segment */
export function exampleLines(examples: readonly Example[], length: number, paint: Paint): string[] {
  const blocks = examples.flatMap(({ batch, row, sequences }) =>
    Object.entries(sequences).map(([path, segments]) => {
      const tokens = segments.reduce((sum, { ids }) => sum + ids.length, 0);
      const title = `Batch ${batch}, row ${row}: ${counted(tokens, 'token')} of ${path} in ${counted(segments.length, 'segment')}`;
      const lines = segments.map((segment, i) => segmentLines(segment, i, length, paint));
      return titled(paint('bold', title), ...lines);
    }),
  );
  return [...blocks, ...valueTable(examples, paint)];
}

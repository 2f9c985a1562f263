/** @file Report of `luthier list` as text and JSON. */
import {
  type FoundExperiment,
  type OwnConstant,
  showFile,
  suggestExperiment,
  type UnclassifiedExport,
} from '../../registry/names/index.js';
import { counted, indented } from '../../review/text/index.js';
import { formatCount, type Paint } from '../../system/text/index.js';
import type { Report } from '../command.js';
import type { Built } from './buildAll.js';

/** Request of the command. */
export interface ListRequest {
  readonly pattern: string | undefined;
  readonly directories: readonly string[];
  /** Exports that may be experiments. */
  readonly unclassified: readonly UnclassifiedExport[];
  /** All names that the pattern was matched against. */
  readonly names: readonly string[];
  /** Build results, if requested. */
  readonly built: ReadonlyMap<FoundExperiment, Built> | undefined;
}

/** Longer values are truncated in text; JSON has them in full. */
const longestValue = 60;
const lineWidth = 100;

function placeOf({ place }: Pick<FoundExperiment, 'place'>): string {
  return `${showFile(place.file)}:${place.line}`;
}

const shortened = (text: string): string =>
  text.length <= longestValue ? text : `${text.slice(0, longestValue - 1)}…`;

/** `numLayers = 4` for a value set by the class, `dataPath: z.string()` for a declared constant. */
function constantText({ name, kind, text }: OwnConstant): string {
  const value = shortened(text.replace(/\s+/g, ' '));
  return kind === 'set' ? `${name} = ${value}` : `${name}: ${value}`;
}

/** Wraps items to lines of limited width. */
function wrapped(items: readonly string[], indent: string): string[] {
  const lines: string[] = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last === undefined || last.length + item.length + 2 > lineWidth) lines.push(indent + item);
    else lines[lines.length - 1] = `${last}, ${item}`;
  }
  return lines.map((line, i) => (i < lines.length - 1 ? `${line},` : line));
}

/** Describes a build. */
function buildText({ parameters, problems }: Built): string {
  if (problems.length > 0) return problems.join('\n');
  return parameters === undefined ? '' : `${formatCount(parameters)} parameters`;
}

function textOf(found: FoundExperiment, built: Built | undefined, paint: Paint): string {
  const kind = found.abstract ? 'abstract, ' : found.isLoaded ? 'found by loading, ' : '';
  const head = [
    paint('bold', found.name),
    paint('cyan', placeOf(found)),
    paint('dim', `${kind}extends ${found.base}`),
  ].join('  ');
  const description = found.description === '' ? [] : [`  ${found.description}`];
  const constants = wrapped(found.constants.map(constantText), '    ');
  const made =
    built && paint(built.problems.length > 0 ? 'yellow' : 'green', indented(buildText(built), '  '));
  return [head, ...description, ...constants, ...(made === undefined ? [] : [made])].join('\n');
}

function summary(experiments: readonly FoundExperiment[]): string {
  const families = experiments.filter(({ abstract }) => abstract).length;
  const files = new Set(experiments.map(({ file }) => file)).size;
  const kinds = families === 0 ? '' : `, ${families} of them abstract,`;
  return `${counted(experiments.length, 'experiment')}${kinds} in ${counted(files, 'file')}.`;
}

/** Says what source text does not tell. */
function openText({ unclassified, built }: ListRequest): string[] {
  if (unclassified.length === 0) return [];
  const lines = unclassified.map((each) => {
    const text = each.text === '' ? '' : `  ${shortened(each.text)}`;
    return `  ${each.name}  ${placeOf(each)}${text}`;
  });
  const more = built === undefined ? '; npx luthier list --build loads them' : '';
  return [`Perhaps experiments, which source text does not tell${more}:\n${lines.join('\n')}`];
}

function nothing({ pattern, directories, names }: ListRequest): string {
  const where = directories.map(showFile).join(' and ');
  if (pattern === undefined || names.length === 0) return `There is no experiment in ${where}.`;
  return `No experiment of ${where} matches '${pattern}'.${suggestExperiment(pattern, names)}`;
}

function documentOf(found: FoundExperiment, built: Built | undefined): object {
  const { name, place, base, abstract, description, constants } = found;
  return {
    name,
    file: showFile(place.file),
    line: place.line,
    base,
    abstract,
    description,
    constants,
    ...(found.isLoaded && { foundByLoading: true }),
    ...built,
  };
}

/** Report on experiments, from their source text. */
export function listReport(experiments: readonly FoundExperiment[], asked: ListRequest): Report {
  const none = experiments.length === 0;
  const built = (found: FoundExperiment): Built | undefined => asked.built?.get(found);
  const { unclassified } = asked;
  return {
    text: (paint) =>
      [
        ...(none && unclassified.length > 0 ? [] : none ? [nothing(asked)] : []),
        ...experiments.map((found) => textOf(found, built(found), paint)),
        ...(none ? [] : [summary(experiments)]),
        ...openText(asked),
      ].join('\n\n'),
    json: () => ({
      experiments: experiments.map((found) => documentOf(found, built(found))),
      ...(unclassified.length > 0 && {
        unclassified: unclassified.map(({ name, place, text }) => ({
          ...{ name, file: showFile(place.file), line: place.line, text },
        })),
      }),
    }),
    exitCode: none && unclassified.length === 0 ? 1 : 0,
  };
}

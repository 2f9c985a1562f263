/**
 * @file Mutants of a source file: StrykerJS's and slips of engineers. StrykerJS's own runner does not serve here: it asks
 * in one process, sees no code that tests start in others, and its first run takes the whole suite.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { type Change, slipsIn } from './slips.js';

/** A planted bug. */
export interface Mutant extends Change {
  /** Path from the root of the repository. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** Text in the place of which it stands. */
  readonly original: string;
}

const silent = Object.assign(() => undefined, { isDebugEnabled: () => false });
type Logger = ConstructorParameters<typeof Instrumenter>[0];
const logger = new Proxy({} as Logger, {
  get: (_, name) => (/^is\w+Enabled$/.test(String(name)) ? () => false : silent),
});

/** Texts of messages are for readers of reviews; a text without a space is a name, on which something depends. */
const isProse = ({ kind, original }: Mutant): boolean =>
  kind === 'StringLiteral' && / |^['"`]{2}$/.test(original);

async function strykerChanges(
  name: string,
  content: string,
  offset: (line: number, column: number) => number,
) {
  const instrumenter = new Instrumenter(logger);
  const { mutants } = await instrumenter.instrument([{ name, content, mutate: true }], {
    ignorers: [],
    excludedMutations: [],
    plugins: null,
  });
  return mutants.map(
    ({ mutatorName, location: { start, end }, replacement }): Change => ({
      kind: mutatorName,
      start: offset(start.line, start.column),
      end: offset(end.line, end.column),
      replacement,
    }),
  );
}

/** All mutants of a TypeScript file. */
export async function mutantsOf(root: string, file: string): Promise<Mutant[]> {
  const content = readFileSync(join(root, file), 'utf8');
  const starts = [0, ...[...content.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const changes = [
    ...(await strykerChanges(file, content, (line, column) => starts[line]! + column)),
    ...slipsIn(file, content),
  ];
  return changes
    .map((change): Mutant => {
      const line = starts.findLastIndex((start) => start <= change.start);
      const original = content.slice(change.start, change.end);
      return { ...change, file, original, line: line + 1, column: change.start - starts[line]! + 1 };
    })
    .filter((mutant) => mutant.original !== mutant.replacement && !isProse(mutant));
}

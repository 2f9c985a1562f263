/** @file Places of fields in reviews: in the class, in records that it shares with others, in other versions' files. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { infoOf } from '../../../src/hparams/fields/fields.js';
import { Configurable, lineageOf } from '../../../src/hparams/index.js';
import { SeqioInput } from '../../../src/inputs/index.js';
import { DeclaredPlaces } from '../../../src/review/changes/declaredPlaces.js';
import type { ExperimentDocument } from '../../../src/review/versions/protocol.js';
import type { Tree } from '../../../src/review/versions/versionTree.js';
import { rooms } from '../../../src/rooms.js';
import { temporaryDirectory } from '../../command.js';

type Lineage = readonly { readonly name: string; readonly file: string }[];

/** An experiment of which nothing is known but the lineage of a class. */
const documentOf = (name: string, lineage: Lineage) =>
  ({ config: { classes: { [name]: { lineage } } }, constants: [] }) as unknown as ExperimentDocument;

function treeOf(files: Readonly<Record<string, string>>): Tree {
  const root = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return { root, project: root, library: root };
}

const versions = (shared: string): Readonly<Record<string, string>> => ({
  'experiments/own.ts': `
import { both as two } from './fields/index.js';
import * as more from './fields/index.js';
const own = { a: 1, c: 0 };
export class Base extends Configurable.with({ base: 0 }) {}
export class Own extends Base.with(own).with({
  ...two,
  c: 3, }) {}
`,
  'experiments/fields/index.ts': `export * from './shared.js';`,
  'experiments/fields/shared.ts': shared,
});

test('fields of records that classes share have their places, in the files of their version', () => {
  const home = treeOf(versions('export const one = { d: 4 };\nexport const both = { ...one, e: 5 };\n'));
  const old = treeOf(versions('\n\nexport const both = {\n  d: 4, ...both };\n'));
  const document = documentOf('Own', [
    { name: 'Own', file: join(home.root, 'experiments/own.ts') },
    { name: 'Base', file: join(home.root, 'experiments/own.ts') },
  ]);
  const placesIn = (tree: Tree) => {
    const places = new DeclaredPlaces(tree, home);
    return ['a', 'c', 'd', 'e', 'base', 'none'].map((name) => places.ofField(document, 'Own', name));
  };
  const file = 'experiments/own.ts';
  const shared = 'experiments/fields/shared.ts';
  expect(placesIn(home)).toEqual([
    `${file}:4`,
    `${file}:8`,
    `${shared}:1`,
    `${shared}:2`,
    `${file}:5`,
    undefined,
  ]);
  expect(placesIn(old)).toEqual([`${file}:4`, `${file}:8`, `${shared}:4`, undefined, `${file}:5`, undefined]);
});

test('every field of the library has a place, on a line with its name', () => {
  const root = join(import.meta.dirname, '../../..');
  const tree = { root, project: root, library: root };
  const places = new DeclaredPlaces(tree, tree);
  const classes = new Set(Object.values(rooms).flatMap((room) => Object.values(room as object)));
  const lines = new Map<string, readonly string[]>();
  const lineAt = (place: string | undefined): string => {
    const [file = '', line] = place?.split(':') ?? [];
    if (place !== undefined && !lines.has(file))
      lines.set(file, readFileSync(join(root, file), 'utf8').split('\n'));
    return lines.get(file)?.[Number(line) - 1] ?? '';
  };
  const placeOf = (cls: Function, name: string) =>
    places.ofField(documentOf(cls.name, lineageOf(cls)), cls.name, name);
  const wrong: string[] = [];
  let count = 0;
  for (const cls of classes) {
    if (typeof cls !== 'function' || !(cls.prototype instanceof Configurable)) continue;
    for (const name of infoOf(cls).fields.keys()) {
      const place = placeOf(cls, name);
      if (!lineAt(place).includes(name)) wrong.push(`${cls.name}.${name} ${place}`);
      count++;
    }
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(500);
  expect(placeOf(SeqioInput, 'numLanes')).toMatch(/^src\/inputs\/seqio\/seqioFields\.ts:\d+$/);
  expect(placeOf(SeqioInput, 'batchSize')).toMatch(/^src\/inputs\/baseInput\.ts:\d+$/);
});

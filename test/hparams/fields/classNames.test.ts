/** @file Two classes of one name in one process: documents, printouts, diffs and flags keep them apart. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { formatDiff } from '../../../src/hparams/diff/formatDiff.js';
import {
  build,
  buildDiff,
  Configurable,
  checkSerializable,
  codegen,
  configFromString,
  configToString,
  fromJSON,
  fromYAML,
  instance,
  isEqual,
  loadConfigFile,
  print,
  registerAlias,
  saveConfigFile,
  setPath,
  sub,
  toJSON,
  toYAML,
} from '../../../src/hparams/index.js';
import { Linear as LayerLinear } from '../../../src/layers/index.js';
import * as first from './twins/first.js';
import * as second from './twins/second.js';

const modules = 'test/hparams/fields/twins';
const folder = mkdtempSync(join(tmpdir(), 'luthier-names-'));
afterAll(() => rmSync(folder, { recursive: true }));

class Pair extends Configurable.with({
  a: instance(first.Twin),
  b: instance(second.Twin),
  f: z.unknown(),
  g: z.unknown(),
}) {}

const pair = () =>
  Pair.config({
    a: first.Twin.config({ size: 2 }),
    b: second.Twin.config({ size: 3 }),
    f: first.scale.config({ by: 5 }),
    g: second.scale.config({ by: 5 }),
  });

test('both are built, and printed by their modules', () => {
  const built = build(pair());
  expect([built.hp.a, built.hp.b].map((each) => each.constructor)).toEqual([first.Twin, second.Twin]);
  expect(print(pair())).toBe(`<root> : Pair
a : ${modules}/first.Twin
a.size : 2
b : ${modules}/second.Twin
b.size : 3
f : ${modules}/first.scale
f.by : 5
g : ${modules}/second.scale
g.by : 5`);
});

test('documents of every form lead back to the same classes', () => {
  const config = pair();
  expect(toJSON(config).configs.map((each) => each.class)).toEqual([
    `${modules}/first.Twin`,
    `${modules}/second.Twin`,
    `${modules}/first.scale`,
    `${modules}/second.scale`,
    'Pair',
  ]);
  expect(toYAML(config)).toContain(`$class: ${modules}/second.Twin\n`);
  expect(isEqual(fromJSON(JSON.stringify(toJSON(config))), config)).toBe(true);
  expect(isEqual(fromYAML(toYAML(config)), config)).toBe(true);
  expect(isEqual(configFromString(configToString(config)), config)).toBe(true);
  checkSerializable(config);
  for (const name of ['pair.json', 'pair.yaml']) {
    const file = join(folder, name);
    saveConfigFile(config, file);
    expect(readFileSync(file, 'utf8')).toContain(`${modules}/first.Twin`);
    expect(isEqual(loadConfigFile(file), config)).toBe(true);
  }
});

test('a short name that several classes have is refused, with the names to write', () => {
  const problem =
    `There are 2 classes called 'Twin': ${modules}/first.Twin, ${modules}/second.Twin. ` +
    'Write one of these names, or choose one by the option { classes: [Twin] }.';
  expect(() => fromYAML('format: luthier-config\nversion: 1\nroot: {$class: Twin}')).toThrow(problem);
  expect(
    fromYAML('format: luthier-config\nversion: 1\nroot: {$class: Twin}', { classes: [first.Twin] }),
  ).toEqual(first.Twin.config());
  class Any extends Configurable.with({ part: sub(Configurable, null) }) {}
  expect(() => setPath(Any.config(), 'part', 'Twin')).toThrow(problem);
});

test('a qualified name that no class has suggests the one that was perhaps meant', () => {
  expect(() => fromYAML('format: luthier-config\nversion: 1\nroot: {$class: twins/first.Twin}')).toThrow(
    /No class 'twins\/first\.Twin' is known\./,
  );
  expect(() => fromYAML(`format: luthier-config\nversion: 1\nroot: {$class: ${modules}/frst.Twin}`)).toThrow(
    `No class '${modules}/frst.Twin' is known. Did you mean '${modules}/first.Twin'?`,
  );
});

test("a short name means the library's class, whatever a program declares later", () => {
  expect(toJSON(second.Linear.config({ inputDims: 1, outputDims: 1 })).configs[0]!.class).toBe(
    `${modules}/second.Linear`,
  );
  expect(toJSON(LayerLinear.config()).configs[0]!.class).toBe('Linear');
  expect(fromYAML('format: luthier-config\nversion: 1\nroot: {$class: Linear}')).toEqual(
    LayerLinear.config(),
  );
  expect(fromYAML('format: luthier-config\nversion: 1\nroot: {$class: layers.Linear}')).toEqual(
    LayerLinear.config(),
  );
});

test('where a field takes only one of them, a short name is clear', () => {
  class Holder extends Configurable.with({ twin: sub(second.Twin, null) }) {}
  const holder = Holder.config();
  setPath(holder, 'twin', 'Twin');
  expect(isEqual(holder.twin, second.Twin.config())).toBe(true);
  setPath(holder, 'twin', `${modules}/second.Twin`);
  expect(isEqual(holder.twin, second.Twin.config())).toBe(true);
});

test('a diff between the two names both', () => {
  class Holder extends Configurable.with({ twin: z.unknown() }) {}
  const diff = buildDiff(
    Holder.config({ twin: first.Twin.config({ size: 2 }) }),
    Holder.config({ twin: second.Twin.config({ size: 2 }) }),
  );
  expect(formatDiff(diff)).toBe(`twin : class ${modules}/first.Twin → ${modules}/second.Twin`);
});

test('generated code imports each under a name of its own', () => {
  const code = codegen(pair(), {
    modules: { './first.js': first, './second.js': second, './pair.js': { Pair } },
  });
  expect(code).toContain("import { scale, Twin } from './first.js';");
  expect(code).toContain("import { scale as scaleClass, Twin as TwinClass } from './second.js';");
});

test('an alias says which of them the short name means', () => {
  registerAlias('Twin', second.Twin);
  expect(fromYAML('format: luthier-config\nversion: 1\nroot: {$class: Twin}')).toEqual(second.Twin.config());
  expect(toJSON(second.Twin.config()).configs[0]!.class).toBe('Twin');
  expect(() => registerAlias('Twin', first.Twin)).toThrow(
    "registerAlias('Twin', Twin): the name belongs to Twin.",
  );
});

/**
 * @file The guide's pages of layers: every layer that `luthier/layers` exports has a section with its formula, its source and
 * a config, whose printed tree stands below it. `UPDATE_LAYER_PAGES=1 npx vitest run test/docs/layerPages.test.ts` writes the
 * trees.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import * as layers from '../../src/layers/index.js';
import { allSections, folder, layerOf, pages, sectionsOf } from './layerSections.js';

for (const page of pages) {
  test(`docs/guide/layers/${page} shows the layers as they are`, () => {
    const path = join(folder, page);
    const before = readFileSync(path, 'utf8');
    const sections = sectionsOf(before);
    const headings = [...before.matchAll(/^### `(\w+)`/gm)].map(([, name]) => name);
    expect(sections.map(({ name }) => name)).toEqual(headings);
    let after = before;
    for (const section of sections) {
      const layer = layerOf(section);
      expect(layer.constructor.name).toBe(section.name);
      expect(section.text, `${section.name} says where it comes from`).toMatch(/^Source: .+/m);
      const shown = `\`\`\`ts\n${section.code}\`\`\`\n\n\`\`\`text\n`;
      after = after.replace(
        `${shown}${section.tree}\`\`\``,
        () => `${shown}${layers.layerTree(layer)}\n\`\`\``,
      );
    }
    if (process.env.UPDATE_LAYER_PAGES) writeFileSync(path, after);
    else expect(before).toBe(after);
  });
}

test('every layer has its section, in one page', () => {
  const shown = allSections().map(({ name }) => name);
  const isLayer = (value: unknown): value is typeof layers.BaseLayer =>
    typeof value === 'function' && value.prototype instanceof layers.BaseLayer;
  const exported = Object.values(layers)
    .filter(isLayer)
    .filter((cls) => !(Object.hasOwn(cls, 'isAbstract') && cls.isAbstract))
    .map(({ name }) => name);
  expect([...new Set(exported)].filter((name) => !shown.includes(name))).toEqual([]);
  expect(shown.filter((name, i) => shown.indexOf(name) !== i || !exported.includes(name))).toEqual([]);
});

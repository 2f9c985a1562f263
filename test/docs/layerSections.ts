/** @file Sections of the guide's pages of layers, and the layers that their configs build. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Config, deepCopy } from '../../src/hparams/index.js';
import * as layers from '../../src/layers/index.js';
import { root } from './pages.js';

export const folder = join(root, 'docs/guide/layers');
export const pages = readdirSync(folder).filter((name) => name.endsWith('.md'));

/** Sections of a page: a heading "### `Name`", then text, a `ts` block with a config and a `text` block with its tree. */
const SECTION = /^### `(\w+)`\n\n([\s\S]*?)^```ts\n([\s\S]*?)^```\n\n^```text\n([\s\S]*?)^```$/gm;

export interface Section {
  readonly name: string;
  readonly text: string;
  readonly code: string;
  readonly tree: string;
}

export const sectionsOf = (page: string): Section[] =>
  [...page.matchAll(SECTION)].map(([, name, text, code, tree]) => ({
    name: name!,
    text: text!,
    code: code!,
    tree: tree!,
  }));

/** Sections of all pages. */
export const allSections = (): Section[] =>
  pages.flatMap((page) => sectionsOf(readFileSync(join(folder, page), 'utf8')));

/** The layer of a section's config, an expression over the exports of `luthier/layers`. */
export function layerOf({ code }: Section): layers.BaseLayer {
  const scope = { ...layers, deepCopy };
  const make = new Function(...Object.keys(scope), `return (${code.trim().replace(/;$/, '')});`);
  return build(make(...Object.values(scope)) as Config<layers.BaseLayer>);
}

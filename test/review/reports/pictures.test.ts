/** @file Pictures of what changed in configs: SVG files whose texts stay text. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drawDiff } from '../../../src/review/reports/pictures.js';
import type { JsonValue, MadeExperiment } from '../../../src/review/versions/protocol.js';
import { temporaryDirectory } from '../../command.js';

function made(name: string, values: Readonly<Record<string, JsonValue>>): MadeExperiment {
  const config = { class: 'Model', values, defaults: [], places: {} };
  return {
    name,
    constants: [],
    formerConstants: {},
    config: { root: { $config: 0 }, configs: [config], classes: {} },
  };
}

test('a picture for an experiment, in a folder that is made for it', async () => {
  const folder = join(temporaryDirectory(), 'review/pictures');
  const old = made('lm.Small', { numHeads: 4, activation: { $text: 'x => x' } });
  await drawDiff(folder, old, made('lm.Small', { numHeads: 8, activation: { $text: 'x => -x' } }));
  expect(readdirSync(folder)).toEqual(['lm.Small.svg']);
  const texts = [
    ...readFileSync(join(folder, 'lm.Small.svg'), 'utf8').matchAll(/<text[^>]*>([^<]*)<\/text>/g),
  ];
  const shown = texts.map(([, text]) => text!.replaceAll('&#160;', ' '));
  expect(shown).toEqual([
    'Model',
    'numHeads',
    '4',
    '→',
    '8',
    'activation',
    'a x =&gt; x',
    '→',
    'a x =&gt; &#45;x',
  ]);
});

test('hostile names and values make no markup, and no file elsewhere', async () => {
  const folder = temporaryDirectory();
  const hostile = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    ']]></text><a href="https://evil.example">',
    '&lt;b&gt; &amp; \\N \\" \u0000\u202e`|`',
    'x'.repeat(5000),
  ];
  const values = (add: string) =>
    Object.fromEntries(hostile.map((text, i) => [`field${i}`, text + add] as const));
  await drawDiff(
    folder,
    made('../../lm', values('')),
    made('../../lm', { ...values('!'), inner: { '<b>': { $text: '<i>' } } }),
  );
  expect(readdirSync(folder)).toEqual(['..%2F..%2Flm.svg']);
  const svg = readFileSync(join(folder, '..%2F..%2Flm.svg'), 'utf8');
  const elements = new Set([...svg.matchAll(/<\/?([^\s/>]+)/g)].map(([, name]) => name));
  const drawn = ['?xml', '!DOCTYPE', '!--', 'svg', 'g', 'title', 'polygon', 'polyline', 'path', 'text', 'a'];
  expect([...elements].filter((name) => !drawn.includes(name!))).toEqual([]);
  const tags = svg.match(/<[^>]*>/g)!.join('\n');
  expect(tags.replace(/"[^"]*"/g, '')).not.toMatch(/\shref=|:href=|\son\w+=/);
  expect(svg).toContain('&lt;script&gt;');
});

/** @file Documents that are very large, very deep or malicious, read by real processes from real files. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { longTest } from '../../longTest.js';
import { typescript } from '../../typescriptEnvironment.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'config-limits-'));
const script = join(folder, 'read.mts');
writeFileSync(
  script,
  `import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
import { Configurable, ConfigError, loadConfigFile } from ${JSON.stringify(
    pathToFileURL(join(root, 'src/hparams/index.ts')).href,
  )};
class Small extends Configurable.with({ v: z.any().optional() }) {}
const say = (text: string) => console.log(JSON.stringify(text));
const hasRoot = process.argv[2] === 'root';
Small.config();
for (const file of process.argv.slice(3)) {
  const options = hasRoot ? { root: Small.config() } : {};
  try {
    const made = loadConfigFile(file, options) as { v?: unknown };
    say(\`loaded \${Array.isArray(made) ? made.length : typeof made.v === 'string' ? made.v.length : typeof made.v}\`);
  } catch (error) {
    say(\`\${error instanceof ConfigError ? 'ConfigError' : error} \${(error as Error).message}\`);
  }
}
`,
);

type Kind = 'documents' | 'root';

/**
 * What a process says about files, by their names: documents of their own, or values of a config. It must end by itself,
 * in bounded memory.
 */
function readAll(kind: Kind, texts: readonly (readonly [name: string, text: string | Buffer])[]): string[] {
  const files = texts.map(([name, text], i) => {
    const file = join(folder, `${i}-${name}`);
    writeFileSync(file, text);
    return file;
  });
  const args = ['--max-old-space-size=3000', '--import', typescript, script, kind, ...files];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  const said = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as string);
  expect(said).toHaveLength(texts.length);
  return said.map((line, i) => line.replaceAll(files[i]!, 'FILE'));
}

const document = (rest: string): string => `{"format":"luthier-config","version":1,${rest}}`;
const nested = (open: string, close: string, depth: number): string =>
  open.repeat(depth) + close.repeat(depth);

longTest(
  '50 MB, and 100,000 configs, load where they are a document, and are refused where they are not',
  () => {
    const long = 'x'.repeat(50e6);
    const entry = `{"class":"Small","values":{"v":"${long}"}}`;
    const entries = '{"class":"Small","values":{}},'.repeat(100_000).slice(0, -1);
    const refs = Array.from({ length: 100_000 }, (_, i) => `{"$config":${i}}`).join();
    const said = readAll('documents', [
      ['large.json', document(`"root":{"$config":0},"configs":[${entry}]`)],
      ['large.yaml', `v: ${long}`],
      ['broken.json', `${document(`"root":"${long}"`)}]`],
      ['many.json', document(`"root":[${refs}],"configs":[${entries}]`)],
    ]);
    expect(said).toEqual([
      'loaded 50000000',
      'ConfigError The config document has 50000003 bytes; at most 4194304 are read. The option maxBytes sets the limit. (at FILE)',
      expect.stringContaining(
        'ConfigError This is not JSON: unexpected non-whitespace character after JSON. (at FILE:1:',
      ),
      'loaded 100000',
    ]);
  },
);

/** Deeper than any stack. */
const depth = 20_000;

longTest('values nested too deep are refused, wherever they stand', () => {
  const deep = nested('[', ']', depth);
  const entry = `{"class":"Small","values":{"v":${deep}}}`;
  const [asRoot, inConfig, open] = readAll('documents', [
    ['root.json', document(`"root":${deep},"configs":[]`)],
    ['config.json', document(`"root":1,"configs":[${entry}]`)],
    ['open.json', '['.repeat(depth)],
  ]);
  expect(asRoot).toContain('values are nested more than 500 levels deep. (at FILE)');
  expect(inConfig).toMatch(/^ConfigError .*nested more than \d+ levels deep/);
  expect(open).toMatch(/^ConfigError This is not JSON: unexpected end of JSON input/);
  const said = readAll('root', [
    ['list.json', `{"v":${deep}}`],
    ['record.json', `{"v":${nested('{"a":', '}', depth).replace('}', '1}')}}`],
    ['list.yaml', `v: ${deep}`],
    ['open.yaml', `v: ${'['.repeat(depth)}`],
    ['dashes.yaml', `v:\n  ${'- '.repeat(depth)}x`],
    ['record.yaml', `v: ${nested('{a: ', '}', depth)}`],
  ]);
  for (const line of said.slice(0, 2))
    expect(line).toMatch(/^ConfigError .*nested more than \d+ levels deep/);
  // What is not closed is nested as deep as what is.
  const tooDeep =
    /^ConfigError This is not YAML for configs: its values are nested too deep\. \(at FILE:\d+:\d+\)$/;
  for (const line of said.slice(2)) expect(line).toMatch(tooDeep);
});

test('overrides of 50 MB, and aliases that stand for billions of values, are refused', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 12; i += 1)
    lines.push(
      `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    );
  const [overrides, bomb] = readAll('root', [
    ['overrides.json', `{"v":"${'x'.repeat(50e6)}"}`],
    ['bomb.yaml', `${lines.join('\n')}\nv: *a11`],
  ]);
  expect(overrides).toContain('ConfigError A file of overrides has at most 4194304 bytes');
  expect(bomb).toContain('the aliases expand to more than 1000000 values.');
});

test('bytes that are no text are refused', () => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 2654435761) % 256));
  const [yaml, json] = readAll('documents', [
    ['garbage.yaml', bytes],
    ['garbage.json', Buffer.alloc(1000)],
  ]);
  expect(yaml).toBe('ConfigError The config document is not text in UTF-8. (at FILE)');
  expect(json).toMatch(/^ConfigError This is not JSON: .*\(at FILE:1:1\)$/);
});

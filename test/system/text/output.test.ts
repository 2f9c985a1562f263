/** @file Text for terminals: controls of names and messages are written out, styles and layout of our own stay. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable } from '../../../src/system/index.js';
import { runLuthier, temporaryDirectory } from '../../command.js';
import { commandEnvironment } from '../../loader.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
// biome-ignore lint/suspicious/noControlCharactersInRegex: styles begin with one.
const styles = /\u001b\[\d+m/g;
const controls = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

/** A project with one experiment in a file of this name. */
function projectWith(file: string): string {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'experiments'));
  const source = `import { Experiment } from ${JSON.stringify(join(repository, 'src/index.js'))};\nexport class Odd extends Experiment {}\n`;
  writeFileSync(join(directory, 'experiments', file), source);
  return directory;
}

describe('printable text', () => {
  it.each([
    ['\\u001b[2Jx', '\u001b[2Jx'],
    ['\\u009b31mx\\u0007\\u0000\\u007f', '\u009b31mx\u0007\u0000\u007f'],
    ['a\\u202eb\\u2066c\\u200fd\\u061ce\\u206a', 'a\u202eb\u2066c\u200fd\u061ce\u206a'],
    ['a\\u2028b\\u2029', 'a\u2028b\u2029'],
    ['over\\u000dwritten', 'over\rwritten'],
  ])('is %s', (expected, text) => {
    expect(printable(text)).toBe(expected);
  });

  it.each(['lines\n\tand tabs\r\n', 'Größe 大小 עברית', '👩‍💻', 'می‌خواهم'])('%j stays as it is', (text) => {
    expect(printable(text)).toBe(text);
  });

  it('holds no controls, and as JSON is the same data', () => {
    const parts = fc.oneof(
      fc.constantFrom('\u001b[31m', '\u202e', '\u009b', '\u2028', '\r', '\\', '"', '\n'),
      fc.string({ unit: 'binary' }),
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 6 }), (texts) => {
        const text = texts.join('');
        expect(printable(text).replaceAll('\r\n', '')).not.toMatch(controls);
        expect(JSON.parse(printable(JSON.stringify({ text })))).toEqual({ text });
      }),
    );
  });
});

describe('output of commands', () => {
  const file = 'odd\u001b]0;title\u0007\u202e.ts';

  it('shows the controls of a name that it lists, and leaves JSON as it is', async () => {
    const directory = projectWith(file);
    const [text, json] = await Promise.all([
      runLuthier(['list'], directory),
      runLuthier(['list', '--format=json'], directory),
    ]);
    expect(text.stdout).toContain('odd\\u001b]0;title\\u0007\\u202e');
    expect(text.stdout + text.stderr).not.toMatch(controls);
    expect(json.stdout).toContain('\u202e');
    expect(JSON.stringify(JSON.parse(json.stdout))).toContain(JSON.stringify(`experiments/${file}`));
  });

  it('shows the controls of a flag that it refuses', async () => {
    const { code, stderr } = await runLuthier(['train', '--exp=lm.\u001b[2J\u202eSmall']);
    expect(code).toBe(2);
    expect(stderr).toContain('lm.\\u001b[2J\\u202eSmall');
    expect(stderr).not.toMatch(controls);
  });

  it.skipIf(spawnSync('script', ['--version']).status !== 0)(
    'has its own colours alone on a terminal, also in JSON',
    () => {
      const directory = projectWith(file);
      const onTerminal = (args: string): string => {
        const command = `'${process.execPath}' '${join(repository, 'src/tools/luthier.js')}' ${args}`;
        const env = { ...commandEnvironment({ TERM: 'xterm' }), NO_COLOR: undefined, FORCE_COLOR: undefined };
        return spawnSync('script', ['-qec', command, '/dev/null'], { cwd: directory, env, encoding: 'utf8' })
          .stdout;
      };
      const text = onTerminal('list');
      expect(text).toContain('\u001b[1modd\\u001b]0;title\\u0007\\u202e.Odd\u001b[22m');
      expect(text.replaceAll(styles, '').replaceAll('\r\n', '')).not.toMatch(controls);
      const json = onTerminal('list --format=json');
      expect(json.replaceAll('\r\n', '')).not.toMatch(controls);
      expect(JSON.stringify(JSON.parse(json))).toContain(JSON.stringify(`experiments/${file}`));
    },
  );
});

describe('the source', () => {
  it('writes to no terminal but by src/system/text/output.ts', () => {
    const files = readdirSync(join(repository, 'src'), { recursive: true, encoding: 'utf8' });
    const writers = files.filter(
      (path) =>
        /\.(ts|js|cjs)$/.test(path) &&
        /process\.(stdout|stderr)\.write\((?!'', )|^[^/*]*console\.\w+\(/m.test(
          readFileSync(join(repository, 'src', path), 'utf8'),
        ),
    );
    expect(writers.sort()).toEqual([
      // To the process that started it.
      'inputs/records/decompress.cjs',
      // Before any other module is loaded.
      'system/limits.js',
      // As limits.js.
      'system/supportedNode.js',
      'system/text/output.ts',
      // A part of a workflow's file.
      'tools/init/workflow.ts',
    ]);
  });
});

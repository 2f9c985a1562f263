/** @file `luthier graph`: configs as SVG and in the DOT language. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { oneProcess, runLuthier, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';

const luthier = oneProcess('src/tools/commandLine.ts');

describe('luthier graph', () => {
  longTest('draws all configs as SVG', async () => {
    const { code, stdout } = await runLuthier(['graph', 'tiny.Tiny']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^<\?xml [\s\S]*<svg [\s\S]*<\/svg>\n$/);
    for (const name of ['SingleTask', 'TransformerLm', 'AdamW', 'TextInput', 'GreedyDecoder']) {
      expect(stdout).toContain(`>${name}</text>`);
    }
  });

  it('draws a part, down to a depth, with the changes of flags, in the DOT language', async () => {
    const flags = ['--at=task.train', '--depth=1', '--defaults=hide', '--direction=TB', '--dot'];
    const { stdout } = await luthier(['graph', 'tiny.Tiny', ...flags, '--set', 'learningRate=0.5']);
    expect(stdout).toMatch(/^digraph configs \{\n {2}graph \[rankdir=TB,/);
    expect(stdout.match(/tooltip="[^"]*"/g)).toEqual(['tooltip="&lt;root&gt;"', 'tooltip="learner"']);
    expect(stdout).toContain('AdamW');
    expect(stdout).not.toContain('evalSkipTrain');
  });

  it('writes files whole, in the language of their name', async () => {
    const directory = temporaryDirectory();
    const [svg, dot] = await Promise.all([
      luthier(['graph', 'tiny.Tiny', `--out=${join(directory, 'a/b.svg')}`]),
      luthier(['graph', 'tiny.Tiny', `--out=${join(directory, 'b.dot')}`, '--length=6', '--format=json']),
    ]);
    expect(svg.stdout).toMatch(/^Wrote \/.*\/a\/b\.svg, \d+(\.\d+)? kB\.\n$/);
    expect(readFileSync(join(directory, 'a/b.svg'), 'utf8')).toMatch(/<\/svg>\n$/);
    const text = readFileSync(join(directory, 'b.dot'), 'utf8');
    expect(text).toMatch(/^digraph configs \{[\s\S]*>numTr…</);
    expect(JSON.parse(dot.stdout)).toEqual({
      experiment: 'tiny.Tiny',
      file: join(directory, 'b.dot'),
      bytes: Buffer.byteLength(text),
    });
    expect(readdirSync(directory).sort()).toEqual(['a', 'b.dot']);
  });

  it('says where a path ends that leads nowhere', async () => {
    expect(await luthier(['graph', 'tiny.Tiny', '--at=task.trian'])).toMatchObject({
      code: 2,
      stderr: "No 'task.trian': SingleTask at 'task' has no 'trian'. Did you mean 'train'?\n",
    });
  });
});

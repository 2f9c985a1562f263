/** @file `luthier dump`: constants and configs as text, as Markdown, and as documents that load back. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { oneProcess, runLuthier, startCommand, temporaryDirectory } from '../command.js';

const constants = `\
--set numTrainSteps=3:
  numTrainSteps: 3
Tiny:
  dataPath: "corpus/*.txt"
  modelDims: 16
  numSamples: 1
Fiddled:
  learningRate: 0.02
  spare: 0`;

const luthier = oneProcess('src/tools/commandLine.ts');

describe('luthier dump', () => {
  it('shows constants by the class that set them, then every field', async () => {
    const { code, stdout } = await runLuthier(['dump', 'Fiddled', '--set', 'numTrainSteps=3']);
    expect(code).toBe(0);
    const [head, first, second, ...rest] = stdout.split('\n\n');
    expect(head).toBe('fiddled.Fiddled experiments/fiddled.ts');
    expect(first).toBe(`Constants\n${constants}`);
    expect(second).toMatch(/^Configs\n<root> : Configs\ntask : SingleTask\n/);
    expect(second).toContain('\ntask.train.numTrainSteps : 3\n');
    expect(rest).toEqual([]);
  });

  it('shows where each field was set, and what it was before', async () => {
    const flags = ['--set', 'task.train.numTrainSteps=5', '--history', '--defaults=hide'];
    const { stdout } = await luthier(['dump', 'tiny.Tiny', ...flags]);
    expect(stdout).toMatch(
      /\ntask\.train\.numTrainSteps : 5 @ --set task\.train\.numTrainSteps=5\n {2}- previously: 12 @ experiments\/tiny\.ts:\d+\n/,
    );
    expect(stdout).not.toContain('\ntask.name : ');
  });

  it('writes a document that --config_file takes back, in the format that main.ts writes', async () => {
    const set = ['--set', 'numTrainSteps=3', '--set', 'task.train.saveMaxToKeep=9'];
    const [json, yaml, main] = await Promise.all([
      luthier(['dump', 'tiny.Tiny', ...set, '--format=json']),
      luthier(['dump', 'tiny.Tiny', ...set, '--format=yaml']),
      startCommand(['--exp=tiny.Tiny', ...set, '--dump=json']).finished,
    ]);
    expect(JSON.parse(json.stdout)).toEqual(JSON.parse(main.stdout));
    const directory = temporaryDirectory();
    for (const [name, { stdout }] of [['a.json', json] as const, ['a.yaml', yaml] as const]) {
      writeFileSync(join(directory, name), stdout);
      const again = await luthier([
        'dump',
        'tiny.Tiny',
        '--config_file',
        join(directory, name),
        '--format=json',
      ]);
      expect(again.stdout).toBe(json.stdout);
    }
  });

  it('has no place in a document for history and defaults', async () => {
    expect(await luthier(['dump', 'tiny.Tiny', '--history', '--format=yaml'])).toMatchObject({
      code: 2,
      stderr: '--history: a document has no place for it; use --format=text.\n',
    });
  });
});

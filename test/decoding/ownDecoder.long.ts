/** @file A decoder of one's own, that of the guide, under the command, `generate` and `serve`. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { project, runLuthier, startCommand, temporaryDirectory } from '../command.js';
import { corpusDirectory } from '../inputs/corpus.js';
import { decodedRun } from '../trained/tinyRun.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The decoder on the page, as a module, and how many lines it has. */
function decoderOfPage(): { code: string; lines: number } {
  const page = readFileSync(join(root, 'docs/guide/add-a-decoder.md'), 'utf8');
  const [, code] = /^```ts experiments\/beam\.ts\n([\s\S]*?)^```$/m.exec(page)!;
  return {
    code: code!.replaceAll(/'\.\.\/src\/(.*)\.js'/g, `'${root}src/$1.ts'`),
    lines: code!.trimEnd().split('\n').length,
  };
}

const experiment = `
import { Tiny } from '${project}/experiments/tiny.ts';
import { BeamSearch } from './beam.ts';
export class Beamed extends Tiny {
  override task() {
    const p = super.task();
    p.decode.decoder = BeamSearch.config({ seqlen: 24, eosId: [], beamSize: 3 });
    return p;
  }
}
`;

test('beam search in under 80 lines decodes in a run, generates and serves', async () => {
  const { code, lines } = decoderOfPage();
  expect(lines).toBeLessThan(80);
  const folder = temporaryDirectory();
  mkdirSync(join(folder, 'experiments'));
  writeFileSync(join(folder, 'experiments/beam.ts'), code);
  writeFileSync(join(folder, 'experiments/mine.ts'), experiment);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const corpus = corpusDirectory({ 'one.txt': 'abcdefgh'.repeat(40) });
  const sets = { numTrainSteps: 40, modelDims: 32, dataPath: join(corpus, '*.txt') as never };
  const { directory, decoded } = await decodedRun('mine.Beamed', sets, folder);
  expect(decoded.length).toBeGreaterThan(0);
  for (const { decoded_substr, ...example } of decoded) {
    const { sampled } = example as unknown as { sampled: { logprobs: number[] }[] };
    const scores = sampled.map(({ logprobs }) => logprobs.reduce((a, b) => a + b));
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    expect(new Set(sampled.map((sample) => JSON.stringify(sample))).size).toBe(3);
    expect(decoded_substr.length).toBe(16);
  }

  const [{ prefix, decoded_substr }] = decoded as [(typeof decoded)[number]];
  const generated = ['generate', directory, `--prompt=${prefix}`];
  expect(await runLuthier([...generated, '--max_tokens=5'], folder)).toEqual({
    ...{ code: 0, signal: null, stderr: '' },
    stdout: `${decoded_substr.slice(0, 5)}\n`,
  });
  expect(await runLuthier([...generated, '--temperature=1'], folder)).toMatchObject({
    code: 2,
    stderr:
      'temperature: mine.Beamed decodes with a BeamSearch, which draws by its own rule. ' +
      'Leave out such settings, or set task.decode.decoder.\n',
  });
  const serving = ['serve', directory, '--port=0'];
  const { child, finished } = startCommand(serving, folder, 'src/tools/commandLine.ts');
  const [told] = (await once(child.stdout!, 'data')) as [Buffer];
  const answer = await fetch(`${/http:\S+:\d+/.exec(String(told))![0]}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: prefix, max_tokens: 7 }),
  });
  expect(await answer.json()).toMatchObject({ choices: [{ text: decoded_substr.slice(0, 7) }] });
  child.kill('SIGTERM');
  expect(await finished).toMatchObject({ code: 0, stderr: '' });
});

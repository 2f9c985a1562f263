/** @file `luthier mesh` as a person runs it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { oneProcess, temporaryDirectory } from '../../command.js';

const luthier = oneProcess('src/tools/commandLine.ts');
const mesh = (...args: string[]) => luthier(['mesh', 'tiny.Tiny', ...args]);
// From the folder of the project that commands run in.
const device = '--device=../../../devices/tpu-v5p.yaml';

test('the meshes that fit, and the command that trains on the fastest', async () => {
  const { code, stdout, stderr } = await mesh('--devices=2', '--all', device);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(stdout).toBe(`tiny.Tiny
2 × TPU v5p (../../../devices/tpu-v5p.yaml); 2 rows a step, 32 tokens

   mesh (replica, data, mdl)  memory  step     compute   update  collectives    MFU
*  [1,1,2]                    397 kB  94.1 ns  4.67 ns  89.4 ns  0 s          2.1 %
*  [1,2,1]                    292 kB  34.1 µs  2.36 ns  89.4 ns  34.0 µs      0.0 %
   [2,1,1]                    292 kB  34.1 µs  2.36 ns  89.4 ns  34.0 µs      0.0 %

Times are predictions. Collectives count where no computation hides them; all of them are in --format=json.
No other plan beats those marked * in both time and memory.

Fastest  [1,1,2]; no collectives
Run      mpirun -np 2 npx luthier train tiny.Tiny --set 'task.mesh.iciMeshShape=[1,1,2]'
`);
});

test('Markdown, with meshes that do not divide the rows', async () => {
  const { code, stdout } = await mesh('--devices=3', '--format=markdown', device);
  expect(code).toBe(0);
  expect(stdout).toBe(`### tiny.Tiny

3 × TPU v5p (../../../devices/tpu-v5p.yaml); 2 rows a step, 32 tokens

| mesh (replica, data, mdl) | memory |    step | compute |  update | collectives |   MFU |
|---------------------------|-------:|--------:|--------:|--------:|------------:|------:|
| [1,1,3]                   | 397 kB | 94.1 ns | 4.67 ns | 89.4 ns |         0 s | 1.4 % |

Times are predictions. Collectives count where no computation hides them; all of them are in --format=json.
Not planned: \\[1,3,1\\]: A batch of 2 rows can't be split evenly over 3 devices (replica 1, data 3): change the batch size or the mesh.
Not planned: \\[3,1,1\\]: A batch of 2 rows can't be split evenly over 3 devices (replica 3, data 1): change the batch size or the mesh.

- **Fastest:** \\[1,1,3\\]; no collectives

- **Run:** \`mpirun -np 3 npx luthier train tiny.Tiny --set 'task.mesh.iciMeshShape=[1,1,3]'\`
`);
});

test('JSON has all plans', async () => {
  const { stdout } = await mesh('--shape=[1,2,1]', '--format=json', device);
  const { plans, devices, unit } = JSON.parse(stdout);
  expect({ devices, unit }).toEqual({ devices: 2, unit: 'tokens' });
  expect(plans).toHaveLength(1);
  expect(plans[0]).toMatchObject({ iciMeshShape: [1, 2, 1], rows: 2, isOnFront: true });
  expect(Object.keys(plans[0].time.collectives)).toEqual(['AllReduce over ici']);
});

test('several numbers of rows have a column, and policies are those of layers that recompute', async () => {
  const { code, stdout } = await mesh('--shape=[1,2,1]', '--rows=2,4', '--policies', device);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^mesh \(replica, data, mdl\) +rows +memory /m);
  expect(stdout).toContain("--set 'task.mesh.iciMeshShape=[1,2,1]' --set 'datasets[0].batchSize=4'");
});

test('a device that is too small', async () => {
  const file = join(temporaryDirectory(), 'toy.yaml');
  const tpu = readFileSync('devices/tpu-v5p.yaml', 'utf8');
  writeFileSync(file, tpu.replace('name: TPU v5p', 'name: Toy').replace('95e9', '250e3'));
  const { code, stdout } = await mesh('--shape=[1,2,1]', `--device=${file}`);
  expect(code).toBe(1);
  expect(stdout).toContain('No mesh fits: [1,2,1] takes the least memory, 292 kB of 250 kB.');
  expect(stdout).not.toContain('Run ');
});

test.each([
  [[], '--device: expected a device file with mesh; devices/ has some, such as devices/tpu-v4.yaml.'],
  [['--shape=2x2', device], "--shape: expected devices along each axis, such as [1,4,2]; got '2x2'."],
  [['--shape=[1,,2]', device], "--shape: expected devices along each axis, such as [1,4,2]; got '[1,,2]'."],
  [['--rows=0', device], "--rows: expected rows of a global batch, such as 64 or 64,128; got '0'."],
])('%o is refused', async (args, message) => {
  const { code, stderr } = await mesh(...args);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});

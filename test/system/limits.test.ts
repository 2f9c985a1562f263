/** @file Limits under which nothing can run: one line that says which one it is, and how much is needed. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const linux = process.platform === 'linux';

/** What the command says where a shell has set a limit. */
function under(limit: string, options = '') {
  const command = `${limit}; exec '${process.execPath}' ${options} src/tools/luthier.js --help`;
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

const told = (short: string) => ({ status: 1, stdout: '', stderr: `Luthier needs ${short}.\n` });

test.skipIf(!linux)('file handles, addresses, the heap', () => {
  for (const handles of [32, 96])
    expect(under(`ulimit -n ${handles}`)).toEqual(
      told(`128 file handles or more, and the limit is ${handles}: ulimit -n 128`),
    );
  expect(under('ulimit -v 4000000')).toEqual(
    told('96 GB of addresses, which WebAssembly reserves, and the limit is 4 GB: ulimit -v 96000000'),
  );
  expect(under(':', '--max-old-space-size=32')).toEqual(
    told('a heap of 112 MiB or more, and the limit is 80 MiB: --max-old-space-size=96, in NODE_OPTIONS say'),
  );
});

test.skipIf(!linux)('as much as is needed is enough', () => {
  const { status, stderr } = under('ulimit -n 128; ulimit -v 96000000', '--max-old-space-size=96');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

/**
 * @file Runs tfjs-core's own specs in one process: `runSpecs.ts SHARE`, a `Share` as JSON. The engine `cpu` is tfjs's
 * backend as it comes; the others run the specs through lazy execution.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Engine } from '../src/compiler/index.js';
import type { Share, SpecResult } from './conformance.js';

const require = createRequire(import.meta.url);
const share = JSON.parse(process.argv[2]!) as Share;
const { bundle, engine, report, part, parts, slice, slices } = share;

if (engine === 'cpu') {
  require('@tensorflow/tfjs-layers');
  require('@tensorflow/tfjs-backend-cpu');
} else {
  const { lazy, loadBackend } = await import('../src/compiler/index.js');
  await loadBackend('cpu');
  lazy({ engine: engine as Exclude<Engine, 'eager'>, numThreads: 1 });
}

const { getEnv } = require('jasmine-core').boot();
const jasmine = getEnv();
/** Parts and slices stay the same when specs are added. */
const isIn = (name: string): boolean => {
  let hash = 0;
  for (const letter of name) hash = (Math.imul(hash, 31) + letter.codePointAt(0)!) >>> 0;
  return hash % parts === part && Math.floor(hash / parts) % slices === slice;
};
/** Without the environment that jasmine_util adds. */
const plain = (name: string): string => name.replace(' luthier {}', '');
jasmine.configure({
  random: false,
  specFilter: (spec: { getFullName(): string }) => isIn(plain(spec.getFullName())),
});

const results: SpecResult[] = [];
/** How often each name has come; some specs share one. */
const repeated = new Map<string, number>();
jasmine.addReporter({
  specDone: ({ fullName, status, failedExpectations }: any) => {
    if (status === 'excluded' || status === 'pending') return;
    const [file, ...words] = plain(fullName).split(' ');
    const called = words.join(' ');
    const before = repeated.get(fullName) ?? 0;
    repeated.set(fullName, before + 1);
    const name = before === 0 ? called : `${called} (${before + 1})`;
    const error = failedExpectations[0]?.message.split('\n')[0];
    results.push({
      file: file!,
      name,
      ...(status === 'passed' ? {} : { error: error ?? status }),
    });
  },
});

/** What specs warn of is theirs. */
console.warn = () => {};
Object.assign(globalThis, { specBackend: engine === 'cpu' ? 'cpu' : 'luthier-trace' });
require(bundle);
await jasmine.execute();
writeFileSync(report, JSON.stringify(results));
process.exit(0);

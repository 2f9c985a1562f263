/**
 * @file Runs tfjs-core's own specs in one process: `runSpecs.ts SHARE`, a `Share` as JSON. The engine `cpu` is tfjs's
 * backend as it comes; the others run the specs through lazy execution.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Engine, Lazy } from '../src/compiler/index.js';
import type { Share } from './conformance.js';
import type { SpecResult } from './specResult.js';

const require = createRequire(import.meta.url);
const share = JSON.parse(process.argv[2]!) as Share;
const { bundle, engine, report, part, parts, slice, slices } = share;

let execution: Lazy | undefined;
if (engine === 'cpu') {
  require('@tensorflow/tfjs-layers');
  require('@tensorflow/tfjs-backend-cpu');
} else {
  const { lazy, loadBackend } = await import('../src/compiler/index.js');
  const { Executable } = await import('../src/compiler/program/executable.js');
  const { repeatedly } = await import('../test/compiler/repeatedRuns.js');
  // A program of a spec runs more than once, and has to answer alike.
  Executable.prototype.run = function (inputs) {
    return repeatedly(this, inputs);
  };
  await loadBackend('cpu');
  execution = lazy({ engine: engine as Exclude<Engine, 'eager'>, numThreads: 1 });
}

/** Kernels that have run outside of programs more often than before. */
let counted: Readonly<Record<string, number>> = {};
function newBreaks(): string[] {
  const before = counted;
  counted = execution?.graphBreaks ?? {};
  return Object.keys(counted).filter((kernel) => counted[kernel] !== before[kernel]);
}

const core = require('jasmine-core').boot();
// Compiling takes long on a busy machine.
core.DEFAULT_TIMEOUT_INTERVAL = 600_000;
const jasmine = core.getEnv();
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
    const breaks = newBreaks();
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
      ...(breaks.length > 0 && { breaks }),
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

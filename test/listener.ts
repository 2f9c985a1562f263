/** @file Listens to processes: whether they leave the machine, and which files they leave in the user's home. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compilerPath, execute, hasCompiler } from './compiler/native/compilerSupport.js';

/** A preloaded library listens: glibc's loader and a compiler are needed. */
export const canListen = process.platform === 'linux' && hasCompiler;
/** Variables by which ONNX Runtime knows a build service, where it holds its telemetry back by itself. */
const buildServices = [
  'CI',
  'BUILDKITE',
  'CIRCLECI',
  'CODEBUILD_BUILD_ID',
  'GITHUB_ACTIONS',
  'GITLAB_CI',
  'JENKINS_URL',
  'TF_BUILD',
  'TRAVIS',
];
/** For the titles of tests that do without it elsewhere. */
export const listening = canListen ? '' : ' (needs Linux and a C compiler)';

/** What was done by the processes that were started with `env`, and by those that they started. */
export interface Listener {
  /** An empty home, and nothing that turns telemetry off. */
  readonly env: Record<string, string>;
  /** Names that were looked up and sockets for other machines, in order. */
  heard(): string[];
  /** Files in the home, besides translations of TypeScript. */
  written(): string[];
}

/** Builds the listening library in a folder; what it gives listens anew at each call. */
export async function buildListener(folder: string): Promise<() => Listener> {
  const library = join(folder, 'listener.so');
  const source = fileURLToPath(new URL('listener.c', import.meta.url));
  const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror'];
  await execute(compilerPath(), [...flags, source, '-o', library, '-ldl']);
  return () => {
    const home = mkdtempSync(join(folder, 'home-'));
    const log = `${home}.log`;
    mkdirSync(join(home, '.cache'));
    return {
      env: {
        HOME: home,
        XDG_CACHE_HOME: join(home, '.cache'),
        ...Object.fromEntries(['ORT_DISABLE_TELEMETRY', ...buildServices].map((name) => [name, ''])),
        LD_PRELOAD: library,
        LISTENED: log,
      },
      heard: () => (existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : []),
      written: () =>
        readdirSync(home, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => relative(home, join(entry.parentPath, entry.name)))
          .filter((path) => !path.startsWith('.cache/luthier/typescript/')),
    };
  };
}

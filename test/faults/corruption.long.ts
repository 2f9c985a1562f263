/** @file Files of a job_log_dir that are damaged at random: the run goes on from what is whole, or names the file. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../command.js';
import { metricLines } from '../programs/runs.js';
import { draw, title, tries } from './campaign.js';
import { savingRun } from './savingRun.js';

/** How a file is damaged; `at` is a random number. Returns false where this can't be done to it. */
type Damage = (path: string, at: number) => unknown;

const isJson = (path: string) => path.endsWith('.json');

function editJson(path: string, edit: (value: Record<string, unknown>) => void): boolean {
  if (!isJson(path)) return false;
  const value = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  edit(value);
  // With a digest that is right: what only a digest could see is tried by the other damages.
  if ('sha256' in value) {
    const { sha256: _, ...fields } = value;
    value.sha256 = createHash('sha256').update(JSON.stringify(fields)).digest('hex');
  }
  writeFileSync(path, JSON.stringify(value));
  return true;
}

/** Another file of the same directory, or undefined. */
function neighbour(path: string): string | undefined {
  const names = readdirSync(dirname(path)).filter((name) => join(dirname(path), name) !== path);
  return names.map((name) => join(dirname(path), name)).find((other) => statSync(other).isFile());
}

function replaced(path: string, make: () => unknown): void {
  rmSync(path, { recursive: true });
  make();
}

/** Writes a header length or a header into a safetensors file. */
function editHeader(path: string, edit: (bytes: Buffer) => Buffer): boolean {
  if (!path.endsWith('.safetensors')) return false;
  writeFileSync(path, edit(readFileSync(path)));
  return true;
}

const wrongValues = [null, -1, 1e300, 'text', [], {}, true, [[1e15, 1e15]], '9'.repeat(100)];

const damages: Record<string, Damage> = {
  'a bit flipped': (path, at) => {
    const bytes = readFileSync(path);
    if (bytes.length === 0) return false;
    bytes[at % bytes.length]! ^= 1 << (at % 8);
    writeFileSync(path, bytes);
  },
  truncated: (path, at) => truncateSync(path, at % Math.max(1, statSync(path).size)),
  emptied: (path) => writeFileSync(path, ''),
  removed: (path) => rmSync(path),
  garbage: (path, at) => {
    const bytes = readFileSync(path);
    bytes.fill(at % 256, at % Math.max(1, bytes.length));
    writeFileSync(path, bytes);
  },
  'garbage behind': (path, at) => {
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc((at % 5000) + 1, at % 256)]));
  },
  'gigabytes long': (path) => truncateSync(path, 6e9),
  swapped: (path) => {
    const other = neighbour(path);
    if (other === undefined) return false;
    renameSync(path, `${path}.moved`);
    renameSync(other, path);
    renameSync(`${path}.moved`, other);
  },
  'a named pipe': (path) => replaced(path, () => execFileSync('mkfifo', [path])),
  'a directory': (path) => replaced(path, () => mkdirSync(path)),
  'a full directory': (path) => replaced(path, () => mkdirSync(join(path, 'below'), { recursive: true })),
  'a link to a device': (path) => replaced(path, () => symlinkSync('/dev/zero', path)),
  'a link to itself': (path) => replaced(path, () => symlinkSync(path, path)),
  'a link to nowhere': (path) => replaced(path, () => symlinkSync('nowhere', path)),
  unreadable: (path) => chmodSync(path, 0),
  'a value of another type': (path, at) =>
    editJson(path, (value) => {
      const keys = Object.keys(value).filter((key) => key !== 'sha256');
      value[keys[at % keys.length]!] = wrongValues[at % wrongValues.length];
    }),
  'a field less': (path, at) =>
    editJson(path, (value) => {
      const keys = Object.keys(value).filter((key) => key !== 'sha256');
      delete value[keys[at % keys.length]!];
    }),
  'not an object': (path, at) => {
    if (!isJson(path)) return false;
    writeFileSync(path, ['null', '[]', '5', '"x"', '{', '[[[['][at % 6]!);
  },
  'a huge header length': (path, at) =>
    editHeader(path, (bytes) => {
      bytes.writeBigUInt64LE([2n ** 63n, 2n ** 40n, 99_999_999n, 0n, 1n][at % 5]!);
      return bytes;
    }),
  'huge numbers in the header': (path, at) =>
    editHeader(path, (bytes) => {
      const length = Number(bytes.readBigUInt64LE());
      const text = bytes.subarray(8, 8 + length).toString();
      const wrong = ['1e999', '9007199254740993', '-1', '1e15', '0.5'][at % 5]!;
      const header = Buffer.from(text.replace(/\d{3,}/g, wrong));
      const size = Buffer.alloc(8);
      size.writeBigUInt64LE(BigInt(header.length));
      return Buffer.concat([size, header, bytes.subarray(8 + length)]);
    }),
};

const folder = temporaryDirectory();

async function bounded(args: readonly string[], script: string, env: Readonly<Record<string, string>> = {}) {
  const running = startCommand(args, undefined, script, env);
  let hung = false;
  const timer = setTimeout(() => {
    hung = true;
    running.child.kill('SIGKILL');
  }, 180_000);
  const finished = await running.finished;
  clearTimeout(timer);
  return { ...finished, hung, said: `${finished.stdout}${finished.stderr}` };
}

/** Runs to a step; in this process, unless the damage may be one that a program waits for, or dies of. */
async function save(directory: string, last: number, kind: string, previous = false): Promise<Ended> {
  const args = [directory, String(last), ...(previous ? ['previous'] : [])];
  if (/pipe|device|gigabytes/.test(kind)) return bounded(args, 'test/faults/savingProgram.ts');
  const said: string[] = [];
  const fate = { hung: false, signal: null };
  try {
    await savingRun(directory, last, (line) => said.push(`${line}\n`), previous);
    return { ...fate, code: 0, stdout: said.join(''), stderr: '', said: said.join('') };
  } catch (error) {
    const stderr = (error as Error).message;
    return { ...fate, code: 1, stdout: said.join(''), stderr, said: `${said.join('')}${stderr}` };
  }
}

type Ended = Awaited<ReturnType<typeof bounded>>;

/** What no damage may bring about. */
function crashes({ hung, signal, code, stderr }: Ended): string[] {
  return [
    ...(hung ? ['it hangs'] : []),
    ...(signal === null ? [] : [`it was ended by ${signal}`]),
    ...(code === 0 || code === 1 ? [] : [`exit code ${code}`]),
    ...(/^ {4}at /m.test(stderr) ? [`a stack: ${stderr}`] : []),
    ...(/other values/.test(stderr) ? [stderr] : []),
  ];
}

const steps = (directory: string) => metricLines(directory).map(({ step }) => step);

/** What went wrong with a run that goes on from a directory in which a file was damaged. */
async function problemsOf(template: string, file: string, kind: string, at: number): Promise<string[]> {
  const directory = mkdtempSync(join(folder, 'job-'));
  cpSync(template, directory, { recursive: true });
  const path = join(directory, file);
  if (damages[kind]!(path, at) === false) return [];
  const where = `${file}: ${kind} (${at})`;
  const problems: string[] = [];
  const first = await save(directory, 8, kind);
  problems.push(...crashes(first));
  const names = first.said.includes(path) || first.said.includes(dirname(path));
  if (first.code === 1) {
    if (!names) problems.push(`the file is not named: ${first.said}`);
    if (/^from/m.test(first.stdout) && file.startsWith('checkpoints'))
      problems.push(`it went on before it failed: ${first.said}`);
  } else if (!first.stdout.startsWith('from 6\n')) problems.push(`it is passed over silently: ${first.said}`);
  const second = first.code === 0 ? first : await save(directory, 8, kind, true);
  if (second !== first) problems.push(...crashes(second));
  if (second.code === 0) {
    if (!/^from [46]$/m.test(second.stdout))
      problems.push(`the newest whole one is not used: ${second.said}`);
    // Lines that were damaged themselves may be missing; none may be there twice, or of another run.
    const found = steps(directory);
    if (new Set(found).size !== found.length) problems.push(`metrics.jsonl has steps ${found}`);
    if (file !== 'metrics.jsonl' && kind !== 'swapped' && found.length !== 8)
      problems.push(`metrics.jsonl has steps ${found}`);
  } else if (file.startsWith('checkpoints/')) {
    problems.push(`it does not go on from the older one: ${second.said}`);
  } else if (!second.said.includes(path)) problems.push(`the file is not named: ${second.said}`);
  return problems.map((problem) => `${where}: ${problem}`);
}

const filesBelow = (directory: string) =>
  readdirSync(directory, { recursive: true })
    .map(String)
    .filter((name) => statSync(join(directory, name)).isFile());

const rights = process.getuid?.() === 0 ? '; as root, files without permissions are read all the same' : '';

test(title(`damaged files are named, or what is whole is gone on from${rights}`), async () => {
  const template = join(folder, 'template');
  expect(await save(template, 6, '')).toMatchObject({ code: 0, stderr: '' });
  const files = filesBelow(template).filter((name) => !/checkpoint_0+[024]\//.test(name));
  const arbitrary = fc.record({ file: fc.constantFrom(...files), at: fc.nat(1e6) });
  const kinds = Object.keys(damages);
  // Every kind of damage is tried, on files drawn at random among those that it fits.
  const drawn = draw(arbitrary, tries(100, 22) * 3, 100);
  const cases: { file: string; kind: string; at: number }[] = [];
  for (const [i, { file, at }] of drawn.entries()) {
    const kind = kinds[(cases.length + (i % 3 === 2 ? 1 : 0)) % kinds.length]!;
    const fits = kind.includes('header')
      ? file.endsWith('.safetensors')
      : !/another type|less|not an object/.test(kind) || isJson(file);
    if (fits && cases.length < tries(100, 22)) cases.push({ file, kind, at });
  }
  const waiting = [...cases];
  const found: string[] = [];
  const work = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift())
      for (const problem of await problemsOf(template, one.file, one.kind, one.at)) {
        console.error(problem);
        found.push(problem);
      }
  };
  await Promise.all([work(), work()]);
  expect(found).toEqual([]);
});

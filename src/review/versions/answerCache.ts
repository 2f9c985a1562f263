/** @file Answers of evaluating processes, kept from review to review: each holds while all that was read for it is the same. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { cachePath, checkFolder } from '../../compiler/native/toolchain/index.js';
import { writeWhole } from '../../files/index.js';
import { contentsAt, digestOf } from '../../system/index.js';
import type { Answer, Question } from './protocol.js';
import type { Tree } from './versionTree.js';

/** A file or folder that was read, with a digest of its contents. Paths inside the evaluated tree begin with `./`. */
type Fact = readonly [path: string, contents: string];

/** An answer, and the numbers of the facts that it follows from. */
interface Kept {
  readonly question: string;
  readonly answer: Answer;
  readonly facts: readonly number[];
  /** How many of them, at the end, are of the question itself, and not of its process before. */
  readonly numOwn: number;
}

interface Contents {
  readonly facts: readonly Fact[];
  /** The ones that were of use last come first. */
  readonly answers: readonly Kept[];
}

/** A project's answers of two versions; a few more for versions before. */
const mostAnswers = 1500;
const mostProjects = 8;
const mostBytes = 64e6;
/** Milliseconds by which the clock of a file system may be behind. */
const clockSkew = 50;

/** The answers of earlier reviews of a project in a folder of this machine. */
export class AnswerCache {
  private readonly file: string | undefined;
  readonly facts: Fact[] = [];
  private readonly numbers = new Map<string, number>();
  /** The ones that were of use last come first. */
  readonly byQuestion = new Map<string, Kept[]>();
  readonly used = new Set<Kept>();
  private readonly trees: KeptAnswers[] = [];
  private readonly began = Date.now() - clockSkew;

  /**
   * @param key texts of all that answers depend on beside the files that a process reads.
   * @param folder where the answers of all projects are; without one, none are kept.
   */
  constructor(
    private readonly folder: string | undefined,
    key: readonly string[],
  ) {
    const machine = [process.version, process.platform, process.arch, availableParallelism(), totalmem()];
    const settings = ['NODE_OPTIONS', 'TZ', 'LANG', 'LC_ALL'].map((name) => process.env[name]);
    if (folder === undefined) return;
    this.file = join(folder, digestOf(JSON.stringify([machine, settings, key])).replaceAll('/', '_'));
    const { facts, answers } = read(this.file) ?? { facts: [], answers: [] };
    for (const fact of facts) this.numberOf(fact);
    for (const kept of answers) {
      const known = this.byQuestion.get(kept.question);
      if (known === undefined) this.byQuestion.set(kept.question, [kept]);
      else known.push(kept);
    }
  }

  get isEmpty(): boolean {
    return this.byQuestion.size === 0;
  }

  /** The answers that are valid for a tree; `unseen` digests the files that its processes read unrecorded. */
  forTree(tree: Tree, unrecorded: string, isTemporary: boolean): KeptAnswers {
    const kept = new KeptAnswers(this, tree, unrecorded, isTemporary, this.began);
    this.trees.push(kept);
    return kept;
  }

  numberOf(fact: Fact): number {
    const key = fact.join('\0');
    let number = this.numbers.get(key);
    if (number === undefined) {
      this.numbers.set(key, (number = this.facts.length));
      this.facts.push(fact);
    }
    return number;
  }

  /** Writes the answers. One that cannot be written costs the next review its time, and nothing else. */
  save(): void {
    const fresh = this.trees.flatMap((tree) => tree.settled());
    if (this.file === undefined || fresh.length === 0) return;
    const old = [...this.byQuestion.values()].flat().filter((kept) => !this.used.has(kept));
    const answers = [...fresh, ...this.used, ...old].slice(0, mostAnswers);
    const present = [...new Set(answers.flatMap(({ facts }) => facts))];
    const position = new Map(present.map((number, i) => [number, i]));
    const contents: Contents = {
      facts: present.map((number) => this.facts[number]!),
      answers: answers.map((kept) => ({ ...kept, facts: kept.facts.map((number) => position.get(number)!) })),
    };
    const packed = gzipSync(JSON.stringify(contents), { level: 1 });
    if (packed.length > mostBytes) return;
    try {
      // The folder above holds compiled code, and only its owner may write to it.
      mkdirSync(this.folder!, { recursive: true, mode: 0o700 });
      writeWhole(this.file, Buffer.concat([Buffer.from(`${digestOf(packed)}\n`), packed]));
      removeOldest(this.folder!);
    } catch {
      // A full disk, or a folder that became another's.
    }
  }
}

function read(file: string): Contents | undefined {
  try {
    const bytes = readFileSync(file);
    const end = bytes.indexOf('\n');
    const packed = bytes.subarray(end + 1);
    if (bytes.toString('latin1', 0, end) !== digestOf(packed)) return undefined;
    return JSON.parse(gunzipSync(packed).toString()) as Contents;
  } catch {
    // Missing or damaged.
    return undefined;
  }
}

function removeOldest(folder: string): void {
  const files = readdirSync(folder).map((name) => join(folder, name));
  const times = new Map(files.map((file) => [file, statSync(file).mtimeMs]));
  for (const file of files.sort((a, b) => times.get(b)! - times.get(a)!).slice(mostProjects)) rmSync(file);
}

/** The text under which answers to a question are kept. */
const keyOf = ({ document, saved, ...question }: Question): string =>
  JSON.stringify({
    ...question,
    ...(document !== undefined && { document: digestOf(document) }),
    ...(saved !== undefined && { saved: digestOf(saved) }),
  });

/** A kept answer, and the paths that its process had read, and read for it. */
interface Found {
  readonly answer: Answer;
  readonly reads: readonly string[];
  readonly own: readonly string[];
}

/** The answers that hold for one tree. */
export class KeptAnswers {
  private readonly contents = new Map<string, string | undefined>();
  private readonly fresh: Kept[] = [];

  constructor(
    private readonly cache: AnswerCache,
    private readonly tree: Pick<Tree, 'root' | 'around'>,
    unrecorded: string,
    /** Whether the tree is a temporary worktree, which does not change. */
    private readonly isTemporary: boolean,
    /** Start of the review: files changed since may differ from those that processes have read. */
    private readonly began: number,
  ) {
    this.contents.set('unseen:', unrecorded);
  }

  /** The answer to a question, and the paths that were read for it. */
  find(question: Question): Found | undefined {
    const kept = this.cache.byQuestion.get(keyOf(question))?.find(({ facts }) =>
      facts.every((number) => {
        const [path, contents] = this.cache.facts[number]!;
        return this.contentsOf(path) === contents;
      }),
    );
    if (kept === undefined) return undefined;
    this.cache.used.add(kept);
    const reads = kept.facts.map((number) => this.here(this.cache.facts[number]![0]));
    return { answer: kept.answer, reads, own: reads.slice(reads.length - kept.numOwn) };
  }

  /** Keeps an answer of a process that had read all this, the last ones for the question; paths as of `recordReads`. */
  keep(question: Question, answer: Answer, reads: readonly string[], numOwn: number): void {
    const failures = ['error', 'notWritten', 'notAnalysed', 'notFingerprinted', 'notSaved', 'notResumed'];
    const isWhole = !failures.some((failure) => failure in answer);
    const facts = isWhole ? ['unseen:', ...reads].map((path) => this.factOf(path)) : [undefined];
    if (facts.includes(undefined)) return;
    const numbers = (facts as Fact[]).map((fact) => this.cache.numberOf(fact));
    this.fresh.push({ question: keyOf(question), answer, facts: numbers, numOwn });
  }

  /** The answers that were kept, but those that follow from files that have changed meanwhile. */
  settled(): readonly Kept[] {
    const isSettled = new Map<number, boolean>();
    return this.fresh.filter(({ facts }) =>
      facts.every((number) => {
        if (!isSettled.has(number)) isSettled.set(number, this.isSettled(this.cache.facts[number]!));
        return isSettled.get(number);
      }),
    );
  }

  private isSettled([path, contents]: Fact): boolean {
    const file = this.here(path);
    if ((this.isTemporary && path.startsWith('.')) || !isAbsolute(file)) return true;
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined || contents === 'absent') return stats === undefined && contents === 'absent';
    const inside = path.endsWith('/') ? readdirSync(file, { recursive: true, encoding: 'utf8' }) : [];
    const files = stats.isDirectory() ? inside.map((name) => join(file, name)) : [file];
    return files.every((each) => (statSync(each, { throwIfNoEntry: false })?.ctimeMs ?? 0) < this.began);
  }

  private factOf(path: string): Fact | undefined {
    const { root, around } = this.tree;
    const isInside = `${path}/`.startsWith(`${root}/`);
    const outside = around !== undefined && path.startsWith(`${around}/`) ? path.slice(around.length) : path;
    const named = isInside ? `.${path.slice(root.length)}` : outside;
    const contents = this.contentsOf(named);
    return contents === undefined ? undefined : [named, contents];
  }

  private contentsOf(path: string): string | undefined {
    if (!this.contents.has(path)) this.contents.set(path, contentsAt(this.here(path)));
    return this.contents.get(path);
  }

  private here(path: string): string {
    return /^\.(\/|$)/.test(path) ? `${this.tree.root}${path.slice(1)}` : path;
  }
}

/** The folder of all projects' answers; undefined where there may be none. */
export function answerFolder(): string | undefined {
  try {
    return join(checkFolder(cachePath(process.env)), 'reviews');
  } catch {
    return undefined;
  }
}
